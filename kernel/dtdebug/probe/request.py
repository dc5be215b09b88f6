"""One request to a whole job: what the inquiries to its ranks share."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from dtdebug.records.folder import RunFolder

_INTERPRETER = 0.4
"""Share of the time that the roads through the interpreter have; the rest is for those that do without."""


class Request:
    """Its number in the folder, its deadlines, and the dumps that were there before."""

    def __init__(self, folder: RunFolder | None, timeout: float, *, dumps: bool = True, native: bool = False) -> None:
        began = time.monotonic()
        self.folder = folder
        self.dumps, self.native = dumps, native
        self.deadline = began + timeout
        self.interpreter_deadline = began + _INTERPRETER * timeout
        self.number: int | None = None
        self.refused = "there is no folder of the run"
        self._dumps: dict[str, tuple[int, int]] = {}
        if folder is not None:
            with suppress(OSError):
                self._dumps = {path.name: stamp(path) for path in folder.flight.iterdir()}
            try:
                self.number = folder.request()
            except OSError as error:
                self.refused = f"can't be asked: {error}"

    def left(self) -> float:
        """Seconds until the deadline."""
        return max(0.0, self.deadline - time.monotonic())

    def has_dump(self, rank: int) -> bool:
        """A dump of that rank has come since the request was made."""
        path = self.folder.flight / f"rank_{rank}" if self.folder else Path()
        with suppress(OSError):
            return stamp(path) != self._dumps.get(path.name)
        return False


def stamp(path: Path) -> tuple[int, int]:
    """What tells a file from the one that stood there before."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns
