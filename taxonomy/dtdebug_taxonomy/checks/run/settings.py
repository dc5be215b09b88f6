"""Settings of a project: `[tool.dtdebug]` in its `pyproject.toml`.

[tool.dtdebug]
select = ["DT"]                      # prefixes of ids, or names; ALL takes in those that are off by default
ignore = ["DT5", "hard-coded-port"]
severity = { DT101 = "error" }
per-file-ignores = { "tests/**" = ["DT"] }
exclude = ["third_party", "*_pb2.py"]
"""

from __future__ import annotations

import re
from fnmatch import translate
from functools import lru_cache
from typing import Any, NamedTuple, get_args

from dtdebug_taxonomy.checks import Severity, known_checks

KEYS = ("select", "ignore", "severity", "per-file-ignores", "exclude")


ALL = "ALL"
"""Selects every check, those that are off by default included."""


class Settings(NamedTuple):
    """Enabled checks per file, and their severities."""

    select: tuple[str, ...] = ("DT",)
    ignore: tuple[str, ...] = ()
    severity: dict[str, Severity] = {}
    per_file: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """(glob on the path, ids that are off there)."""
    exclude: tuple[str, ...] = ()
    """Globs on the paths of files and folders that are not checked."""

    def enabled_ids(self, path: str) -> frozenset[str]:
        """Return the ids of the checks that are enabled for a file."""
        off = [*self.ignore, *(i for glob, ids in self.per_file if _matches(glob, path) for i in ids)]
        return _select(self.select, tuple(off))

    def excludes(self, path: str) -> bool:
        """True if a file or folder is not to be checked; what is below an excluded folder is for the caller to skip."""
        return any(_matches(glob, path) for glob in self.exclude)


@lru_cache(maxsize=256)
def _select(select: tuple[str, ...], off: tuple[str, ...]) -> frozenset[str]:
    """Return the enabled ids; the longer prefix wins: `select = ["DT101"]` with `ignore = ["DT1"]` keeps DT101."""

    def weight(rows: tuple[str, ...], name: str, number: str) -> int:
        fits = (row for row in rows if row in {name, ALL} or number.startswith(row))
        return max((99 if row == name else 0 if row == ALL else len(row) for row in fits), default=-1)

    return frozenset(
        c.id
        for c in known_checks()
        if (on := weight(select, c.name, c.id)) >= 0
        and on > weight(off, c.name, c.id)
        and (not c.optional or not {ALL, c.id, c.name}.isdisjoint(select))
    )


@lru_cache(maxsize=256)
def _glob(glob: str) -> re.Pattern[str]:
    return re.compile(translate(glob))


def _matches(glob: str, path: str) -> bool:
    parts = path.split("/")
    return any(_glob(glob).match("/".join(parts[i:])) for i in range(len(parts)))


def parse_settings(table: Any) -> tuple[Settings, list[str]]:
    """Return the settings in a table of TOML or JSON, and its problems, a line each.

    Invalid entries are dropped; the rest applies.
    """
    if not isinstance(table, dict):
        return Settings(), ["is not a table"]
    problems = [f"unknown key {key!r}: one of {', '.join(KEYS)}" for key in table if key not in KEYS]
    select = _ids(table.get("select", ["DT"]), "select", problems)
    ignore = _ids(table.get("ignore", []), "ignore", problems)
    severity: dict[str, Severity] = {}
    for key, value in _table(table.get("severity", {}), "severity", problems).items():
        ids = _ids([key], "severity", problems)
        if value not in get_args(Severity):
            problems.append(f"severity of {key}: {value!r} is none of {', '.join(get_args(Severity))}")
            continue
        severity |= dict.fromkeys(_select(ids, ()), value)
    per_file = [
        (str(glob), _ids(ids, f"per-file-ignores of {glob}", problems))
        for glob, ids in _table(table.get("per-file-ignores", {}), "per-file-ignores", problems).items()
    ]
    exclude = _texts(table.get("exclude", []), "exclude", "paths", problems)
    return Settings(select, ignore, severity, tuple(per_file), tuple(glob.strip("/") for glob in exclude)), problems


def _table(value: Any, key: str, problems: list[str]) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    problems.append(f"{key}: is not a table")
    return {}


def _ids(value: Any, key: str, problems: list[str]) -> tuple[str, ...]:
    ids = _texts(value, key, "ids", problems)
    known = list(known_checks())
    fits = {v for v in ids if v == ALL or any(c.id.startswith(v) or c.name == v for c in known)}
    problems += [f"{key}: no check {v!r}" for v in ids if v not in fits]
    return ids


def _texts(value: Any, key: str, what: str, problems: list[str]) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        problems.append(f"{key}: is not a list of {what}")
        return ()
    return tuple(v for v in value if v)
