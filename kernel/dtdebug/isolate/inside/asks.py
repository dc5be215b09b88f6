"""Whether the program reads its standard input, which is empty in all runs; not what dtdebug's own processes read."""

from __future__ import annotations

import io
import sys
from typing import Any

from dtdebug.isolate.inside.notes import PartNotes, is_own


class _Input(io.TextIOWrapper):
    """Reads as before, and notes that it was asked: `input` and `getpass` come by here, too."""

    notes: PartNotes

    def _note(self) -> None:
        if not is_own():
            self.notes.note("saw", "input")

    def read(self, *args: Any) -> str:
        self._note()
        return super().read(*args)

    def readline(self, *args: Any) -> str:  # type: ignore[override]
        self._note()
        return super().readline(*args)

    def __next__(self) -> str:  # type: ignore[override]
        self._note()
        return super().__next__()


def begin(notes: PartNotes) -> None:
    """Takes the place of `sys.stdin`."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        watched = _Input(sys.stdin.buffer, encoding=sys.stdin.encoding, errors=sys.stdin.errors)
        watched.notes = notes
        sys.stdin = watched  # the first one stays at sys.__stdin__
