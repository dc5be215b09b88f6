"""Last diagnosed failure, shared between processes through the state directory."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from dtdebug.privacy.boundary import mask_snapshot
from dtdebug.storage import VARIABLE, state_dir
from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis
from dtdebug_taxonomy.model.snapshot import Snapshot


class LastFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Snapshot with its diagnosis."""

    snapshot: Snapshot
    diagnosis: Diagnosis
    time: float = 0.0
    """Time of storage, in seconds since the epoch."""
    pid: int = 0
    """Process that stored it."""
    passed: float = 0.0
    """Time at which something else was read that showed no failure, or 0."""
    run: str = ""
    """Run folder from the environment: that of the notebook that started the process, if any."""

    def __post_init__(self) -> None:
        """Mask the snapshot, so that no instance holds a secret."""
        msgspec.structs.force_setattr(self, "snapshot", mask_snapshot(self.snapshot))

    def save(self) -> bool:
        """Store it; False if the state directory can't be written."""
        origin = {"time": time.time(), "pid": os.getpid(), "run": os.environ.get(VARIABLE, "")}
        return state_dir.save(state_dir.LAST, msgspec.structs.replace(self, **origin))

    @staticmethod
    def pass_over() -> None:
        """Note that something was read since that showed no failure."""
        if (last := LastFailure.load()) is not None:
            state_dir.save(state_dir.LAST, msgspec.structs.replace(last, passed=time.time()))

    @staticmethod
    def of_child(run: Path, since: float) -> LastFailure | None:
        """Return the failure that a child dtdebug of this notebook stored last since then, or None."""
        last = LastFailure.load()
        if last is None or last.run != str(run.absolute()) or last.time < since or last.pid == os.getpid():
            return None
        return last

    @staticmethod
    def load() -> LastFailure | None:
        """Return the last stored failure, or None."""
        return state_dir.load(state_dir.LAST, LastFailure)
