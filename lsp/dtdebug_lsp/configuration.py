"""Settings of the user: in the editor, and in the project's `pyproject.toml`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, NamedTuple

from dtdebug_taxonomy import named_files
from dtdebug_taxonomy.checks.run.settings import Settings, parse_settings
from dtdebug_taxonomy.source.config.toml import read_toml

log = logging.getLogger(__name__)

SECTION = "dtdebug"
_EDITOR_ONLY = frozenset({"enable", "interpreter", "serverCommand", "trace", "showsExplanations"})
_SPELLINGS = {"perFile": "per-file-ignores", "perFileIgnores": "per-file-ignores"}
_LARGEST = 1_000_000
"""Maximum size in bytes of a `pyproject.toml`."""


class _Read(NamedTuple):
    """Cached `pyproject.toml` with its mtime and size."""

    state: tuple[int, int]
    table: dict[str, Any] | None


class Configuration:
    """Settings for each file: those of its project, overridden by the editor's."""

    def __init__(self) -> None:
        self.editor: dict[str, Any] = {}
        """The editor's section, as the client sent it."""
        self.folders: dict[str, dict[str, Any]] = {}
        """The same for the folders of a workspace that differ, by path."""
        self._projects: dict[Path, _Read] = {}
        self._told: set[str] = set()

    def of(self, path: str) -> Settings:
        """Return the settings for a file; for a buffer without a path those of the editor."""
        project, where = self._project(path) if path else (None, "")
        editor = self._editor(path)
        table = dict(project or {})
        for key, value in editor.items():
            mine = table.get(key)
            if key == "select" or mine is None:
                table[key] = value
            elif isinstance(mine, list) and isinstance(value, list):
                table[key] = [*mine, *value]
            elif isinstance(mine, dict) and isinstance(value, dict):
                table[key] = mine | value
        settings, wrong = parse_settings(table)
        for problem in wrong:
            self._tell(f"{where or 'settings'}: {problem}")
        return settings

    def is_enabled(self, path: str) -> bool:
        """True if the user wants diagnostics in a file."""
        return self._section(path).get("enable") is not False

    def _section(self, path: str) -> dict[str, Any]:
        inside = [folder for folder in self.folders if path == folder or path.startswith(folder.rstrip("/") + "/")]
        return self.folders[max(inside, key=len)] if inside else self.editor

    def _editor(self, path: str) -> dict[str, Any]:
        """Return only what was set; a client also sends defaults."""
        rows = ((_SPELLINGS.get(k, k), v) for k, v in self._section(path).items() if k not in _EDITOR_ONLY)
        return {key: value for key, value in rows if value}

    def _project(self, path: str) -> tuple[dict[str, Any] | None, str]:
        """Return `[tool.dtdebug]` of the nearest `pyproject.toml` that has it, and the path of that file."""
        for folder in Path(path).parents:
            file = folder / "pyproject.toml"
            table = self._table(file)
            if table is not None:
                return table, str(file)
        return None, ""

    def _table(self, file: Path) -> dict[str, Any] | None:
        try:
            status = file.stat()
        except (OSError, ValueError):
            return None
        state = status.st_mtime_ns, status.st_size
        known = self._projects.get(file)
        if known is None or known.state != state:
            known = self._projects[file] = _Read(state, self._read(file, status.st_size))
        return known.table

    def _read(self, file: Path, size: int) -> dict[str, Any] | None:
        if not file.is_file() or size > _LARGEST:
            return None
        try:
            table = read_toml(named_files.read_file(file, _LARGEST).decode()).get("tool", {}).get(SECTION)
        except (OSError, ValueError, AttributeError) as error:
            self._tell(f"{file}: can't be read: {error}")
            return None
        return table if isinstance(table, dict) else None

    def _tell(self, line: str) -> None:
        """Log a line once, not with every keystroke."""
        if line not in self._told:
            self._told.add(line)
            log.warning("%s", line)


def section(settings: Any) -> dict[str, Any]:
    """Return our section of the client's settings; some clients send all settings, some only our section."""
    if not isinstance(settings, dict):
        return {}
    inner = settings.get(SECTION)
    return inner if isinstance(inner, dict) else settings
