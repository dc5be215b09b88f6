"""The index: what is computed from the knowledge once, because reading and weighing its files takes 0.8 s.

A wheel contains it, built by extension/hatch_build.py. In a checkout it is built when it is needed, in a folder that
git ignores. Nothing is written anywhere else: without an index, everything is computed in memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from functools import lru_cache
from pathlib import Path
from threading import RLock
from typing import TypeVar

import msgspec

import dtdebug_taxonomy
from dtdebug_taxonomy.storage import write

_HOME = Path(dtdebug_taxonomy.__path__[0])
_folder = _HOME / "_index"
_in_checkout = (_HOME.parents[1] / "extension" / "hatch_build.py").is_file()
_writes = _in_checkout
_APART = {"_index", "__pycache__", "checks", "labs", "topics"}
"""Folders from which nothing is computed, or only what names them."""
_RELEASE = f"dtdebug {dtdebug_taxonomy.__version__}\n".encode()

T = TypeVar("T")
_lock = RLock()
"""Serialises decoding: msgspec inspects a type without a lock, and two threads that do so first crash the process."""


def load_cached(name: str, kind: type[T], make: Callable[[], T], folders: tuple[Path, ...] = ()) -> T:
    """Return what `make` returns, from the index if that was made from the files as they are now.

    These are the files of the knowledge and of the named folders. An installed wheel's index is trusted if it is of
    the same release. An unreadable or unwritable folder only costs time.
    """
    with _lock:
        path = _folder / f"{name}.msgpack"
        stamp = _stamp(folders) if _in_checkout else _RELEASE
        with suppress(OSError, msgspec.MsgspecError):
            data = path.read_bytes()
            if data.startswith(stamp):
                return msgspec.msgpack.decode(memoryview(data)[len(stamp) :], type=kind)
        made = make()
        if _writes:
            with suppress(OSError) if _in_checkout else nullcontext():
                path.parent.mkdir(exist_ok=True)
                write(path, stamp + msgspec.msgpack.encode(made), mode=0o666)
        return made


def build_into(folder: Path) -> None:
    """Write whatever is requested from now on to a folder, as the index of this release: for the build hook."""
    global _folder, _in_checkout, _writes
    _folder, _in_checkout, _writes = folder, False, True


def _stamp(folders: tuple[Path, ...]) -> bytes:
    """Return names, sizes and times of the files that something is computed from: data, and modules that compute."""
    return "\n".join((*(row for folder in (_HOME, *folders) for row in _rows(folder)), "", "")).encode()


@lru_cache(maxsize=8)
def _rows(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(_walk(str(folder))))


def _walk(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith((".py", ".toml")):
                seen = entry.stat()
                yield f"{entry.path} {seen.st_mtime_ns} {seen.st_size}"
            elif entry.name not in _APART and entry.is_dir():
                yield from _walk(entry.path)
