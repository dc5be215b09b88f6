"""Robust statistics of a curve: medians of bins, and the median absolute deviation, which outliers hardly move.

The factor 1.4826 makes the deviation that of a normal distribution: P. J. Rousseeuw and C. Croux, Alternatives to the
Median Absolute Deviation, JASA 88 (1993), https://doi.org/10.1080/01621459.1993.10476408. The point of a change is that
of Pettitt's test on ranks: A. N. Pettitt, A Non-Parametric Approach to the Change-Point Problem, Applied Statistics 28
(1979), https://doi.org/10.2307/2346729.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

NORMAL = 1.4826


class Bin(NamedTuple):
    """Part of a curve."""

    begin: int
    end: int
    level: float
    noise: float


def deviation(values: Sequence[float], center: float | None = None) -> float:
    """Return the scaled median absolute deviation."""
    if not values:
        return 0.0
    middle = median(values) if center is None else center
    return NORMAL * median(abs(value - middle) for value in values)


def step_noise(values: Sequence[float]) -> float:
    """Return the noise of a curve by the differences of neighbours, on which a slow trend has no part."""
    if len(values) < 2:
        return 0.0
    return NORMAL * median(abs(b - a) for a, b in itertools.pairwise(values)) / math.sqrt(2)


def bins(values: Sequence[float], most: int = 40, least: int = 4) -> list[Bin]:
    """Divide a curve into bins of equal size."""
    count = max(1, min(most, len(values) // least))
    edges = [len(values) * i // count for i in range(count + 1)]
    found = []
    for begin, end in itertools.pairwise(edges):
        part = values[begin:end]
        found.append(Bin(begin, end, median(part), step_noise(part)))
    return found


def change_point(values: Sequence[float]) -> tuple[int, float]:
    """Return the place from which a curve is at another level, by Pettitt's test, and the p-value."""
    count = len(values)
    order = sorted(range(count), key=values.__getitem__)
    ranks = [0.0] * count
    at = 0
    while at < count:
        end = at
        while end + 1 < count and values[order[end + 1]] == values[order[at]]:
            end += 1
        for place in order[at : end + 1]:
            ranks[place] = (at + end) / 2 + 1
        at = end + 1
    best, where, total = 0.0, 0, 0.0
    for place in range(count - 1):
        total += 2 * ranks[place] - (count + 1)
        if abs(total) > best:
            best, where = abs(total), place + 1
    return where, min(1.0, 2 * math.exp(-6 * best * best / (count**3 + count**2)))


def running_medians(values: Sequence[float], wide: int = 21) -> list[float]:
    """Return the median around each place; at the ends that of a narrower window."""
    half, count = wide // 2, len(values)
    return [median(values[max(0, i - half) : i + half + 1]) for i in range(count)]
