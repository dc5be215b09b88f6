"""On-disk cache of data derived from the knowledge files.

Reading and weighing the files takes longer than a diagnosis. A cache file begins with a digest of its inputs (names,
sizes and times of the knowledge's files and modules, the version of Python), so that a stale one is noticed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from threading import RLock
from typing import TypeVar

import msgspec

from dtdebug_taxonomy.storage import read_stamped, write_stamped

_HOME = Path(__file__).parents[1]
_SOURCES = tuple(_HOME / name for name in ("", "knowledge", "text", "symptoms", "messages", "observations", "versions"))
_LIMIT = 32 << 20
"""Maximum number of bytes read of a file; the cache takes 3 MB."""

T = TypeVar("T")
_lock = RLock()
"""Serialises decoding: msgspec inspects a type without a lock, and two threads that do so first crash the process."""


def load_cached(name: str, kind: type[T], make: Callable[[], T], sources: tuple[Path, ...] = _SOURCES) -> T:
    """Return the cached result of `make`, or a new one if the cache file does not match the sources' state.

    A folder that can't be read or written costs time only.
    """
    with _lock:
        stamp, file = _stamp(sources), f"{name}.cache"
        if (data := read_stamped(file, stamp, _LIMIT)) is not None:
            with suppress(msgspec.MsgspecError):
                return msgspec.msgpack.decode(data, type=kind)
        made = make()
        write_stamped(file, stamp, msgspec.msgpack.encode(made))
        return made


@lru_cache(maxsize=4)
def _stamp(sources: tuple[Path, ...]) -> bytes:
    rows = [f"{msgspec.__version__} {sys.version}"]
    for folder in sources:
        with os.scandir(folder) as entries:
            files = sorted((e.name, e.stat()) for e in entries if e.name.endswith((".py", ".toml")))
        rows += (f"{folder}/{name} {seen.st_mtime_ns} {seen.st_size}" for name, seen in files)
    return "\n".join(rows).encode()
