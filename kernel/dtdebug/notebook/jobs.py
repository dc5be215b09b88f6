"""Tells the job at hand from those that the same kernel ran before: all of them leave their files in one folder."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from dtdebug.probe import processes
from dtdebug.records.folder import RunFolder

_EARLY = 5.0
"""Seconds that one rank of a job may have ended before the oldest of the living began."""
_ROUNDED = 2.0
"""Seconds by which the system may tell wrongly when a process began."""


def forget_earlier(run: RunFolder, living: Iterable[int], since: float, kernel: int | None = None) -> None:
    """Removes what jobs before that of the living ranks have left; where none lives, what is older than `since`.

    Records of processes that still live stay, whatever their age. `since` is when the cell began, `kernel` the process
    of the kernel if that is another one.
    """
    recorded = [_pid(path) for path in run.ranks.glob("*.json")]
    keep = {*living, *(pid for pid in recorded if pid and processes.liveness(pid) != "ended")}
    jobs = keep - {kernel or os.getpid()}  # a kernel is older than its jobs
    oldest = min((begin for pid in jobs if (begin := _begun(pid)) is not None), default=since)
    moment = max(since, oldest - _EARLY) if oldest >= since - _ROUNDED else oldest - _EARLY
    for path in (*run.ranks.glob("*.json"), *run.flight.glob("*"), *run.errors.glob("*.json")):
        if path.parent == run.ranks and _pid(path) in keep:
            continue
        with suppress(OSError):
            if path.stat().st_mtime < moment:
                path.unlink()


def _pid(path: Path) -> int:
    pid = path.stem.partition("-")[0]
    return int(pid) if pid.isdecimal() and len(pid) < 10 else 0


def _begun(pid: int) -> float | None:
    """When a process began, in seconds since the epoch."""
    import psutil

    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return None
