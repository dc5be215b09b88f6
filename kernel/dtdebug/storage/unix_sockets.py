"""Unix sockets: short names for long paths, and removal of sockets of dead processes."""

from __future__ import annotations

import os
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LIMIT = 107
"""Maximum length in bytes of a Unix socket's path, by https://man7.org/linux/man-pages/man7/unix.7.html."""
_PATIENCE = 0.2
"""Seconds for a living process to accept the connection; without an answer it counts as living."""


@contextmanager
def address(path: Path) -> Iterator[str]:
    """Yield the name to bind or connect to: the path itself if it fits, else one via its folder.

    Raises:
        OSError: the folder is missing, or the path is too long and this system has no alternative.

    """
    if len(os.fsencode(path)) <= _LIMIT:
        yield str(path)
        return
    if sys.platform != "linux":
        raise OSError("too long a path for a socket")
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def sweep(parent: Path, prefix: str, name: str) -> None:
    """Remove our folders of that prefix whose socket `name` has no server any more: its process was killed."""
    with suppress(OSError):
        for folder in parent.glob(f"{prefix}*"):
            with suppress(OSError):
                if folder.lstat().st_uid == os.geteuid() and _is_dead(folder / name):
                    (folder / name).unlink()
                    folder.rmdir()


def _is_dead(path: Path) -> bool:
    if not stat.S_ISSOCK(path.lstat().st_mode):
        return False
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(_PATIENCE)
        try:
            client.connect(str(path))
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False
