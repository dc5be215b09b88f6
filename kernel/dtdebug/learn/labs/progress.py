"""User's progress in the labs: started, solved, hints read; stored in the state directory."""

from __future__ import annotations

from pathlib import Path

import msgspec

from dtdebug.storage import state_dir

_FILE = "labs.json"


class StartedLab(msgspec.Struct, kw_only=True):
    """Progress in one lab."""

    folder: str
    hints: int = 0
    tries: int = 0
    solved: bool = False


class LabProgress(msgspec.Struct, kw_only=True):
    """Progress in all labs, by id."""

    current: str = ""
    """Lab that was started last, and the default for commands without a name."""
    labs: dict[str, StartedLab] = {}

    @staticmethod
    def load() -> LabProgress:
        """Return the stored progress, or an empty record."""
        return state_dir.load(_FILE, LabProgress) or LabProgress()

    def save(self) -> bool:
        """Store it; False if the state directory can't be written."""
        return state_dir.save(_FILE, self)

    def begin(self, lab: str, folder: Path) -> StartedLab:
        """Start a lab in a folder; hints already read still count."""
        self.current = lab
        begun = self.labs.setdefault(lab, StartedLab(folder=""))
        begun.folder = str(folder.absolute())
        return begun
