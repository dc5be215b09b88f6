"""Finds which ranks made progress between two observations: by counters, stacks and the system's accounting.

Only processes of this host have system figures. A main thread that waits uses none of them, however often the agent's
thread is asked.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from dtdebug.live.probe.stack_tree import Progress, compare
from dtdebug_taxonomy.model.ranks import RankState
from dtdebug_taxonomy.stacks.frames import own_frames

_MAIN, _THREADS, _CHILDREN = 0.05, 0.5, 0.1
"""CPU shares above which the main thread, the other threads, and the child processes count as working.

The agent's thread takes some CPU to answer, so the other threads have a higher threshold.
"""
_BYTES = 4096
"""Bytes that a working main thread reads or writes; a line that reports waiting is shorter."""
_MOST = 256
"""Maximum number of processes that are read."""


class Work(NamedTuple):
    """Resources that a process had used at one moment."""

    time: float
    """Seconds, monotonic."""
    main: float
    threads: float
    children: float
    """Seconds of CPU time."""
    moved: int
    """Bytes that the main thread has read and written."""


def sample(states: Iterable[RankState], host: str) -> dict[int, Work]:
    """Return the resources used so far by the processes of the ranks on this host."""
    pids = [s.pid for s in states if s.pid and s.alive is not False and s.host in ("", host)]
    return {pid: work for pid in pids[:_MOST] if (work := _work(pid)) is not None}


def workers(before: dict[int, Work], after: dict[int, Work]) -> tuple[frozenset[int], frozenset[int]]:
    """Return (processes that worked between two samples, those that did not); others are unknown."""
    works: set[int] = set()
    rests: set[int] = set()
    for pid, late in after.items():
        early = before.get(pid)
        if early is None or late.time - early.time <= 0:
            continue
        span = late.time - early.time
        used = (late.main - early.main, late.threads - early.threads, late.children - early.children)
        busy = any(part > least * span for part, least in zip(used, (_MAIN, _THREADS, _CHILDREN), strict=True))
        (works if busy or late.moved - early.moved >= _BYTES else rests).add(pid)
    return frozenset(works), frozenset(rests)


def progress(
    before: Iterable[RankState],
    after: Iterable[RankState],
    works: Collection[int] = (),
    rests: Collection[int] = (),
) -> dict[int, Progress]:
    """Return each rank's progress between two observations, with the system figures that are known.

    CPU time is not progress of a rank in an operation: libraries poll while they wait. A rank at rest that was seen at
    two lines of one function polls as well.
    """
    early, late = [*before], [*after]
    found = compare(early, late)
    first = {s.rank: s for s in early}
    for state in late:
        if state.rank is None or state.pid is None or state.alive is False:
            continue
        now = found.get(state.rank, "unknown")
        if now in ("stuck", "unknown") and state.pid in works and state.pending is None:
            found[state.rank] = "busy"
        elif now == "busy" and state.pid in rests and _polls(first.get(state.rank), state):
            found[state.rank] = "stuck"
    return found


def still(found: Mapping[int, str], then: Iterable[RankState], now: Iterable[RankState]) -> dict[int, str]:
    """Return the progress without that of ranks which a later observation shows elsewhere.

    A rank that worked and has since moved may wait there. One that has ended, or gave no answer, keeps its progress.
    """
    places = {s.rank: _place(s) for s in then}
    over = {s.rank for s in now if s.alive and s.stack and _place(s) != places.get(s.rank)}
    return {rank: "unknown" if rank in over and was == "busy" else was for rank, was in found.items()}


def _place(state: RankState) -> list[tuple[str, int]]:
    return [(frame.file, frame.line) for frame in own_frames(state.stack) or state.stack]


def _polls(a: RankState | None, b: RankState) -> bool:
    """True if both observations found it in one function of the user's, called from one place."""
    mine, then = own_frames(b.stack), own_frames(a.stack) if a is not None else ()
    return bool(mine and then) and mine[:-1] == then[:-1] and mine[-1].function == then[-1].function


def _work(pid: int) -> Work | None:
    try:
        process = psutil.Process(pid)
        total = process.cpu_times()
        children = 0.0
        for child in process.children(recursive=True)[:_MOST]:
            with suppress(psutil.Error):
                times = child.cpu_times()
                children += times.user + times.system
        main = _main_thread(pid)
    except (psutil.Error, OSError, ValueError, IndexError):
        return None
    # Includes children that have ended meanwhile, such as the compilers that a build starts.
    children += total.children_user + total.children_system
    return Work(time.monotonic(), main, total.user + total.system - main, children, _bytes(pid))


def _main_thread(pid: int) -> float:
    fields = Path(f"/proc/{pid}/task/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _bytes(pid: int) -> int:
    """Return the bytes that the main thread has read and written, 0 if unknown."""
    with suppress(OSError, ValueError):
        lines = Path(f"/proc/{pid}/task/{pid}/io").read_text().splitlines()
        rows = dict(line.split(": ", 1) for line in lines)
        return int(rows.get("rchar", 0)) + int(rows.get("wchar", 0))
    return 0
