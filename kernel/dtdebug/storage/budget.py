"""Budget of one command for files that cost more than their size, shared by all its readers.

A file may cost what usual files of its size cost. What it takes beyond that, in processor time or in bytes after
unpacking, comes from one pool: a folder of hostile files costs no more than the pool, however many they are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

MEMORY = 640 << 20
"""Bytes that reading may allocate at a time."""
AGAIN = 1 << 30
"""Bytes that may be read more than once, where it is not clear at which a record ends."""
_FOLD, LOG_FOLD, _LARGE_FOLD, _LARGE = 40, 100, 50, 128 << 20
"""Maximum usual ratio of compressed records and traces, of logs, of large logs, and the size that makes a log large:
what repeats in a small one may hide its end."""
_LIST, _TABLE, _ITEM = 64, 240, 56
"""Bytes of memory for each list, table and item of JSON; a small table has room for some items."""
_USUAL, _EACH, _PER_BYTE, _PER_PACKED = 6.0, 0.02, 5e-7, 1e-6
"""Processor seconds of a command that reads logs, and more for each file, each byte of it, and each compressed one."""
_GRACE = 3.0
"""Processor seconds from late to spent: readers that look at the time end by themselves, with what they have."""
LATE = "takes far longer to read than a log of its size; the rest was not read"
_PACKED = (".gz", ".tgz", ".bz2", ".xz", ".lzma", ".zst", ".zstd")


class Budget:
    """Remains of the pools."""

    def __init__(self, *, waits: bool = False) -> None:
        """Make full pools; a command that waits for a job has no limit of time, for its own grows with the job's."""
        self.seconds = 2.0
        """Processor seconds beyond those that files of such sizes take."""
        self.unpacked = 64 << 20
        """Bytes unpacked beyond the usual ratio."""
        self.again = AGAIN
        """Bytes that may still be read more than once."""
        self._began, self._allowed = time.process_time(), math.inf if waits else _USUAL
        self._counted: set[str] = set()

    def allow(self, path: str, size: int) -> None:
        """Add the time that a log of this size usually takes, once for each path."""
        if path not in self._counted:
            self._counted.add(path)
            self._allowed += _EACH + size * (_PER_PACKED if path.endswith(_PACKED) else _PER_BYTE)

    def is_late(self) -> bool:
        """True if the command has taken far more processor time than reading such logs does."""
        return time.process_time() - self._began > self._allowed

    def grant(self, seconds: float) -> None:
        """Add processor time that a reader bounds itself."""
        self._allowed += seconds

    def is_spent(self) -> bool:
        """True if the command has to end, whatever it is doing."""
        return time.process_time() - self._began > self._allowed + _GRACE

    def check_time(self) -> None:
        """Raise OSError if the command is late."""
        if self.is_late():
            raise OSError(0, LATE)

    def read_again(self, count: int) -> None:
        """Count bytes that will be read once more; raises OSError if they are too many."""
        self.again -= count
        if self.again < 0:
            raise OSError(0, "its records can't be told apart in reasonable time")


class Allowance:
    """Bytes that one compressed file may unpack to: in proportion to its size, then from the pool."""

    def __init__(self, packed: int, fold: int = _FOLD) -> None:
        self._left = fold * packed
        if fold > _FOLD:
            self._left = min(self._left, max(_LARGE, _LARGE_FOLD * packed))
        self._said = self._left // max(1, packed)
        self._budget = current()

    def take(self, count: int) -> None:
        """Count bytes that were unpacked; raises OSError if they are too many."""
        own = min(self._left, count)
        self._left -= own
        self._budget.unpacked -= count - own
        if self._budget.unpacked < 0:
            raise OSError(0, f"unpacks to more than {self._said} times its size")


_running: list[Budget] = []


@contextmanager
def one_command(*, waits: bool = False) -> Iterator[None]:
    """Count what all readers spend while a command runs together; `waits` if it starts or watches a job."""
    _running.append(Budget(waits=waits))
    try:
        yield
    finally:
        _running.pop()


def begin_share(parts: int) -> None:
    """Give this process its part of the pools, as one of those that a command has started."""
    mine = Budget()
    mine.seconds /= parts
    mine.unpacked //= parts
    mine.again //= parts
    _running[:] = [mine]


def current() -> Budget:
    """Return the budget of the running command; outside of one, as in a kernel, each reader has its own."""
    return _running[-1] if _running else Budget()


def json_memory(data: bytes) -> int:
    """Return the bytes of memory that JSON may take once it is read, counted before anything is allocated."""
    return len(data) + _TABLE * data.count(b"{") + _LIST * data.count(b"[") + _ITEM * data.count(b",")
