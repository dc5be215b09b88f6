"""A statement of several lines as one line, and the way back from its columns to the lines of the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MOST_LINES, MOST_CHARACTERS = 16, 400
"""Largest statement that is joined."""
_OPENS, _CLOSES = "([{", ")]}"


class Joined(NamedTuple):
    """The text, and for each character its line, counted from 0, and its column there; -1 for a space between lines."""

    text: str
    at: tuple[tuple[int, int], ...]

    def column(self, line: int, column: int) -> int:
        """Return the column in the text of a place in the lines; -1 if it has none."""
        return next((n for n, each in enumerate(self.at) if each == (line, column)), -1)


def join_lines(lines: Sequence[str]) -> Joined | None:
    """Return the lines as one, without their indentation; None if they hold a comment or a string of several lines."""
    if not 1 < len(lines) <= MOST_LINES or any(mark in line for line in lines for mark in ("#", '"""', "'''", "\\")):
        return None
    text, at = "", list[tuple[int, int]]()
    for n, line in enumerate(lines):
        bare = line.strip()
        if text and bare and text[-1] not in _OPENS and bare[0] not in _CLOSES:
            text, at = f"{text} ", [*at, (n, -1)]
        begin = len(line) - len(line.lstrip())
        text += bare
        at += [(n, begin + i) for i in range(len(bare))]
    return Joined(text, tuple(at)) if text and text.isascii() and len(text) <= MOST_CHARACTERS else None


def joined_as(lines: Sequence[str], text: str) -> tuple[int, Joined] | None:
    """Return the number of lines, from the first, that are a text when joined, and the text with its columns."""
    for size in range(2, min(len(lines), MOST_LINES) + 1):
        joined = join_lines(lines[:size])
        if joined is not None and joined.text == text:
            return size, joined
    return None


def edit_lines(lines: Sequence[str], joined: Joined, text: str) -> list[str]:
    """Return the lines after an edit of their joined text; the lines that it does not touch stay as they are."""
    for at in range(len(lines)):
        left = join_lines([*lines[:at], *lines[at + 1 :]])
        if left is not None and _without_last_commas(left.text) == _without_last_commas(text):
            return [*lines[:at], *lines[at + 1 :]]
    old = joined.text
    first = next((n for n, (a, b) in enumerate(zip(old, text, strict=False)) if a != b), min(len(old), len(text)))
    most = min(len(old), len(text)) - first
    last = next((n for n in range(most) if old[-1 - n] != text[-1 - n]), most)
    begin, end = first, len(old) - last
    while end < len(old) and joined.at[end][1] < 0:
        end += 1
    new = text[begin : len(text) - (len(old) - end)]
    from_line, from_column = joined.at[begin] if begin < len(old) else (0, -1)
    if from_column < 0:  # a space that the file has not, or the end
        from_line, from_column = joined.at[begin - 1][0], joined.at[begin - 1][1] + 1
    to_line, to_column = joined.at[end] if end < len(old) else (len(lines) - 1, len(lines[-1]))
    head, tail = lines[from_line][:from_column], lines[to_line][to_column:]
    return [*lines[:from_line], f"{head}{new}{tail}", *lines[to_line + 1 :]]


def _without_last_commas(text: str) -> str:
    for close in _CLOSES:
        text = text.replace(f",{close}", close)
    return text
