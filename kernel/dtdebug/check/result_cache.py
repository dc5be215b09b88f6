"""Caches the findings in unchanged files by content, version and settings, in the state folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path

import msgspec

import dtdebug_taxonomy
from dtdebug.check.examine_file import ExaminedFile, Selection
from dtdebug.check.files import LARGEST, settings_of
from dtdebug.storage import state_dir
from dtdebug_taxonomy import named_files

_MOST = 50_000
"""Maximum number of cached files; those of the last run take precedence."""
_LARGEST_STORE = 64_000_000
"""Maximum size of the store in bytes; a larger one is neither written nor read."""


class _Row(msgspec.Struct, frozen=True, array_like=True):
    """Cached result of a file."""

    examined: ExaminedFile
    around: bytes
    """Digest of the contents of the modules that were read for it."""


class ResultCache:
    """Results of earlier runs that are valid for this version and these settings."""

    def __init__(self, choice: Selection) -> None:
        self._file = state_dir.folder() / "checked.msgpack"
        self._salt = blake2b(f"{_stamp()} {choice!r}".encode(), digest_size=16).digest()
        self._former = _read(self._file)
        self._used: dict[bytes, bytes] = {}
        self._keys: dict[Path, bytes] = {}
        self._modules: dict[str, bytes] = {}
        """Digests of the modules that files import."""

    def find(self, path: Path) -> ExaminedFile | None:
        """Return the findings in a file with this content, or None if they are not cached."""
        key = self._key(path)
        stored = self._former.get(key) if key else None
        if key is None or stored is None:
            return None
        try:
            found = msgspec.msgpack.decode(stored, type=_Row)
        except msgspec.DecodeError:
            return None
        if found.around != self._around(found.examined.consulted):
            return None
        self._used[key] = stored
        return found.examined

    def add(self, path: Path, examined: ExaminedFile) -> None:
        """Cache a result, except of a file with problems, which may disappear by the next run."""
        key = self._keys.get(path)
        if key is not None and not examined.problems:
            self._used[key] = msgspec.msgpack.encode(_Row(examined, self._around(examined.consulted)))

    def write(self) -> None:
        """Store the results of this run and earlier ones up to the limit; a failure only costs time."""
        rest = {k: v for k, v in self._former.items() if k not in self._used}
        rows = [*self._used.items(), *rest.items()][:_MOST]
        if not self._used.keys() - self._former.keys():
            return
        data = msgspec.msgpack.encode(dict(rows))
        if len(data) > _LARGEST_STORE:
            return
        with suppress(OSError):
            state_dir.write(state_dir.home() / self._file.name, data)

    def _around(self, consulted: Iterable[str]) -> bytes:
        """Return a digest that changes with each of these modules."""
        found = blake2b(digest_size=16)
        for path in consulted:
            if path not in self._modules:
                with suppress(OSError):
                    self._modules[path] = blake2b(named_files.read_file(path, LARGEST), digest_size=16).digest()
            found.update(self._modules.get(path, b"gone"))
        return found.digest()

    def _key(self, path: Path) -> bytes | None:
        try:
            data = named_files.read_file(path, LARGEST)
        except OSError:
            return None
        settings = repr(settings_of(path.absolute().parent))
        named = blake2b(self._salt, digest_size=16)
        for part in (str(path).encode(errors="surrogateescape"), settings.encode(), data):
            named.update(len(part).to_bytes(8, "little"))
            named.update(part)
        return self._keys.setdefault(path, named.digest())


def _read(file: Path) -> dict[bytes, bytes]:
    try:
        if file.stat().st_size > _LARGEST_STORE:
            return {}
        return msgspec.msgpack.decode(file.read_bytes(), type=dict[bytes, bytes])
    except (OSError, msgspec.DecodeError):
        return {}


@cache
def _stamp() -> str:
    """Return a digest that changes with the interpreter and with each file of the knowledge and the checks."""
    found = blake2b(sys.version.encode(), digest_size=16)
    for root in (Path(dtdebug_taxonomy.__file__).parent, Path(__file__).parent):
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(f for f in folders if f != "__pycache__")
            for name in sorted(names):
                seen = Path(folder, name).stat()
                found.update(f"{name} {seen.st_size} {seen.st_mtime_ns}\n".encode())
    return found.hexdigest()
