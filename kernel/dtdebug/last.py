"""Last diagnosed failure, shared between processes through the state directory."""

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
    """Snapshot with its diagnosis."""

    snapshot: Snapshot
    diagnosis: Diagnosis
    time: float = 0.0
    """Time of storage, in seconds since the epoch."""
    pid: int = 0
    """Process that stored it."""
    run: str = ""
    """Run folder from the environment: that of the notebook that started the process, if any."""

    def __post_init__(self) -> None:
        """Mask the snapshot, so that no instance holds a secret."""
        msgspec.structs.force_setattr(self, "snapshot", masked(self.snapshot))

    def save(self) -> bool:
        """Store it; False if the state directory can't be written."""
        origin = {"time": time.time(), "pid": os.getpid(), "run": os.environ.get(VARIABLE, "")}
        return state.save(state.LAST, msgspec.structs.replace(self, **origin))

    @staticmethod
    def of_child(run: Path, since: float) -> Last | None:
        """Return the failure that a child dtdebug of this notebook stored last since then, or None."""
        last = Last.load()
        if last is None or last.run != str(run.absolute()) or last.time < since or last.pid == os.getpid():
            return None
        return last

    @staticmethod
    def load() -> Last | None:
        """Return the last stored failure, or None."""
        return state.load(state.LAST, Last)
