"""The modules around a text: as they are open in the editor, else as they are on disk."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

from dtdebug_taxonomy.source.project import Project

LONGEST = 500_000
"""Bytes beyond which a module is not read."""


class Modules:
    """What the imports of one text lead to, read again when a module of it has changed."""

    def __init__(self, path: str = "", opened: Callable[[str], str | None] = lambda _: None) -> None:
        """`path` is that of the text itself, which is not read; `opened` gives what the editor holds of a file."""
        self._path, self._opened = path, opened
        self._seen: dict[str, object] = {}
        """The files that were asked for, with what tells one state of them from another."""
        self.project = Project(self._text)

    def refresh(self) -> bool:
        """Forgets the modules if one that was asked for is another by now, has come, or has gone; whether it is so."""
        changed = any(self._state(path) != seen for path, seen in self._seen.items())
        if changed:
            self._seen.clear()
            self.project = Project(self._text)
        return changed

    def read(self, path: str) -> bool:
        """Whether a file was asked for."""
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
            found = Path(path).stat()
            if not stat.S_ISREG(found.st_mode) or found.st_size > LONGEST:
                return None
            return Path(path).read_bytes().decode("utf-8", "replace")
        except OSError:
            return None
