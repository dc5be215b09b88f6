"""Budget of one command for files that cost more than their size, shared by all its readers.

A file may cost what usual files of its size cost. What it takes beyond that, in processor time or in bytes after
unpacking, comes from one pool: a folder of hostile files costs no more than the pool, however many they are.
"""

from __future__ import annotations

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


class Budget:
    """Remains of the pools."""

    def __init__(self) -> None:
        self.seconds = 2.0
        """Processor seconds beyond those that files of such sizes take."""
        self.unpacked = 64 << 20
        """Bytes unpacked beyond the usual ratio."""
        self.again = AGAIN
        """Bytes that may still be read more than once."""

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
def one_command() -> Iterator[None]:
    """Count what all readers spend while a command runs together."""
    _running.append(Budget())
    try:
        yield
    finally:
        _running.pop()


def current() -> Budget:
    """Return the budget of the running command; outside of one, as in a kernel, each reader has its own."""
    return _running[-1] if _running else Budget()


def json_memory(data: bytes) -> int:
    """Return the bytes of memory that JSON may take once it is read, counted before anything is allocated."""
    return len(data) + _TABLE * data.count(b"{") + _LIST * data.count(b"[") + _ITEM * data.count(b",")
