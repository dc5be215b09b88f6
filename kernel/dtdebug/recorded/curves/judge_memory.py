"""Finds memory that grows with the steps: on one rank alone, or on all of them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from statistics import median

import msgspec

from dtdebug.recorded.curves.curve import Curve, spell
from dtdebug.recorded.curves.finding import CurveFinding
from dtdebug.recorded.curves.judge_loss import make
from dtdebug_taxonomy.model.ranks import spell as spell_ranks

_LEAST, _UPS = 4, 0.7
"""Rises that show a trend, and their share of the changes from the first of them on."""
_ALONE, _ALL = 1.3, 1.6
"""Factor by which memory grows at least: of a rank beside others that stay, and of all ranks or of an only one, whose
first steps fill caches."""
_STILL = 0.15
"""Share of the rise in the last third of it: memory that levels off is a cache that is full."""
_JUMP, _BACK = 0.5, 0.3
"""Largest share of the rise in one change, and in one fall: an evaluation takes memory and gives it back."""
_FLAT = 0.25
"""Rise of the others as a share of that of a rank that grows alone."""


def memory_grows(curves: Sequence[Curve]) -> list[CurveFinding]:
    """Find curves that grow steadily to their end. `curves`: those of one name, one a rank, or an only one."""
    rows = [(curve, grown) for curve in curves if (grown := _growth(curve)) is not None]
    if not rows:
        return []
    rest = [curve for curve in curves if all(curve is not row for row, _ in rows)]
    alone = 0 < len(rows) <= max(1, len(curves) // 4) and len(rest) > 0
    if alone and all(_rise(c) < _FLAT * min(_rise(row) for row, _ in rows) for c in rest):
        return [_of_rank(curve, begin, rest) for curve, begin in rows]
    if len(rows) < len(curves) or any(_factor(curve) < _ALL for curve, _ in rows):
        return []
    curve, begin = max(rows, key=lambda row: _rise(row[0]))
    who = f" on all {len(rows)} ranks" if len(rows) > 1 else ""
    says = f"`{curve.name.name}` grows{who}: {_course(curve, begin)}"
    why = f"by a factor of {_factor(curve):.2f}, to the last value"
    found = make("memory_grows", curve, begin, says, why, next=_next(curve, "the loop"))
    ranks = tuple(sorted(c.owner.rank for c, _ in rows if c.owner.rank is not None))
    return [msgspec.structs.replace(found, ranks=ranks)]


_OF_DEVICE = frozenset(("gpu", "cuda", "vram", "alloc", "allocated", "reserved", "hbm", "device"))


def grown_before(found: Sequence[CurveFinding], ranks: Sequence[int], failure: str) -> tuple[str, CurveFinding] | None:
    """Return memory that grew until these ranks failed, with the observation it makes; None if none did.

    `failure`: words of the failure, which say of what memory it is where the name of the curve does not.
    """
    row = next((row for row in found if row.kind in ("memory_of_rank", "memory_grows")), None)
    if row is None or (row.ranks and ranks and not {*row.ranks} & {*ranks}):
        return None
    name = _words(row.curve)
    words = name if _OF_HOST.intersection(name) else [*name, *_words(failure)]
    return "device_memory" if _OF_DEVICE.intersection(words) else "host_memory", row


def _of_rank(curve: Curve, begin: int, rest: Sequence[Curve]) -> CurveFinding:
    who = spell_ranks([curve.owner.rank or 0]).capitalize()
    ends = sorted(c.finite()[1][-1] for c in rest)
    says = f"{who}'s `{curve.name.name}` grows: {_course(curve, begin)}; the others end at "
    says += _span(curve, ends[0], ends[-1], " to ")
    return make("memory_of_rank", curve, begin, says, "steadily, to its last value", next=_next(curve, who.lower()))


_KEPT = (
    "Find what {whom} keeps: a list or cache that grows with the steps, tensors with their graphs, results gathered "
    "there."
)
_TRACED = " Two snapshots of `tracemalloc`, 50 steps apart, name the line."
_OF_HOST = frozenset(("rss", "uss", "pss", "ram", "host", "cpu"))


def _next(curve: Curve, whom: str) -> str:
    traced = _TRACED if _OF_HOST.intersection(_words(curve.name.name)) else ""
    return f"{_KEPT.format(whom=whom)}{traced}"


def _words(text: str) -> list[str]:
    return re.split(r"[^a-z]+", text.lower())


def _growth(curve: Curve) -> int | None:
    """Return the place from which a curve grows to its end; None if it does not."""
    first = curve.attempts[-1]
    places, values = curve.finite(first)
    if len(values) <= _LEAST or min(values) < 0:
        return None
    begin = min(range(len(values)), key=lambda i: (values[i], -i))
    part = values[begin:]
    rise = part[-1] - part[0]
    if rise <= 0 or part[-1] < _ALONE * max(part[0], 1e-9):
        return None
    changes = [b - a for a, b in itertools.pairwise(part)]
    ups = [change for change in changes if change > 0]
    if len(ups) < _LEAST or len(ups) < _UPS * len(changes):
        return None
    late = part[-1] - part[len(part) - 1 - max(1, (len(part) - 1) // 3)]
    if max(ups) > _JUMP * rise or -min(changes) > _BACK * rise or late < _STILL * rise:
        return None
    return places[begin]


def _rise(curve: Curve) -> float:
    _, values = curve.finite(curve.attempts[-1])
    return values[-1] - min(values[: max(1, len(values) // 2)]) if values else 0.0


def _factor(curve: Curve) -> float:
    _, values = curve.finite(curve.attempts[-1])
    return values[-1] / max(median(values[:3]), 1e-9)


def _course(curve: Curve, begin: int) -> str:
    """Return from what to what a curve grows, and by how much a step."""
    end = curve.finite()[0][-1]
    old, new = curve.values[begin], curve.values[end]
    steps = curve.steps[end] - curve.steps[begin]
    pace = f", {_amount(curve, (new - old) / steps)} per {curve.unit}" if steps > 0 and curve.unit != "line" else ""
    return f"{_span(curve, old, new, ' -> ')} from {curve.label(begin)} to {curve.label(end)}{pace}"


def _span(curve: Curve, low: float, high: float, sign: str) -> str:
    """Return two amounts in one unit, or the only one."""
    last = _amount(curve, high)
    first = spell(low / _SIZES[last.rpartition(" ")[2]]) if curve.name.unit else spell(low)
    return last if last.split(" ")[0] == first else f"{first}{sign}{last}"


_SIZES = {"GiB": 1024.0, "MiB": 1.0}


def _amount(curve: Curve, value: float) -> str:
    if not curve.name.unit:
        return spell(value)
    unit = "GiB" if abs(value) >= 10 * _SIZES["GiB"] else "MiB"
    return f"{spell(value / _SIZES[unit])} {unit}"
