"""Finds the files to check, and reads their text and settings."""

from __future__ import annotations

import io
import os
import tokenize
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
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
_DEPTH = 100
"""Maximum number of folders in folders."""


_GIT_SECONDS = 10
"""Time limit for git, in seconds; a tree that takes longer is checked with what git ignores."""


_SNIFFED = 8192
"""Number of bytes at the beginning of a file that tell whether it is text."""


class UnreadableError(ValueError):
    """File that can't be read; the text names it and the reason."""


class NotCheckedError(UnreadableError):
    """File that is neither a program nor a configuration that a check concerns."""


def files_to_check(paths: Sequence[Path], *, exclude_named: bool = False) -> Iterator[Path]:
    """Yield the files to check: those named, and from folders those of a known kind, in a stable order.

    `exclude` of the settings and what git ignores hold for files found in folders; with `exclude_named`, the former
    also for files that are named.

    Raises:
        UnreadableError: a named path does not exist.

    """
    for path in paths:
        if path.is_dir():
            yield from _below(path, _ignored_by_git(path))
        elif not path.exists():
            raise UnreadableError(f"{path}: no such file or folder")
        elif not (exclude_named and _is_excluded(path)):
            yield path


def _below(folder: Path, ignored: frozenset[Path], depth: int = 0) -> Iterator[Path]:
    """Yield files, and folders that can't be read or are too deep. Links are not followed: none leads in a circle."""
    if depth > _DEPTH:
        yield folder
        return
    try:
        entries = sorted(os.scandir(folder), key=lambda e: e.name)
    except OSError:
        yield folder  # reading it reports why
        return
    settings, _ = settings_of(folder.absolute())
    for entry in entries:
        path = folder / entry.name
        if path in ignored or settings.excludes(path.as_posix()):
            continue
        if entry.is_dir(follow_symlinks=False):
            if entry.name not in _SKIPPED and not entry.name.startswith("."):
                more = _ignored_by_git(path) if os.path.exists(path / ".git") else frozenset()  # noqa: PTH110 - too long a name is none
                yield from _below(path, ignored | more, depth + 1)
        elif (entry.name.endswith(".ipynb") or is_known(entry.name)) and entry.is_file(follow_symlinks=False):
            yield path


def _is_excluded(path: Path) -> bool:
    """True if the settings exclude a file or a folder above it, as far as the path is written or below this folder."""
    settings, _ = settings_of(path.absolute().parent)
    here = Path.cwd()
    shown = path.relative_to(here) if path.is_absolute() and path.is_relative_to(here) else path
    return any(settings.excludes(part.as_posix()) for part in (shown, *shown.parents))


def _ignored_by_git(folder: Path) -> frozenset[Path]:
    """Return the files and folders below one that git ignores; none without git.

    A tracked file is never ignored. Settings of the repository that name programs to run are overridden.
    """
    import subprocess

    command = ["git", "-c", "core.fsmonitor=false", "-C", str(folder), "ls-files", "-z"]
    command += ["--others", "--ignored", "--exclude-standard", "--directory"]
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}  # those of a hook name one repository
    try:
        done = subprocess.run(
            command, env=kept, stdin=subprocess.DEVNULL, capture_output=True, timeout=_GIT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return frozenset()
    rows = (os.fsdecode(row).rstrip("/") for row in done.stdout.split(b"\0"))
    return frozenset(folder / row for row in rows if row not in {"", "."})  # ".": a named folder is meant to be checked


class File(NamedTuple):
    """Text of a file and its encoding."""

    text: str
    encoding: str


_NO_FILE = frozenset({"idna", "punycode", "raw-unicode-escape", "unicode-escape"})
"""Encodings of names and of literals; a long text in one may take quadratic time."""


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
        raise UnreadableError(f"{path}: larger than {LARGEST // 1_000_000} MB, taken for data and skipped")
    if b"\0" in data[:_SNIFFED] and not data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise UnreadableError(f"{path}: not text, skipped")
    return decode_source(path, data)


def decode_source(path: Path, data: bytes) -> File:
    """Decode a file in the encoding that a Python file declares, else in UTF-8; raises UnreadableError."""
    encoding = "utf-8"
    if path.suffix == ".py" and b"coding" in data[:200]:
        try:
            encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        except (SyntaxError, LookupError):
            raise UnreadableError(f"{path}: declares an unknown encoding, skipped") from None
    try:
        return File(data.decode("" if encoding.replace("_", "-") in _NO_FILE else encoding), encoding)
    except LookupError:
        raise UnreadableError(f"{path}: declares {encoding}, which is not an encoding of text; skipped") from None
    except UnicodeDecodeError as error:
        raise UnreadableError(f"{path}: not {encoding} text (byte {error.start}), skipped: save it as UTF-8") from None
    except ValueError as error:  # an encoding that refuses every text
        raise UnreadableError(f"{path}: not {encoding} text ({error}), skipped: save it as UTF-8") from None


@cache
def settings_of(folder: Path) -> tuple[Settings, tuple[str, ...]]:
    """Return the settings of the nearest `pyproject.toml` with `[tool.dtdebug]`, and the problems in it."""
    for home in (folder, *folder.parents):
        file = home / "pyproject.toml"
        if not os.path.isfile(file):  # noqa: PTH113 - too long a name is none
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
