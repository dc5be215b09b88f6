"""Ends ranks of a kernel on the user's word, and nothing else; the kernel keeps its variables."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

import psutil

from dtdebug.probe.processes import liveness
from dtdebug_taxonomy.ranks import ranges

_PATIENCE, _KILLED = 3.0, 2.0
"""Seconds from SIGTERM to SIGKILL, and from there to the end."""
_TICK = 0.05


def end_ranks(pids: Sequence[int], allowed: Collection[int], *, kernel: bool = True) -> tuple[list[int], str]:
    """The processes that have ended, and that in words; what is not among the allowed ones is left alone."""
    chosen: dict[int, psutil.Process] = {}
    for pid in dict.fromkeys(pids):
        if pid in allowed:
            with suppress(psutil.Error):
                chosen[pid] = psutil.Process(pid)
    _signal(chosen, signal.SIGTERM)
    left = _wait(chosen, _PATIENCE)
    _signal(left, signal.SIGKILL)
    left = _wait(left, _KILLED)
    ended = [pid for pid in chosen if pid not in left]
    return ended, _told(ended, list(left), [pid for pid in dict.fromkeys(pids) if pid not in chosen], kernel=kernel)


def _signal(processes: dict[int, psutil.Process], number: signal.Signals) -> None:
    for process in processes.values():
        with suppress(psutil.Error):  # psutil signals no other process that has got the number meanwhile
            process.send_signal(number)


def _wait(processes: dict[int, psutil.Process], seconds: float) -> dict[int, psutil.Process]:
    """Those that live after so long; whoever started them must find how they ended, so they are not waited for."""
    end, left = time.monotonic() + seconds, dict(processes)
    while True:
        left = {pid: process for pid, process in left.items() if liveness(pid) != "ended"}
        if not left or time.monotonic() > end:
            return left
        time.sleep(_TICK)


def _told(ended: Sequence[int], left: Sequence[int], others: Sequence[int], *, kernel: bool) -> str:
    stays = "; the kernel and its variables are as they were" if kernel else ""

    def processes(pids: Sequence[int]) -> str:
        return f"process{'es' if len(pids) > 1 else ''} {ranges(pids, 16)}"

    rows: tuple[tuple[Sequence[int], Callable[[str], str]], ...] = (
        (ended, lambda them: f"ended {them}{stays}"),
        (left, lambda them: f"{them} can't be ended: they wait in the operating system, as for a device"),
        (others, lambda them: f"left {them} alone: no rank of this kernel"),
    )
    return "; ".join(words(processes(pids)) for pids, words in rows if pids) or "no process was named"
