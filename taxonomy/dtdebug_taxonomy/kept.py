"""What is worked out of the knowledge once, and kept in the state directory for the next process.

Reading and weighing the files takes longer than a diagnosis. A file begins with a digest of all that it was worked out
of (names, sizes and times of the knowledge's files and modules, the version of Python): a stale one is noticed.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import msgspec

from dtdebug_taxonomy.state import read_stamped, write_stamped

_HOME = Path(__file__).parent
_SOURCES = ("*.py", "*.toml", "symptoms/*.toml", "messages/*.toml", "observations/*.toml", "versions/*.toml")
_LIMIT = 32 << 20
"""Bytes that are read of a file: what is kept takes 3 MB."""

T = TypeVar("T")


def kept(name: str, kind: type[T], make: Callable[[], T]) -> T:
    """What `make` gives, from the file of that name if it is up to date.

    A folder that can't be read or written costs time only.
    """
    stamp, file = _stamp(), f"{name}.cache"
    if (data := read_stamped(file, stamp, _LIMIT)) is not None:
        with suppress(msgspec.MsgspecError):
            return msgspec.msgpack.decode(data, type=kind)
    made = make()
    write_stamped(file, stamp, msgspec.msgpack.encode(made))
    return made


@lru_cache(maxsize=1)
def _stamp() -> bytes:
    digest = hashlib.sha256(f"{msgspec.__version__} {sys.version}".encode())
    for pattern in _SOURCES:
        for path in sorted(_HOME.glob(pattern)):
            seen = path.stat()
            digest.update(f"{path} {seen.st_mtime_ns} {seen.st_size}\n".encode())
    return digest.digest()
