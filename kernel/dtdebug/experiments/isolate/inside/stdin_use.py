"""Detects that the program reads its standard input, which is empty in all runs; dtdebug's own processes are exempt."""

from __future__ import annotations

import io
import sys
from typing import Any

from dtdebug.experiments.isolate.inside.record_writer import PartNotes, is_own


class _Input(io.TextIOWrapper):
    """Standard input that notes each read; `input` and `getpass` use it too."""

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
    """Replace `sys.stdin`."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        watched = _Input(sys.stdin.buffer, encoding=sys.stdin.encoding, errors=sys.stdin.errors)
        watched.notes = notes
        sys.stdin = watched  # the original stays at sys.__stdin__
