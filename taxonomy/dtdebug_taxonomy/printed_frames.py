"""The frames of tracebacks in an output, by rank."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dtdebug_taxonomy.prefixes import parted
from dtdebug_taxonomy.ranks import Frame

_FRAME = re.compile(r'\s{0,8}File "([^"\n]{1,500})", line (\d{1,9}), in ([^\n]{1,200})')
_MOST = 400
"""Frames that are kept."""


def stacks_in(text: str) -> Iterator[tuple[int | None, tuple[Frame, ...]]]:
    """(rank or None, frames) of all lines of tracebacks."""
    if 'File "' not in text:
        return
    found: dict[int | None, list[Frame]] = {}
    count = 0
    for line in text.split("\n"):
        if 'File "' not in line:
            continue
        rank, words = parted(line[:2_000])
        if frame := _FRAME.match(words):
            found.setdefault(rank, []).append(Frame(frame[1], int(frame[2]), frame[3].strip()))
            count += 1
            if count == _MOST:
                break
    yield from ((rank, tuple(frames)) for rank, frames in found.items())
