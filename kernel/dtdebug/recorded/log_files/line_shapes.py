"""Finds the unusual lines of a log; the shape of a line is its text without digits.

A healthy log of any size has few shapes. The first lines of each shape are kept, so no knowledge of failures is
needed. Hexadecimal digits are ignored, including letters, because addresses and hashes differ in each line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

KEEP = 8
"""Maximum number of lines kept of each shape."""
MOST = 1 << 20
"""Maximum bytes of lines kept of a log, unless another bound is given."""
LINE = 2_000
"""Maximum bytes kept of one line."""
_HEX = b"0123456789abcdefABCDEF"
_WORDS = _HEX + bytes(range(b"g"[0], b"z"[0] + 1)) + b" "
"""Deleted where no two lines are alike, as where samples of text are printed: capitals and signs are left."""
_BAR = bytes(10 if c == 13 else c for c in range(256))
"""Treats each state of a progress bar as a line."""
_BLOCK = 256 << 10
"""Bytes processed together; all their shapes are in memory at once."""
_SHAPES, _BYTES = 60_000, 6 << 20
"""Maximum number of shapes remembered, and their maximum total size in bytes; beyond that rare ones are dropped."""
_CHOICES = 24
"""Maximum number of calls of `choose` per log; each takes some tenths of a second."""
_BACK = 64
"""Lines searched for the beginning of a traceback above a kept line."""
_START = b"Traceback (most recent call last)"


class KeptLine(NamedTuple):
    """Line that was kept."""

    number: int
    """Number of the line in the log, from 1; states of one progress bar share it."""
    raw: bytes


Choose = Callable[[list[KeptLine]], list[KeptLine]]
"""Selects the lines to continue with from too many lines."""


class Shapes:
    """Takes a log run by run and keeps the first lines of each shape.

    `choose` is called when the kept lines exceed `most` bytes; if its result exceeds half of that, only the earliest
    and the latest lines are kept.
    """

    def __init__(self, *, keep: int = KEEP, most: int = MOST, choose: Choose | None = None) -> None:
        self.kept: list[KeptLine] = []
        self.lines = 0
        """Number of lines seen."""
        self.dropped = 0
        """Number of lines that were kept at first and dropped later for lack of space."""
        self._keep, self._most, self._choose = keep, most, choose
        self._size = self._choices = 0
        self._common: set[bytes] = set()
        self._rare: dict[bytes, int] = {}
        self._ignored = _HEX
        self._bytes = 0
        self._before: list[KeptLine] = []
        self._traces = False
        """True if a traceback begins in the current block, or shortly above it."""
        self._last = 0
        """Number of the last kept line."""

    def take(self, whole: bytes) -> None:
        """Add the next run of whole lines."""
        at = 0
        while at < len(whole):
            end = len(whole) if len(whole) - at <= _BLOCK else whole.rfind(b"\n", at, at + _BLOCK) + 1
            if end <= at:
                end = whole.find(b"\n", at + _BLOCK) + 1 or len(whole)
            self._block(whole[at:end] if at or end < len(whole) else whole)
            at = end

    def _block(self, block: bytes) -> None:
        shapes = block.translate(_BAR, self._ignored).split(b"\n")
        if not shapes[-1]:
            shapes.pop()
        bars = b"\r" in block
        live = set(shapes) - self._common
        raws: list[bytes] = []
        if live:
            raws = (block.translate(_BAR) if bars else block).split(b"\n")
            self._traces = _START in block or any(_START in row.raw for row in self._before)
            self._look(shapes, raws, live, bars=bars, ends=block)
        self.lines += block.count(b"\n") + (block[-1:] not in b"\n")
        if raws and not raws[-1]:
            raws.pop()
        first = self.lines - len(raws[-_BACK:]) + 1
        self._before = [] if bars else [KeptLine(first + n, raw) for n, raw in enumerate(raws[-_BACK:])]
        if self._size > self._most:
            self._reduce()
        if len(self._rare) + len(self._common) > _SHAPES or self._bytes > _BYTES:
            self._forget()

    def _look(self, shapes: list[bytes], raws: list[bytes], live: set[bytes], *, bars: bool, ends: bytes) -> None:
        places = self._places(raws, ends) if bars else None
        rare, common = self._rare, self._common
        for i, shape in enumerate(shapes):
            if shape not in live:
                continue
            seen = rare.get(shape, 0) + 1
            if seen > self._keep:
                live.discard(shape)
                common.add(shape)
                rare.pop(shape, None)
                continue
            if seen == 1:
                self._bytes += len(shape)
            rare[shape] = seen
            number = self.lines + 1 + i if places is None else places[i]
            self._add(KeptLine(number, cut(raws[i])), raws, i, direct=places is None)

    def _places(self, raws: list[bytes], block: bytes) -> list[int]:
        """Return the line number of each state of the progress bars in a block."""
        numbers, at, line = [], 0, self.lines + 1
        for raw in raws:
            numbers.append(line)
            at += len(raw) + 1
            line += block[at - 1 : at] == b"\n"
        return numbers

    def _add(self, row: KeptLine, raws: list[bytes], i: int, *, direct: bool) -> None:
        """Keep a line, together with the traceback that it ends, even if other lines of that have common shapes."""
        if self._traces and direct and row.number > self._last + 1 and row.raw and row.raw[:1] != b" ":
            for above in self._traceback(raws, i, row.number):
                self.kept.append(above)
                self._size += len(above.raw)
        self.kept.append(row)
        self._size += len(row.raw) + 1
        self._last = row.number

    def _traceback(self, raws: list[bytes], i: int, number: int) -> list[KeptLine]:
        """Return the lines above from the beginning of a traceback, unless they are already kept."""
        most = min(_BACK, number - self._last - 1)
        here = [KeptLine(number - i + j, raws[j]) for j in range(max(i - most, 0), i)]
        missing = most - len(here)
        above = [*(row for row in self._before[-missing:] if row.number > self._last), *here] if missing > 0 else here
        for back in range(len(above) - 1, -1, -1):
            if _START in above[back].raw:
                return [KeptLine(n, cut(raw)) for n, raw in above[back:]]
        return []

    def _reduce(self) -> None:
        """Reduce the kept lines to those that `choose` selects, then to the earliest and the latest ones."""
        before = len(self.kept)
        self._choices += 1
        if self._choices > _CHOICES and self._ignored is _HEX:
            self._ignored = _WORDS
            self._rare.clear()
            self._common.clear()
            self._bytes = 0
        rows = self._choose(self.kept) if self._choose is not None and self._choices <= _CHOICES else self.kept
        size = sum(len(row.raw) + 1 for row in rows)
        if size > self._most // 2:
            rows = _ends(rows, self._most // 2)
            size = sum(len(row.raw) + 1 for row in rows)
        self.kept, self._size = rows, size
        self.dropped += before - len(rows)

    def _forget(self) -> None:
        self._rare.clear()
        if len(self._common) > _SHAPES // 2 or sum(map(len, self._common)) > _BYTES // 2:
            self._common.clear()
        self._bytes = sum(map(len, self._common))


def _ends(rows: list[KeptLine], most: int) -> list[KeptLine]:
    """Return the first and the last rows, with half of the bytes each."""
    halves: list[list[KeptLine]] = []
    for way in (rows, rows[::-1]):
        taken: list[KeptLine] = []
        left = most // 2
        for row in way:
            left -= len(row.raw) + 1
            if left < 0:
                break
            taken.append(row)
        halves.append(taken)
    first, last = halves
    return first + last[::-1] if len(first) + len(last) < len(rows) else rows


def cut(line: bytes) -> bytes:
    """Cut a line to `LINE` bytes; of a progress bar keep the end, which is what a terminal shows."""
    if len(line) <= LINE:
        return line
    return line[-LINE:] if b"\r" in line else line[:LINE]


def runs(rows: Iterable[KeptLine]) -> list[tuple[int, list[bytes]]]:
    """Group the kept lines into runs of consecutive ones: (number of the first, lines)."""
    found: list[tuple[int, list[bytes]]] = []
    for number, raw in rows:
        if found and number == found[-1][0] + len(found[-1][1]):
            found[-1][1].append(raw)
        else:
            found.append((number, [raw]))
    return found
