"""What the kernel's own thread does, read from any other thread of the kernel."""

from __future__ import annotations

import linecache
import sys
import time

import msgspec

from dtdebug.clean import clean
from dtdebug.notebook.cells import Cells
from dtdebug_taxonomy.ranks import Frame

_SAMPLE = 0.05
"""Seconds over which the thread's CPU time is measured."""
_FRAMES, _DEEPEST = 60, 5_000
"""Frames of a stack that are kept, and that are walked through to find the cell."""


class Here(msgspec.Struct, frozen=True, kw_only=True):
    """The running cell of this kernel."""

    stack: tuple[Frame, ...] = ()
    """From the line of the cell on, innermost last; empty while no cell runs."""
    busy: float | None = None
    """Part of a CPU that the thread uses, 0 to 1: 0 waits, 1 computes."""


def here(cells: Cells, thread: int) -> Here:
    """Where a thread is, and whether it computes or waits."""
    used = _cpu(thread)
    begin = time.perf_counter()
    found = stack(cells, thread)
    if not found or used is None:
        return Here(stack=found)
    time.sleep(_SAMPLE)
    later = _cpu(thread)
    if later is None:
        return Here(stack=found)
    return Here(stack=found, busy=min(1.0, (later - used) / (time.perf_counter() - begin)))


def stack(cells: Cells, thread: int) -> tuple[Frame, ...]:
    """The stack of a thread from the running cell on; the frames of the kernel itself are left out."""
    rows = _rows(thread)
    outermost = max((i for i, row in enumerate(rows) if cells.name(row[0])), default=-1)
    inner = rows[: outermost + 1]
    kept = inner if len(inner) <= _FRAMES else [*inner[: _FRAMES // 2], *inner[-_FRAMES // 2 :]]
    return tuple(_frame(cells, *row) for row in reversed(kept))


def _rows(thread: int) -> list[tuple[str, int, str]]:
    """(file, line, function) of each frame, innermost first; keeps no frame, for they hold the cell's tensors."""
    rows: list[tuple[str, int, str]] = []
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - the one way to see another thread
    while frame is not None and len(rows) < _DEEPEST:
        rows.append((frame.f_code.co_filename, frame.f_lineno or 0, frame.f_code.co_name))
        frame = frame.f_back
    return rows


def _frame(cells: Cells, file: str, line: int, function: str) -> Frame:
    code = linecache.getline(file, line)
    return Frame(cells.name(file) or clean(file), line, clean(function), clean(code.strip())[:200])


def _cpu(thread: int) -> float | None:
    """CPU seconds that a thread of this process has used, where the platform tells."""
    clock = getattr(time, "pthread_getcpuclockid", None)
    try:
        return time.clock_gettime(clock(thread)) if clock else None
    except OSError:
        return None
