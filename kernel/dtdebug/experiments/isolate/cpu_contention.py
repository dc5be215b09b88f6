"""Measures the processor share of other programs during a run: a busy host makes every job slow."""

from __future__ import annotations

from contextlib import suppress

import psutil


class HostLoad:
    """Samples of the processor times of a run and of the whole host."""

    def __init__(self) -> None:
        self._first = _busy()
        self._last = self._first
        self._ours: dict[int, float] = {}
        """Pid -> processor seconds, including processes that have ended."""

    def look(self, pid: int) -> None:
        """Sample the processor times of the run whose first process is `pid`, and of the host."""
        self._last = _busy()
        with suppress(psutil.Error):
            first = psutil.Process(pid)
            for process in (first, *first.children(recursive=True)):
                with suppress(psutil.Error):
                    times = process.cpu_times()
                    self._ours[process.pid] = times.user + times.system

    @property
    def share(self) -> float:
        """Share of all processor time that was not the run's: 0 to 1; 0 without samples."""
        every = self._last - self._first
        return max(0.0, min(1.0, 1 - sum(self._ours.values()) / every)) if every > 0 and self._ours else 0.0


def _busy() -> float:
    """Return the seconds that all processors together have worked since boot."""
    times = psutil.cpu_times()
    return float(times.user + times.system + getattr(times, "nice", 0.0))
