"""Ring buffer of the latest output, in memory shared by two processes: one puts, one takes, and neither waits.

The writer never waits for the reader: pieces not taken in time are overwritten, oldest first, and the reader learns
how many bytes were lost. The beginning has a separate place, which is never overwritten.
"""

from __future__ import annotations

import mmap
import struct
import threading
from collections import deque

_FRAME = struct.Struct("=BI")
"""Header of a piece: its mark, and its length in bytes."""
_FIRST, _LAST = 0, 1
"""Words of the shared header: the place before which pieces may be overwritten, and the end of the newest piece."""
_HEADER = 16
_STEP = 64 << 10
"""Bytes given up at once, so that a large piece need not visit each small one before it."""


class Ring:
    """Pieces of bytes, each with a small number as its mark; one process puts and one takes."""

    def __init__(self, head: int, size: int) -> None:
        self._head, self._size = head, size
        self._memory = mmap.mmap(-1, _HEADER + head + size)
        # Whole words: the other process must never see half of a number.
        self._words = memoryview(self._memory)[:_HEADER].cast("Q")
        self._bytes = memoryview(self._memory)[_HEADER:]
        self._lock = threading.Lock()
        self._starts: deque[int] = deque([0])
        """Start places of pieces, about one step apart."""
        self._taken = 0
        self.lost = 0
        """Number of bytes known to be overwritten before they were taken."""

    def put(self, mark: int, piece: memoryview) -> None:
        """Add a piece of at most half the ring; any thread of one process may call this."""
        with self._lock:
            begin = self._words[_LAST]
            end = begin + _FRAME.size + len(piece)
            if begin - self._starts[-1] >= _STEP:
                self._starts.append(begin)
            if end - self._head > self._size:
                self._give_up(end - self._size)
            self._write(begin, _FRAME.pack(mark, len(piece)))
            self._write(begin + _FRAME.size, piece)
            self._words[_LAST] = end

    def take(self) -> tuple[int, bytes] | None:
        """Return the oldest piece that was not taken or overwritten; None if there is none."""
        while self._taken < self._words[_LAST]:
            begin, after = self._taken, self._taken + _FRAME.size
            mark, size = _FRAME.unpack(self._read(begin, _FRAME.size))
            if self._is_whole(begin, after):  # otherwise the size that was read may be anything
                piece = self._read(after, size)
                if self._is_whole(begin, after + size):
                    self._taken = after + size
                    return mark, piece
            first = self._words[_FIRST]
            self.lost += first - begin
            self._taken = first
        return None

    def _is_whole(self, begin: int, end: int) -> bool:
        """True if what was read there was not overwritten meanwhile."""
        return end <= self._head or self._words[_FIRST] <= begin

    def _give_up(self, before: int) -> None:
        """Mark whatever begins before that place as overwritten."""
        while self._starts[0] < before:
            self._starts.popleft()
        self._words[_FIRST] = self._starts[0]

    def _parts(self, place: int, size: int) -> list[tuple[int, int]]:
        """Return offset and length of each part of `size` bytes at a place."""
        parts = []
        while size:
            offset = place if place < self._head else self._head + (place - self._head) % self._size
            room = (self._head if place < self._head else self._head + self._size) - offset
            parts.append((offset, min(size, room)))
            place, size = place + parts[-1][1], size - parts[-1][1]
        return parts

    def _write(self, place: int, data: bytes | memoryview) -> None:
        done = 0
        for offset, size in self._parts(place, len(data)):
            self._bytes[offset : offset + size] = data[done : done + size]
            done += size

    def _read(self, place: int, size: int) -> bytes:
        return b"".join(bytes(self._bytes[offset : offset + n]) for offset, n in self._parts(place, size))
