"""User's state directory: the last diagnosis, and wizard sessions that survive a restart.

Files are 0600 in a folder that is 0700. An unwritable folder is not an error: the data
is then lost with the process, and `save` returns False.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from dtdebug_taxonomy.storage import folder, write

__all__ = [
    "LAST",
    "append",
    "folder",
    "home",
    "load",
    "modified_time",
    "open_regular",
    "read_start",
    "save",
    "sweep",
    "write",
]

LAST = "last.json"
"""Last diagnosed failure."""
DOCTOR = "doctor.json"

T = TypeVar("T")

_OURS = re.compile(r"(last|doctor|wizard|failures|dismissed|labs)\.json|checked\.msgpack|isolate|runs|kernels")
_TEMPORARY = re.compile(r"\..{1,200}\.[a-z0-9_]{8}")
_LARGEST = 64 << 20
"""Maximum size in bytes of a record; a larger one is not ours."""
_LEFT = 3600.0
"""Seconds after which a temporary file no longer has a writer."""


def home() -> Path:
    """Return the state directory, created if needed as 0700; one open to others is closed, with a message.

    Raises:
        OSError: it can't be made, is another user's, or is open to others and holds more than our files.

    """
    path = folder()
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    there = path.stat()
    if there.st_uid != os.geteuid() and os.geteuid():
        raise PermissionError(errno.EPERM, "belongs to another user; DTDEBUG_STATE names a folder of yours", str(path))
    if stat.S_IMODE(there.st_mode) & 0o077:
        if any(not name.startswith(".") and not _OURS.fullmatch(name) for name in os.listdir(path)):  # noqa: PTH208
            why = "is open to others and holds more than dtdebug's files; DTDEBUG_STATE names a folder of its own"
            raise PermissionError(errno.EPERM, why, str(path))
        path.chmod(0o700)
        from dtdebug.privacy.sanitize import complain

        complain(f"{path}: was open to others ({stat.S_IMODE(there.st_mode):o}); is 700 now")
    sweep(path, _LEFT)
    return path


def sweep(path: Path, age: float) -> None:
    """Remove temporary files of `write` older than `age` seconds, whose writers were killed."""
    with suppress(OSError):
        for entry in os.scandir(path):
            if _TEMPORARY.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    if time.time() - entry.stat(follow_symlinks=False).st_mtime >= age:
                        Path(entry.path).unlink()


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; refuse links and pipes, which others may put into a shared folder.

    Raises:
        OSError: there is no such file, or it can't be read.

    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    return os.fdopen(handle, "rb")


def read_start(path: Path, limit: int) -> bytes:
    """Return the beginning of a regular file.

    Raises:
        OSError: as for `opened`.

    """
    with open_regular(path) as file:
        return file.read(limit)


def append(path: Path) -> int:
    """Return a descriptor that appends to a regular file, which is created as 0600 if needed.

    Raises:
        OSError: it can't be written, or something else has this name.

    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    handle = os.open(path, flags, 0o600)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    return handle


def modified_time(name: str) -> float:
    """Return when a record was written, in seconds since the epoch; 0 if there is none."""
    try:
        return (folder() / name).stat().st_mtime
    except OSError:
        return 0.0


def save(name: str, value: object) -> bool:
    """Write a record as JSON by atomic rename; False if the directory can't be written."""
    try:
        write(home() / name, msgspec.json.encode(value))
    except OSError:
        return False
    return True


def load(name: str, kind: type[T]) -> T | None:
    """Return a stored record, or None if there is none or it can't be read."""
    try:
        return msgspec.json.decode(read_start(folder() / name, _LARGEST), type=kind)
    except (OSError, msgspec.MsgspecError, RecursionError):
        return None
