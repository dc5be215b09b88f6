"""Text with lines as editors and Python count them, and places in it.

An offset counts code points from the beginning of the text; lines and columns that are
shown begin at 1. `str.splitlines` is unsuitable: it also splits at form feeds and at U+2028.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

_END_OF_LINE = re.compile(r"\r\n|\n|\r")


def whole_number(text: str) -> int | None:
    """Return the number that decimal digits write; None for other text, or more digits than a number in use has."""
    return int(text) if text.isdecimal() and len(text) < 20 else None


class Span(NamedTuple):
    """Part of a text: offsets of its first code point and of the one after its last."""

    start: int
    end: int


class Place(NamedTuple):
    """Line and column, both from 1, the column in code points."""

    line: int
    column: int


class Text(str):
    """Text with the offsets of its lines."""

    __slots__ = ("_starts",)
    _starts: list[int]

    @property
    def starts(self) -> list[int]:
        """Offsets at which lines begin; computed on first use, since of most texts nothing is shown."""
        try:
            return self._starts
        except AttributeError:
            self._starts = [0, *(m.end() for m in _END_OF_LINE.finditer(self))]
            return self._starts

    def place(self, offset: int) -> Place:
        """Return the line and column of an offset."""
        line = bisect_right(self.starts, offset)
        return Place(line, offset - self.starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """Return a line by its number from 1, without its end; empty if it does not exist."""
        if not 0 < number <= len(self.starts):
            return ""
        return self[self.starts[number - 1] : self.end_of_line(number)]

    def end_of_line(self, number: int) -> int:
        """Return the offset at which a line ends, before its line break."""
        if number == len(self.starts):
            return len(self)
        end = self.starts[number]
        return end - 2 if self[end - 2 : end] == "\r\n" else end - 1

    def lines(self) -> list[str]:
        """Return all lines without their ends."""
        return _END_OF_LINE.split(self)

    def offset_of_byte(self, line: int, byte: int) -> int:
        """Return the offset of a place in terms of `ast`: line from 1, column in bytes of UTF-8 from 0."""
        start = self.starts[line - 1]
        if self.isascii():
            return start + byte
        return start + len(self.line(line).encode("utf-8", "surrogatepass")[:byte].decode("utf-8", "replace"))
