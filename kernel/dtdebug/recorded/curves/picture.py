"""Draws a curve in one line of a terminal."""

from __future__ import annotations

import itertools
import math
from statistics import median

from dtdebug.recorded.curves.curve import Curve

_BLOCKS, _PLAIN = "▁▂▃▄▅▆▇█", "_.-=+*#@"
_BROKEN, _PLAIN_BROKEN = "\u00d7", "x"
_DECADES = 2.0
"""Decades from which the picture is that of the logarithms."""


def sparkline(curve: Curve, width: int = 60, *, plain: bool = False) -> tuple[str, list[int]]:
    """Return the picture of a curve, and the first place of each column; one with NaN or infinity shows a cross."""
    count = len(curve.values)
    columns = max(1, min(width, count))
    edges = [count * i // columns for i in range(columns + 1)]
    levels: list[float | None] = []
    for begin, end in itertools.pairwise(edges):
        part = [value for value in curve.values[begin:end] if math.isfinite(value)]
        levels.append(median(part) if len(part) > (end - begin) / 2 else None)
    known = [level for level in levels if level is not None]
    if known and min(known) > 0 and math.log10(max(known) / min(known)) > _DECADES:
        levels = [level if level is None else math.log10(level) for level in levels]
        known = [level for level in levels if level is not None]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    marks, broken = (_PLAIN, _PLAIN_BROKEN) if plain else (_BLOCKS, _BROKEN)
    span = high - low
    drawn = "".join(
        broken if level is None else marks[int((level - low) / span * (len(marks) - 1) + 0.5) if span > 0 else 0]
        for level in levels
    )
    return drawn, edges[:-1]
