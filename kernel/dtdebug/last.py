"""The last failure that was diagnosed, handed on through the state directory."""

from __future__ import annotations

import msgspec

from dtdebug import state
from dtdebug_taxonomy.diagnosis import Diagnosis
from dtdebug_taxonomy.snapshot import Snapshot

_FILE = "last.json"


class Last(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot with its diagnosis."""

    snapshot: Snapshot
    diagnosis: Diagnosis

    def save(self) -> bool:
        """Keeps it; False if the state directory can't be written."""
        return state.save(_FILE, self)

    @staticmethod
    def load() -> Last | None:
        """What was kept last, or None."""
        return state.load(_FILE, Last)
