"""Finds the lines of a log that hold one of some words, without a search of each line for each word.

A long log has few kinds of lines: they differ in numbers and addresses. A kind is searched once, and a block costs
little more than it takes to split it.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate

HEX = b"0123456789abcdefABCDEF"
"""Characters that lines of one kind differ in."""
_KINDS, _BYTES = 60_000, 6 << 20
"""Maximum number of kinds remembered, and their maximum total size in bytes; beyond that all are searched again."""

_AGAIN = 15


class LinesWithWords:
    """Finder of lines with any of the words, in small letters or capitals; `first` are others, as they are spelled."""

    def __init__(self, words: Sequence[bytes], first: Sequence[bytes] = ()) -> None:
        self._words, self._first = words, first
        self._levels: dict[bytes, int] = {}
        self._bytes = 0
        self._unlike = 0
        """Number of the next blocks that are searched as they are, since lines of the last one had few kinds alike."""

    def levels(self, block: bytes, lines: list[bytes]) -> list[int]:
        """Return for each line of a block 2 if its kind holds one of the other words, 1 if one of the words, else 0."""
        if self._unlike:
            self._unlike -= 1
            return self._search(block, len(lines))
        kinds = block.translate(None, HEX).split(b"\n")
        if fresh := list(set(kinds) - self._levels.keys()):
            line_of = dict(zip(kinds, lines, strict=True))
            found = self._search(b"\n".join(map(line_of.__getitem__, fresh)), len(fresh))
            self._levels.update(zip(fresh, found, strict=True))
            self._bytes += sum(map(len, fresh))
            self._unlike = _AGAIN if len(fresh) > len(lines) // 2 else 0
        levels = list(map(self._levels.__getitem__, kinds))
        if len(self._levels) > _KINDS or self._bytes > _BYTES:
            self._levels.clear()
            self._bytes = 0
        return levels

    def _search(self, text: bytes, lines: int) -> list[int]:
        found = [0] * lines
        ends = list(accumulate(len(line) + 1 for line in text.split(b"\n")))
        for level, words, where in ((1, self._words, text.lower()), (2, self._first, text)):
            for word in words:
                at = where.find(word)
                while at >= 0:
                    line = bisect(ends, at)
                    found[line] = level
                    at = where.find(word, ends[line])
        return found
