"""The last failure that was diagnosed, handed on through the state directory."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from dtdebug import state
from dtdebug.border import masked
from dtdebug.records import VARIABLE
from dtdebug_taxonomy.diagnosis import Diagnosis
from dtdebug_taxonomy.snapshot import Snapshot


class Last(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot with its diagnosis."""

    snapshot: Snapshot
    diagnosis: Diagnosis
    time: float = 0.0
    """When it was kept, in seconds since the epoch."""
    pid: int = 0
    """Who has kept it."""
    run: str = ""
    """The run that its environment named: that of the notebook which has started it, if one has."""

    def __post_init__(self) -> None:
        """Whoever makes it, it holds no secret."""
        msgspec.structs.force_setattr(self, "snapshot", masked(self.snapshot))

    def save(self) -> bool:
        """Keeps it; False if the state directory can't be written."""
        origin = {"time": time.time(), "pid": os.getpid(), "run": os.environ.get(VARIABLE, "")}
        return state.save(state.LAST, msgspec.structs.replace(self, **origin))

    @staticmethod
    def of_child(run: Path, since: float) -> Last | None:
        """What a dtdebug that this notebook has started kept last since then, or None."""
        last = Last.load()
        if last is None or last.run != str(run.absolute()) or last.time < since or last.pid == os.getpid():
            return None
        return last

    @staticmethod
    def load() -> Last | None:
        """What was kept last, or None."""
        return state.load(state.LAST, Last)
