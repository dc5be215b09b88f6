"""Opens files that a user names or that are among logs, without blocking on pipes, devices or files of the kernel."""

from __future__ import annotations

import errno
import io
import os
import select
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from dtdebug.storage import budget
from dtdebug_taxonomy import named_files

_WAIT = 5.0
"""Seconds to wait for a writer of a pipe."""


def log(path: str | Path, *, pipes: bool = False) -> io.FileIO:
    """Open a regular file without waiting; with `pipes` also a pipe with a writer, and a terminal.

    Raises:
        OSError: it can't be read, or is something else; the text names its type.

    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | getattr(os, "O_NONBLOCK", 0))
    try:
        why = _refusal_reason(handle, pipes=pipes)
    except BaseException:
        os.close(handle)
        raise
    if why:
        os.close(handle)
        raise OSError(errno.EINVAL, why, str(path))
    os.set_blocking(handle, True)
    budget.current().allow(str(path), os.fstat(handle).st_size)
    return io.FileIO(handle, "rb")


def standard_input() -> BinaryIO:
    """Return standard input; raises OSError if it is closed, or a file of the kernel, which may never end."""
    if sys.stdin is None:
        raise OSError(errno.EBADF, "is closed", "standard input")
    handle = -1
    with suppress(OSError, ValueError):  # that of a test has no descriptor
        handle = sys.stdin.fileno()
    if handle >= 0 and stat.S_ISREG(os.fstat(handle).st_mode) and (why := named_files.refusal_reason(handle)):
        raise OSError(errno.EINVAL, why, "standard input")
    return sys.stdin.buffer


def read_text(path: str | Path, most: int) -> str:
    """Read at most `most` characters of a file or pipe that the user names.

    Raises:
        OSError: as by `log`.

    """
    with io.TextIOWrapper(io.BufferedReader(log(path, pipes=True)), encoding="utf-8", errors="replace") as file:
        return file.read(most)


def _refusal_reason(handle: int, *, pipes: bool) -> str:
    there = os.fstat(handle)
    if stat.S_ISFIFO(there.st_mode) and pipes:
        return "" if _has_writer(handle) else f"is a pipe without data for {_WAIT:g} s"
    if stat.S_ISCHR(there.st_mode) and pipes and there.st_rdev in _of_this_user():
        return ""
    return named_files.refusal_reason(handle)


def _of_this_user() -> set[int]:
    """Return the numbers of the devices that end: the terminal at which the user sits, and the one that is empty."""
    devices = {Path(os.devnull).stat().st_rdev}
    for handle in range(3):
        with suppress(OSError):
            devices |= {os.fstat(handle).st_rdev} if os.isatty(handle) else set()
    with suppress(OSError):
        devices.add(Path("/dev/tty").stat().st_rdev)
    return devices


def _has_writer(pipe: int) -> bool:
    """True if there is data, or if the writer has closed the pipe."""
    waiting = select.poll()
    waiting.register(pipe, select.POLLIN)
    return bool(waiting.poll(1000 * _WAIT))
