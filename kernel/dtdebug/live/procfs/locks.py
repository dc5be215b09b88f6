"""File locks from /proc/locks: holders and waiting processes."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress

import msgspec

_LINE = re.compile(
    r"\s{0,8}(?P<id>\d{1,9}):(?P<waits>\s{1,8}->)?\s{1,8}(?P<kind>FLOCK|POSIX|OFDLCK)\s{1,12}\S{1,12}\s{1,12}"
    r"(?P<access>\S{1,8})\s{1,12}(?P<pid>-?\d{1,10}) "
    r"(?P<major>[0-9a-f]{1,8}):(?P<minor>[0-9a-f]{1,8}):(?P<inode>\d{1,20})"
)
_MOST = 20_000
"""Maximum number of lines that are read."""


class Lock(msgspec.Struct, frozen=True, kw_only=True):
    """A line of /proc/locks."""

    kind: str
    pid: int
    """0 or less if its process is not visible here: in another container, or a lock of an open file."""
    device: tuple[int, int]
    inode: int
    waits: bool
    """True if the process waits for the lock."""
    line: str = ""

    @property
    def file(self) -> tuple[int, int, int]:
        """Return the identity of the file."""
        return (*self.device, self.inode)


def parse_locks(text: str) -> list[Lock]:
    """Return the locks in the text of /proc/locks; unreadable lines are left out."""
    found = []
    for line in text.splitlines()[:_MOST]:
        if m := _LINE.match(line):
            device = int(m["major"], 16), int(m["minor"], 16)
            found.append(
                Lock(
                    kind=m["kind"],
                    pid=int(m["pid"]),
                    device=device,
                    inode=int(m["inode"]),
                    waits=bool(m["waits"]),
                    line=" ".join(line.split()),
                )
            )
    return found


def awaited_lock(locks: Sequence[Lock], pid: int) -> Lock | None:
    """Return the lock that a process waits for."""
    return next((lock for lock in locks if lock.waits and lock.pid == pid), None)


def held_by(locks: Sequence[Lock], file: tuple[int, int, int], besides: int) -> int | None:
    """Return the process that is holding a lock of that file; None if none is visible."""
    return next((k.pid for k in locks if not k.waits and k.file == file and k.pid > 0 and k.pid != besides), None)


def identity(path: str) -> tuple[int, int, int] | None:
    """Return a file's identity in /proc/locks; None if it can't be found."""
    with suppress(OSError, ValueError):
        status = os.stat(path)  # noqa: PTH116 - /proc/PID/fd/N is followed as it is
        return os.major(status.st_dev), os.minor(status.st_dev), status.st_ino
    return None
