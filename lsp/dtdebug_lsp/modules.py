"""Modules around a text: as they are open in the editor, else as they are on disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from dtdebug_taxonomy import named_files
from dtdebug_taxonomy.source.python.project import Project

LONGEST = 500_000
"""Maximum size in bytes of a module."""


class Modules:
    """Modules reached by the imports of one text, read again when one of them changes."""

    def __init__(self, path: str = "", opened: Callable[[], Mapping[str, str]] = dict) -> None:
        """Set the text's own path, which is not read, and `opened`, which returns the editor's texts by path."""
        self._path, self._opened = path, opened
        self._seen: dict[str, object] = {}
        """Requested file -> state of it, by which a change is noticed."""
        self._missing: set[str] = set()
        """Requested files that do not exist."""
        self._folders: dict[str, object] = {}
        """Folder -> state of it: while that is the same, the files that are missing there still are."""
        self.project = Project(self._text)

    def refresh(self) -> bool:
        """Drop the modules if one of them has changed, appeared or disappeared; return whether that is so."""
        changed = self._has_changed(self._opened())
        if changed:
            for known in (self._seen, self._missing, self._folders):
                known.clear()
            self.project = Project(self._text)
        return changed

    def _has_changed(self, opened: Mapping[str, str]) -> bool:
        if not self._missing.isdisjoint(opened):
            return True
        if any(_state(path, opened) != seen for path, seen in self._seen.items()):
            return True
        if all(_stat(folder) == seen for folder, seen in self._folders.items()):
            return False
        self._folders = {folder: _stat(folder) for folder in self._folders}
        return any(map(_stat, self._missing))

    def read(self, path: str) -> bool:
        """True if a file was requested."""
        return path in self._seen or path in self._missing

    def _text(self, path: str) -> str | None:
        if path == self._path:
            return None
        folder, opened = path.rpartition("/")[0], self._opened()
        self._folders.setdefault(folder, _stat(folder))
        if (state := _state(path, opened)) is None:
            self._missing.add(path)
            return None
        self._seen[path] = state
        if (text := opened.get(path)) is not None:
            return text
        try:
            return named_files.read_file(path, LONGEST).decode("utf-8", "replace")
        except OSError:
            return None


def _state(path: str, opened: Mapping[str, str]) -> object:
    """Return the state of a file: its text in the editor, else that on disk."""
    return opened[path] if path in opened else _stat(path)


def _stat(path: str) -> object:
    """Return a state that differs after a file, or an entry of a folder, has changed; None if it does not exist."""
    try:
        found = os.stat(path)  # noqa: PTH116 - at each key for each module; a Path costs several times as much
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size
