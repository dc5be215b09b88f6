"""Which labs the user has begun, where, how many hints were read, and which are solved; kept in the state directory."""

from __future__ import annotations

from pathlib import Path

import msgspec

from dtdebug import state

_FILE = "labs.json"


class StartedLab(msgspec.Struct, kw_only=True):
    """One lab of the user."""

    folder: str
    hints: int = 0
    tries: int = 0
    solved: bool = False


class LabProgress(msgspec.Struct, kw_only=True):
    """All labs of the user, by id."""

    current: str = ""
    """The lab that was begun last: the one that is meant where none is named."""
    labs: dict[str, StartedLab] = {}

    @staticmethod
    def load() -> LabProgress:
        """What was kept, or an empty record."""
        return state.load(_FILE, LabProgress) or LabProgress()

    def save(self) -> bool:
        """Keeps it; False if the state directory can't be written."""
        return state.save(_FILE, self)

    def begin(self, lab: str, folder: Path) -> StartedLab:
        """A lab begins in a folder; hints that were read stay read."""
        self.current = lab
        begun = self.labs.setdefault(lab, StartedLab(folder=""))
        begun.folder = str(folder.absolute())
        return begun
