"""Terminates all processes of a run."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dtdebug.experiments.isolate.inside import record_writer
from dtdebug.live.probe.liveness import end

_PATIENCE = 5.0
_ROUNDS, _QUIET = 8, 2
"""Maximum number of searches for remaining processes, and of consecutive searches that must find none.

A process that starts has no environment for a moment.
"""


def clear(process: subprocess.Popen[bytes] | None, place: Path) -> None:
    """Terminate all processes of a run, found by dtdebug's variable even if they have left its session."""
    if process is not None:
        if process.poll() is None:
            end([process.pid], _PATIENCE)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE)
    mark = str(place / "change.json")
    quiet = 0
    for _ in range(_ROUNDS):
        rest = _find_marked(mark)
        quiet = 0 if rest else quiet + 1
        if quiet == _QUIET:
            return
        end(rest, _PATIENCE)


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn signals that would end this process into KeyboardInterrupt, so that a run is ended with it."""
    before = {name: signal.signal(name, _interrupt) for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _find_marked(mark: str) -> list[int]:
    import psutil

    found = []
    for other in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if other.environ().get(record_writer.VARIABLE) == mark:
                found.append(other.pid)
    return found
