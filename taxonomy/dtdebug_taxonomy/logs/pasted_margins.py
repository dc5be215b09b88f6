"""Takes off what pasting sets before lines: blanks, marks of a quote, line numbers. Numbers of lines stay as they are.

Only a block that holds an exception loses its margin: elsewhere, indentation is part of what was printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_LONGEST = 400_000
"""Maximum number of characters of a pasted text; a longer one is a log."""
_HEAD = "Traceback (most recent call last)"
_RAISED = re.compile(r"(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,80}(?:Error|Exception|Interrupt)(?:: \S|$)")
_MARK = re.compile(r"[ \t]{0,4}([>│|┃▏])(?: |$)")
_NUMBER = re.compile(r"[ \t]{0,8}(\d{1,6})(?:[ \t]?[|│:](?: |$)|[ \t]{1,4}|$)")
_FRAME = re.compile(r'[ \t]{0,12}File "')
_RUN = 3
"""Minimum number of lines with consecutive numbers, the head of a traceback and a frame next to each other in them."""
_DEEPEST = 16
"""Maximum number of blanks before a lone line."""


def without_margins(text: str) -> str:
    """Return a text whose exceptions stand at the margin; the text itself if it has none to take off."""
    if len(text) > _LONGEST or not any(word in text for word in ("Error", "Exception", "Interrupt", _HEAD)):
        return text
    rows = text.split("\n")
    boxed = "╭" in text or "Exception Group" in text or "ExceptionGroup" in text
    for take in (_without_numbers, _without_marks) if not boxed else (_without_numbers,):
        for start, end in _blocks(rows):
            rows[start:end] = take(rows[start:end])
    for start, end in _blocks(rows):
        rows[start:end] = _without_blanks(rows[start:end])
    return "\n".join(rows)


def _blocks(rows: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the runs of lines without an empty one."""
    start = 0
    for at, row in enumerate((*rows, "")):
        if not row.strip():
            if at > start:
                yield start, at
            start = at + 1


def _without_numbers(rows: list[str]) -> list[str]:
    """Take off line numbers: they grow by one from line to line through a traceback, as no ranks would."""
    found = [_NUMBER.match(row) for row in rows]
    numbers = [int(m[1]) if m is not None else -1 for m in found]
    head = next((n for n, row in enumerate(rows) if _HEAD in row and numbers[n] >= 0), None)
    if head is None:
        return rows
    start = end = head
    while start > 0 and numbers[start - 1] >= 0 and numbers[start - 1] == numbers[start] - 1:
        start -= 1
    while end + 1 < len(rows) and numbers[end + 1] == numbers[end] + 1:
        end += 1
    body = [row[m.end() :] if m is not None else row for row, m in zip(rows, found, strict=True)]
    if end - head + 1 < _RUN or not _FRAME.match(body[head + 1]):
        return rows
    return [*rows[:start], *body[start : end + 1], *rows[end + 1 :]]


def _without_marks(rows: list[str]) -> list[str]:
    """Take off the mark of a quote that all lines of a block have."""
    found = [_MARK.match(row) for row in rows]
    marks = {m[1] if m is not None else "" for m in found}
    if len(marks) != 1 or "" in marks:
        return rows
    body = [row[m.end() :] for row, m in zip(rows, found, strict=True) if m is not None]
    return body if any(_is_of_exception(row) for row in body) else rows


def _without_blanks(rows: list[str]) -> list[str]:
    """Take off the blanks that all lines have; of a block that begins with an exception, those of its first line."""
    deep = [len(row) - len(row.lstrip(" \t")) for row in rows]
    if not any(map(_is_of_exception, rows)):
        return rows
    if least := min(deep):
        return [row[least:] for row in rows]
    if 0 < deep[0] <= _DEEPEST and _RAISED.match(rows[0].lstrip(" \t")):
        return [rows[0].lstrip(" \t"), *rows[1:]]
    return rows


def _is_of_exception(row: str) -> bool:
    bare = row.lstrip(" \t")
    return bare.startswith(_HEAD) or _RAISED.match(bare) is not None
