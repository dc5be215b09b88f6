"""Ends all that a run has started."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

from dtdebug.isolate.inside import notes
from dtdebug.probe.watch import end

_PATIENCE = 5.0
_ROUNDS, _QUIET = 8, 2
"""How often it is looked for what is left, and how often nothing must be found: a process that begins has no
environment for a moment."""


def clear(process: subprocess.Popen[bytes] | None, place: Path) -> None:
    """Ends all that the run has started, also what has left its session: it has our variable."""
    if process is not None:
        if process.poll() is None:
            end([process.pid], _PATIENCE)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE)
    mark = str(place / "change.json")
    quiet = 0
    for _ in range(_ROUNDS):
        rest = _marked(mark)
        quiet = 0 if rest else quiet + 1
        if quiet == _QUIET:
            return
        end(rest, _PATIENCE)


def _marked(mark: str) -> list[int]:
    import psutil

    found = []
    for other in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if other.environ().get(notes.VARIABLE) == mark:
                found.append(other.pid)
    return found
