"""Finds the files to check, and reads their text and settings."""

from __future__ import annotations

import io
import os
import tokenize
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from dtdebug.storage import safe_open
from dtdebug_taxonomy import named_files
from dtdebug_taxonomy.checks.run import settings as rules
from dtdebug_taxonomy.checks.run.settings import Settings
from dtdebug_taxonomy.source.config.toml import read_toml
from dtdebug_taxonomy.source.kinds import is_known

LARGEST = 2_000_000
"""Size in bytes above which a file counts as data, not a program."""
_SKIPPED = frozenset({
    "__pycache__", "node_modules", "site-packages", "dist-packages", "venv", "env", "build", "dist", "wandb", "mlruns",
})  # fmt: skip
"""Folders below the given ones without the user's own code; those that begin with a dot are skipped too."""


class UnreadableError(ValueError):
    """File that can't be read; the text names it and the reason."""


def files_to_check(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the files to check: those named, and from folders those of a known kind, in a stable order.

    Raises:
        UnreadableError: a named path does not exist.

    """
    for path in paths:
        if path.is_dir():
            yield from _below(path)
        elif path.exists():
            yield path
        else:
            raise UnreadableError(f"{path}: no such file or folder")


def _below(folder: Path) -> Iterator[Path]:
    """Yield files and unreadable folders. Links are not followed, so that none leads in a circle or out of the tree."""
    try:
        entries = sorted(os.scandir(folder), key=lambda e: e.name)
    except OSError:
        yield folder  # reading it reports why
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if entry.name not in _SKIPPED and not entry.name.startswith("."):
                yield from _below(Path(entry.path))
        elif (entry.name.endswith(".ipynb") or is_known(entry.name)) and entry.is_file(follow_symlinks=False):
            yield Path(entry.path)


class File(NamedTuple):
    """Text of a file and its encoding."""

    text: str
    encoding: str


def read_source(path: Path) -> File:
    """Read a file in the encoding that a Python file declares, else in UTF-8.

    Raises:
        UnreadableError: it can't be read, is not text, or is too large.

    """
    try:
        with safe_open.log(path) as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise UnreadableError(f"{path}: can't be read: {error.strerror}") from None
    if len(data) > LARGEST:
        raise UnreadableError(f"{path}: is larger than {LARGEST // 1_000_000} MB, so it is taken for data")
    return decode_source(path, data)


def decode_source(path: Path, data: bytes) -> File:
    """Decode a file in the encoding that a Python file declares, else in UTF-8; raises UnreadableError."""
    encoding = "utf-8"
    if path.suffix == ".py" and b"coding" in data[:200]:
        try:
            encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        except (SyntaxError, LookupError):
            raise UnreadableError(f"{path}: declares an encoding that is not known") from None
    try:
        return File(data.decode(encoding), encoding)
    except LookupError:
        raise UnreadableError(f"{path}: declares an encoding that is none of text: {encoding}") from None
    except UnicodeDecodeError as error:
        raise UnreadableError(f"{path}: is no {encoding} text (byte {error.start}): save it as UTF-8") from None


@cache
def settings_of(folder: Path) -> tuple[Settings, tuple[str, ...]]:
    """Return the settings of the nearest `pyproject.toml` with `[tool.dtdebug]`, and the problems in it."""
    for home in (folder, *folder.parents):
        file = home / "pyproject.toml"
        if not file.is_file():
            continue
        try:
            table = read_toml(named_files.read_file(file, LARGEST).decode())
        except (OSError, ValueError) as error:
            return Settings(), (f"{file}: {error}; the default settings hold",)
        tool = table.get("tool")
        if isinstance(tool, dict) and "dtdebug" in tool:
            found, problems = rules.parse_settings(tool["dtdebug"])
            return found, tuple(f"{file}: [tool.dtdebug] {p}" for p in problems)
    return Settings(), ()
