"""Positions as a client counts them: lines from 0, columns in units of UTF-8, UTF-16 or UTF-32."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from lsprotocol import types

from dtdebug_taxonomy.source.text import Span, Text


class Positions:
    """Translates between offsets in a text and a client's positions, in the negotiated encoding."""

    def __init__(self, encoding: str = types.PositionEncodingKind.Utf16) -> None:
        self.encoding = str(getattr(encoding, "value", encoding))

    def _units(self, text: str) -> int:
        if text.isascii() or self.encoding == "utf-32":
            return len(text)
        if self.encoding == "utf-8":
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text.encode("utf-16-le", "surrogatepass")) // 2

    def position(self, text: Text, offset: int) -> types.Position:
        """Return the position of an offset; one beyond the text counts as its end."""
        offset = min(max(offset, 0), len(text))
        line = bisect_right(text.starts, offset) - 1
        return types.Position(line, self._units(text[text.starts[line] : offset]))

    def range(self, text: Text, span: Span) -> types.Range:
        """Return the range of a span."""
        return types.Range(self.position(text, span.start), self.position(text, span.end))

    def offset(self, text: Text, position: types.Position) -> int:
        """Return the offset of a position; a column or line out of range counts as the end of the line or text."""
        if position.line >= len(text.starts):
            return len(text)
        start, end = text.starts[max(position.line, 0)], text.end_of_line(max(position.line, 0) + 1)
        return start + self._column(text[start:end], position.character)

    def _column(self, line: str, units: int) -> int:
        if line.isascii() or self.encoding == "utf-32":
            return min(max(units, 0), len(line))
        for number, character in enumerate(line):
            units -= self._units(character)
            if units < 0:  # a position inside a character counts as its start
                return number
        return len(line)

    def place(self, lines: Sequence[str], position: types.Position) -> tuple[int, int]:
        """Return index of the line and column in it of a position, as `offset` does for a whole text."""
        if position.line >= len(lines):
            return len(lines) - 1, len(lines[-1])
        number = max(position.line, 0)
        return number, self._column(lines[number], position.character)

    def span(self, text: Text, where: types.Range) -> Span:
        """Return the span of a range; a reversed range is swapped."""
        return Span(*sorted((self.offset(text, where.start), self.offset(text, where.end))))
