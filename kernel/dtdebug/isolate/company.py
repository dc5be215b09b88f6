"""How much of the processors other programs had while a run went: a busy host makes every job slow."""

from __future__ import annotations

from contextlib import suppress

import psutil


class Company:
    """Looks at a run's processes, and at the whole host, now and then."""

    def __init__(self) -> None:
        self._first = _busy()
        self._last = self._first
        self._ours: dict[int, float] = {}
        """Seconds of a processor by process, of those that ended too."""

    def look(self, pid: int) -> None:
        """Notes what the run whose first process this is, and all others, have used so far."""
        self._last = _busy()
        with suppress(psutil.Error):
            first = psutil.Process(pid)
            for process in (first, *first.children(recursive=True)):
                with suppress(psutil.Error):
                    times = process.cpu_times()
                    self._ours[process.pid] = times.user + times.system

    @property
    def share(self) -> float:
        """Share of all that the processors did which was not the run's: 0 to 1; 0 where nothing was seen."""
        every = self._last - self._first
        return max(0.0, min(1.0, 1 - sum(self._ours.values()) / every)) if every > 0 and self._ours else 0.0


def _busy() -> float:
    """Seconds that all processors together have worked since the host began."""
    times = psutil.cpu_times()
    return float(times.user + times.system + getattr(times, "nice", 0.0))
