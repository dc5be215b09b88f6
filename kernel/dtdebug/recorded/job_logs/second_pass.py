"""Looks at a log of many ranks again and keeps telling lines of every rank instead of the first eight lines."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from io import BytesIO

from dtdebug.recorded.job_logs.line_judge import shape
from dtdebug.recorded.log_files.line_blocks import lines_of
from dtdebug.recorded.log_files.line_shapes import KeptLine
from dtdebug.recorded.log_files.sources import LogSource, open_log

_SHAPE, _EACH = 1_024, 32
"""Maximum number of lines kept per shape, and the minimum of that for each printer; first and last lines are kept."""
_ENOUGH = 1 << 14
"""Number of lines of a shape after which no more are read; the first and last lines suffice."""
TO_THE_END = 1 << 18
"""The same for shapes of which the last line of each printer is sought."""
_WORDS, _LONG = 2_000, 200
_CLOCK = re.compile(rb"\d{4}[-/]\d\d[-/]\d\d[T _]?|[IWE]\d{4} |\d\d:\d\d:\d\d(?:[.,]\d{1,9})?")
_RANK = re.compile(rb"(?i)\brank[\"':= \]]{0,4}\d{1,7}\b")
_NAMED = 200
"""Bytes of a line searched for a rank, which loggers put behind the place of the call."""
_HEAD, _NAME = 80, 24
"""Bytes of a line searched for a time, and bytes of the rest that identify the printer in most log formats."""


class _ShapeSample:
    """First and last lines of a shape, equally many for each printer."""

    def __init__(self) -> None:
        self._by_name: dict[bytes, tuple[list[KeptLine], deque[KeptLine]]] = {}
        self._half = _SHAPE // 2
        """Maximum number of lines at either end per printer; it shrinks as printers are added."""
        self.seen = 0

    def take(self, number: int, raw: bytes) -> None:
        self.seen += 1
        name = _name(raw)
        mine = self._by_name.get(name)
        if mine is None:
            mine = self._by_name[name] = [], deque(maxlen=self._half)
            self._half = max(_EACH, _SHAPE // len(self._by_name)) // 2
        first, last = mine
        (first if len(first) < self._half else last).append(KeptLine(number, raw[:_WORDS]))

    def sampled_lines(self) -> Iterator[KeptLine]:
        for first, last in self._by_name.values():
            both = [*first, *last]
            yield from both if len(both) <= 2 * self._half else (*both[: self._half], *both[-self._half :])


def _name(raw: bytes) -> bytes:
    """Return the beginning of a line without its time, and the rank that it names: a cheap key for the printer."""
    named = _RANK.search(raw[:_NAMED])
    return _CLOCK.sub(b"", raw[:_HEAD])[:_NAME] + (named[0] if named is not None else b"")


def lines_of_shapes(
    source: LogSource, shapes: set[bytes], text: bytes | None = None, most: int = _ENOUGH
) -> list[KeptLine]:
    """Return the lines of these shapes in a log, bounded; `text` is the whole log, if it is small enough to be at hand.

    A larger one is read again: which shapes matter is known only now, and lines of all shapes and ranks are too many.
    """
    if text is None and source.path == "-":
        return []
    found: dict[bytes, _ShapeSample] = {}
    wanted, long = set(shapes), any(len(key) > _LONG for key in shapes)
    number = 1
    with open_log(source) if text is None else BytesIO(text) as file:
        for run in lines_of(file):
            keys = run.translate(None, b"0123456789abcdefABCDEF").split(b"\n")
            if run.endswith(b"\n"):
                keys.pop()
            if long or not wanted.isdisjoint(keys):
                raws = run.split(b"\n")
                for i, key in enumerate(keys):
                    if key in wanted or (long and len(key) > _LONG and (key := shape(raws[i])) in wanted):
                        some = found.setdefault(key, _ShapeSample())
                        some.take(number + i, raws[i])
                        if some.seen >= most:
                            wanted.discard(key)
                if not wanted:
                    break
            number += len(keys)
    return sorted(row for some in found.values() for row in some.sampled_lines())


def last_of_each(rows: Sequence[KeptLine], most: int) -> list[KeptLine]:
    """Return the last lines of each printer at the end of a log."""
    seen: dict[bytes, int] = {}
    found: list[KeptLine] = []
    for row in reversed(rows):
        name = _name(row.raw)
        seen[name] = seen.get(name, 0) + 1
        if seen[name] <= most:
            found.append(row)
    return found[::-1]
