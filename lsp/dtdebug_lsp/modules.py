"""Modules around a text: as they are open in the editor, else as they are on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dtdebug_taxonomy import named_files
from dtdebug_taxonomy.source.python.project import Project

LONGEST = 500_000
"""Maximum size in bytes of a module."""


class Modules:
    """Modules reached by the imports of one text, read again when one of them changes."""

    def __init__(self, path: str = "", opened: Callable[[str], str | None] = lambda _: None) -> None:
        """Set the text's own path, which is not read, and `opened`, which returns the editor's text of a file."""
        self._path, self._opened = path, opened
        self._seen: dict[str, object] = {}
        """Requested file -> state of it, by which a change is noticed."""
        self.project = Project(self._text)

    def refresh(self) -> bool:
        """Drop the modules if one of them has changed, appeared or disappeared; return whether that is so."""
        changed = any(self._state(path) != seen for path, seen in self._seen.items())
        if changed:
            self._seen.clear()
            self.project = Project(self._text)
        return changed

    def read(self, path: str) -> bool:
        """True if a file was requested."""
        return path in self._seen

    def _state(self, path: str) -> object:
        if (text := self._opened(path)) is not None:
            return text
        try:
            found = Path(path).stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size

    def _text(self, path: str) -> str | None:
        if path == self._path:
            return None
        self._seen[path] = self._state(path)
        if (text := self._opened(path)) is not None:
            return text
        try:
            return named_files.read_file(path, LONGEST).decode("utf-8", "replace")
        except OSError:
            return None
