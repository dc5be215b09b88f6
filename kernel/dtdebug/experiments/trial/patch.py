"""Applies the diff of an answer to the text of one file."""

from __future__ import annotations

import re

_HEAD = re.compile(r"@@ -(\d{1,7})(?:,(\d{1,5}))? \+\d{1,7}(?:,\d{1,5})? @@")


class PatchError(ValueError):
    """The diff does not fit the file."""


def apply_patch(text: str, patch: str) -> str:
    """Return the text with a unified diff applied at its own lines, and nowhere else.

    Raises:
        PatchError: the diff can't be read, or the text has other lines there.

    """
    lines, done, at = text.splitlines(keepends=True), list[str](), 0
    ending = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    hunks = _hunks(patch)
    if not hunks:
        raise PatchError("holds no change")
    for first, old, new in hunks:
        begin = first - 1
        if begin < at or [line.rstrip("\r\n") for line in lines[begin : begin + len(old)]] != old:
            raise PatchError(f"line {first} is not as it was when the job failed")
        done += [*lines[at:begin], *(f"{row}{ending}" for row in new)]
        at = begin + len(old)
    return "".join((*done, *lines[at:]))


def _hunks(patch: str) -> list[tuple[int, list[str], list[str]]]:
    """Return (first line, lines before, lines after) of each hunk."""
    hunks: list[tuple[int, list[str], list[str]]] = []
    left = 0
    for row in patch.splitlines():
        head = _HEAD.match(row)
        if head is not None:
            hunks.append((int(head[1]), [], []))
            left = int(head[2] or 1)
        elif hunks and row[:1] in {" ", "-", "+"} and (left or row[0] == "+"):
            _, old, new = hunks[-1]
            if row[0] != "+":
                old.append(row[1:])
                left -= 1
            if row[0] != "-":
                new.append(row[1:])
    if left:
        raise PatchError("is cut off")
    return hunks
