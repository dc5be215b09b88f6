"""Maps the files of a kernel's cells to the numbers that the user sees, and inspects the running cell."""

from __future__ import annotations

import linecache
import os
import re
import time
from typing import Any, TypeVar

import msgspec

from dtdebug.privacy.sanitize import clean
from dtdebug.process.thread_frames import frames_of
from dtdebug_taxonomy.model.ranks import Frame, RankState, Verdict
from dtdebug_taxonomy.model.ranks_view import Timeline

T = TypeVar("T")
INVENTED = re.compile(
    r"(?P<file>[^\s\"'(),:;]{0,200}ipykernel_\d{1,10}[/\\]\d{1,12}\.py|<ipython-input-\d{1,9}-[0-9a-f]{4,40}>)"
    r"(?::(?P<line>\d{1,9})\b)?"
)
"""File names that ipykernel and IPython give to the code of a cell."""
_KERNEL = re.compile(r"ipykernel_\d{1,10}")
for _type in (RankState, Verdict, Timeline):
    msgspec.json.Decoder(_type)  # build the decoder here: msgspec crashes if two threads first decode a type at once
_SAMPLE = 0.05
"""Seconds over which the thread's CPU time is measured."""
_FRAMES, _DEEPEST = 60, 5_000
"""Frames of a stack that are kept, and frames searched for the cell."""


class Cells:
    """Names of a shell's cells."""

    def __init__(self, shell: Any) -> None:
        self._label = getattr(getattr(shell, "compile", None), "format_code_name", None)

    def name(self, file: str) -> str:
        """Return `cell In[12]` for a cell's file, of this kernel or of one with the same code; "" for other files."""
        try:
            label = self._label(file) if self._label else None
            if label is None and self._label and "ipykernel_" in file:
                label = self._label(_KERNEL.sub(f"ipykernel_{os.getpid()}", file))
            return f"cell {label[1]}" if label else ""
        except Exception:  # another kind of shell
            return ""

    def rename_cells(self, value: T) -> T:
        """Return a record with the file names of cells, alone or within a text, replaced by the cells' names."""
        return msgspec.convert(self._each(msgspec.to_builtins(value)), type(value))

    def text(self, text: str) -> str:
        """Replace the files of cells in a text by `cell In[12], line 3`."""
        return INVENTED.sub(self._format_match, text) if "ipykernel_" in text or "<ipython-input-" in text else text

    def _format_match(self, found: re.Match[str]) -> str:
        name = self.name(found["file"])
        if not name:
            return found[0]
        return f"{name}, line {found['line']}" if found["line"] else name

    def _each(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.name(value) or self.text(value)
        if isinstance(value, dict):
            return {k: self._each(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._each(v) for v in value]
        return value


def frame_words(frame: Frame) -> str:
    """Format a frame as `cell In[12], line 3, in <module>: dist.barrier()`."""
    where = f"{frame.file}, line {frame.line}" if frame.file.startswith("cell ") else f"{frame.file}:{frame.line}"
    inside = "" if frame.function == "<module>" else f", in {frame.function}"
    return f"{where}{inside}{': ' + frame.code if frame.code else ''}"


class RunningCell(msgspec.Struct, frozen=True, kw_only=True):
    """Running cell of this kernel."""

    stack: tuple[Frame, ...] = ()
    """Frames from the cell's line on, innermost last; empty while no cell runs."""
    busy: float | None = None
    """Share of a CPU that the thread uses, from 0 (waiting) to 1 (computing)."""


def here(cells: Cells, thread: int) -> RunningCell:
    """Return the stack of a thread and whether it computes or waits."""
    used = _cpu(thread)
    begin = time.perf_counter()
    found = stack(cells, thread)
    if not found or used is None:
        return RunningCell(stack=found)
    time.sleep(_SAMPLE)
    later = _cpu(thread)
    if later is None:
        return RunningCell(stack=found)
    return RunningCell(stack=found, busy=min(1.0, (later - used) / (time.perf_counter() - begin)))


def stack(cells: Cells, thread: int) -> tuple[Frame, ...]:
    """Return the stack of a thread from the running cell on, without the kernel's own frames."""
    rows = _rows(thread)
    outermost = max((i for i, row in enumerate(rows) if cells.name(row[0])), default=-1)
    inner = rows[: outermost + 1]
    kept = inner if len(inner) <= _FRAMES else [*inner[: _FRAMES // 2], *inner[-_FRAMES // 2 :]]
    return tuple(_frame(cells, *row) for row in reversed(kept))


def _rows(thread: int) -> list[tuple[str, int, str]]:
    """Return (file, line, function) per frame, innermost first; hold no frame, which would keep the cell's tensors."""
    return [(f.f_code.co_filename, f.f_lineno or 0, f.f_code.co_name) for f in frames_of(thread, _DEEPEST)]


def _frame(cells: Cells, file: str, line: int, function: str) -> Frame:
    code = linecache.getline(file, line)
    return Frame(cells.name(file) or clean(file), line, clean(function), clean(code.strip())[:200])


def _cpu(thread: int) -> float | None:
    """Return the CPU seconds that a thread of this process has used, or None if the platform can't report them."""
    clock = getattr(time, "pthread_getcpuclockid", None)
    try:
        return time.clock_gettime(clock(thread)) if clock else None
    except OSError:
        return None
