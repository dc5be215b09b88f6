"""Finds what is wrong with times, rates, scales, evaluations, and with ranks whose curves differ."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from statistics import median

import msgspec

from dtdebug.recorded.curves.curve import Curve, spell
from dtdebug.recorded.curves.finding import CurveFinding, Value
from dtdebug.recorded.curves.judge_loss import make, title
from dtdebug.recorded.curves.series import is_running_total
from dtdebug.recorded.curves.statistics import bins, change_point, deviation, step_noise

_SLOWER, _NOISE, _SIDE, _CHANCE = 1.2, 4.0, 8, 1e-4
"""Steps are slower from a place on if they take that factor longer, by a multiple of their noise, with enough steps on
either side; p-value of Pettitt's test."""
_APART = 0.9
"""Share of the steps on either side of a change that are on the right side of the middle."""
_CLEAR = 12.0
"""Multiple of the noise from which a change without exceptions needs no test."""
_DRIFT, _UPWARD = 1.25, 0.8
"""Step times drift if they grow by so much, in this share of the parts of a curve."""
_HALVINGS, _FLOOR = 8, 1.0
"""A loss scale that was halved so often and ends at or below the floor is used up."""
_WARM = 5
"""First steps that compile and warm up."""
_UNUSED = 0.2
"""Share of the steps at the end for which a learning rate may be 0 before that is worth a word."""


def slower(curve: Curve, sizes: Sequence[Curve]) -> CurveFinding | None:
    """Find the step from which steps take longer, or that they grow longer all the time.

    Not counted: the first steps; clocks that run on; a batch size that grows in the same log.
    """
    rate = curve.kind == "throughput"
    places, raw = curve.finite()
    pairs = [(place, 1 / value if rate else value) for place, value in zip(places, raw, strict=True) if value > 0]
    pairs = pairs[_WARM:]
    if len(pairs) < 3 * _SIDE or curve.mixed or any(len({*size.values}) > 1 for size in sizes):
        return None
    values = [value for _, value in pairs]
    if is_running_total(raw):
        return None
    at, chance = change_point(values)
    middle = (median(values[:at]) + median(values[at:])) / 2 if 0 < at < len(values) else 0.0
    at = _sharpen(values, at, middle)
    before, after = values[:at], values[at:]
    if min(len(before), len(after)) >= _SIDE:
        low, high = median(before), median(after)
        noise = max(deviation(before), deviation(after))
        apart = min(
            sum(value < middle for value in before) / len(before), sum(value > middle for value in after) / len(after)
        )
        # of few steps the test finds no change, however clear it is: it goes by their ranks alone
        clear = chance < _CHANCE or (apart == 1 and high - low > _CLEAR * noise)
        if clear and high > _SLOWER * low and high - low > _NOISE * noise and apart >= _APART:
            return _slower(curve, pairs[at][0], low, high, noise, rate=rate)
    return _drift(curve, pairs, rate=rate)


def _sharpen(values: Sequence[float], at: int, middle: float) -> int:
    """Return the place near a change that leaves the fewest values on the wrong side of the middle."""
    reach = range(max(1, at - _SIDE), min(len(values) - 1, at + _SIDE) + 1)

    def wrong(place: int) -> int:
        near = range(max(0, at - 2 * _SIDE), min(len(values), at + 2 * _SIDE))
        return sum((values[i] > middle) != (i >= place) for i in near)

    return min(reach, key=lambda place: (wrong(place), abs(place - at)))


def _slower(curve: Curve, place: int, low: float, high: float, noise: float, *, rate: bool) -> CurveFinding:
    old, new = (1 / low, 1 / high) if rate else (low, high)
    unit = "" if rate else " s"
    what = f"`{curve.name.name}`" if rate else "a step"
    verb = "falls" if rate else "takes"
    says = (
        f"Training is {high / low:.2f} times as slow from {curve.label(place)} on: {what} {verb}"
        f" {spell(old)}{unit} -> {spell(new)}{unit}"
    )
    if not rate:
        says = says.replace(f"takes {spell(old)}", f"takes {spell(new)}").replace(
            f" -> {spell(new)}{unit}", f", {spell(old)}{unit} before"
        )
    return make(
        "slower", curve, place, says, f"medians {spell(old)} and {spell(new)}{unit}",
        values=(
            Value(curve.label(place - 1), spell(curve.values[place - 1]), curve.lines[place - 1], curve.name.name),
            Value(curve.label(place), spell(curve.values[place]), curve.lines[place], curve.name.name),
        ),
        next="See what began at that step: evaluation, longer sequences, a host that throttles, a slow file system. "
        "`dtdebug slow` names the late rank from profiles of a step on each side.",
    )  # fmt: skip


def _drift(curve: Curve, pairs: Sequence[tuple[int, float]], *, rate: bool) -> CurveFinding | None:
    values = [value for _, value in pairs]
    parts = bins(values, 12)
    levels = [part.level for part in parts]
    if len(levels) < 8 or levels[-1] < _DRIFT * levels[0]:
        return None
    ups = [b - a for a, b in itertools.pairwise(levels)]
    total = levels[-1] - levels[0]
    noise = median(part.noise for part in parts)
    if sum(up > 0 for up in ups) < _UPWARD * len(ups) or max(ups) > 0.5 * total or total < _NOISE * noise:
        return None
    place, last = pairs[0][0], pairs[-1][0]
    old, new = (1 / levels[0], 1 / levels[-1]) if rate else (levels[0], levels[-1])
    says = (
        f"Steps grow slower all the time: `{curve.name.name}` {spell(old)} -> {spell(new)} from {curve.label(place)} "
        f"to {curve.label(last)}"
    )
    return make(
        "drifts", curve, place, says, f"{sum(up > 0 for up in ups)} of {len(ups)} parts are slower than the one before",
        next="Something accumulates: a list of losses with their graphs, a growing cache, logs, fragmented memory. "
        "`dtdebug run --watch` shows memory and phases as they grow.",
    )  # fmt: skip


def zero_rate(curve: Curve, losses: Sequence[Curve]) -> CurveFinding | None:
    """Find a learning rate that is 0 while training continues: from the start, or long before the end.

    Not counted: a zero that may be rounded, the first steps of a warm-up, the end of a schedule, and a rate whose
    steps a loss scale has skipped.
    """
    values = curve.values
    if len(values) < 12 or not curve.exact or curve.mixed or not losses:
        return None
    zeros = [i for i, value in enumerate(values) if value == 0]
    if len(zeros) == len(values):
        says = f"The learning rate is 0 in all {len(values)} steps that were printed, from {curve.label(0)} on"
        return make("zero_rate", curve, 0, says, "nothing is learnt", next=_NEXT_RATE)
    begin = len(values)
    while begin and values[begin - 1] == 0:
        begin -= 1
    run = len(values) - begin
    if run < max(10, _UNUSED * len(values)):
        return None
    says = (
        f"The learning rate is 0 from {curve.label(begin)} on, and training goes on to {curve.label(len(values) - 1)}"
    )
    return make("zero_rate", curve, begin, says, f"{run} of {len(values)} values are 0", next=_NEXT_RATE)


_NEXT_RATE = (
    "Compare the number of steps that the scheduler was made for with those that run, and see how often it steps (once "
    "a rank, a micro-batch, an epoch)."
)


def scale_at_floor(curve: Curve) -> CurveFinding | None:
    """Find a loss scale that is halved until nothing is left; one that ends above the floor is warm-up."""
    places, values = curve.finite()
    if len(values) < 3:
        return None
    last = values[-1]
    high = max(values)
    at_end = len(values)
    while at_end and values[at_end - 1] == last:
        at_end -= 1
    if last <= 0 or high / max(last, 1e-30) < 2**_HALVINGS:
        return None
    if last > _FLOOR:
        return None
    place = places[min(at_end, len(places) - 1)]
    says = f"The loss scale has fallen to {spell(last)} at {curve.label(place)}, from {spell(high)}: gradients overflow"
    return make(
        "scale_at_floor", curve, place, says, f"halved {math.log2(high / last):.0f} times without recovering",
        next="Use bfloat16 where the device has it; else find the first layer whose values overflow:",
        command="dtdebug run --watch -- ...",
    )  # fmt: skip


def overfits(curve: Curve, losses: Sequence[Curve]) -> CurveFinding | None:
    """Find an evaluation loss that rises while the training loss falls: the gap grows with each evaluation."""
    train = next((row for row in losses if not row.name.held_out and row.owner == curve.owner and len(row) >= 8), None)
    places, values = curve.finite()
    if train is None or len(values) < 5 or curve.mixed or train.mixed or min(values) <= 0:
        return None
    least = min(range(len(values)), key=values.__getitem__)
    after = values[least + 1 :]
    rise = values[-1] - values[least]
    noise = step_noise(values)
    if len(after) < 3 or rise < 0.25 * values[least] or rise < 2 * noise or min(after[-2:]) < values[least] + rise / 2:
        return None
    then, now = _level_at(train, curve.steps[places[least]]), _level_at(train, curve.steps[places[-1]])
    if then is None or now is None or now > 0.98 * then:
        return None
    at = places[least]
    says = (
        f"The evaluation loss rises from {curve.label(at)} on while the training loss falls: {spell(values[least])} -> "
        f"{spell(values[-1])}"
    )
    return make(
        "overfits", curve, at, says, f"training loss {spell(then)} then, {spell(now)} at the end",
        next=f"Take the checkpoint near {curve.label(at)}; more data, regularisation or fewer epochs help.",
    )  # fmt: skip


def _level_at(curve: Curve, step: float) -> float | None:
    _, values = curve.finite()
    near = [value for place, value in zip(curve.steps, curve.values, strict=True) if place <= step]
    near = [value for value in near[-9:] if math.isfinite(value)]
    return median(near) if len(near) >= 3 else (median(values[:3]) if values else None)


def ranks_differ(curves: Sequence[Curve]) -> list[CurveFinding]:
    """Find ranks whose loss is unlike that of the others at the same steps.

    `curves`: those of one name, one a rank. Ranks may print their own batch's loss, so levels over many steps are
    compared; where most ranks print the same number to the last digit, a rank that prints another one is told.
    """
    found: list[CurveFinding] = []
    series = [dict(zip(curve.steps, curve.values, strict=True)) for curve in curves]
    if len(curves) < 3:
        return found
    common = set(series[0])
    for row in series[1:]:
        common &= set(row)
    steps = sorted(step for step in common if sum(math.isfinite(row[step]) for row in series) == len(series))[-2000:]
    if len(steps) < 10:
        return found
    middles = [median(row[step] for row in series) for step in steps]
    if all(value == 0 for value in middles):
        return found
    level = median(map(abs, middles))
    gaps = [[row[step] - middle for step, middle in zip(steps, middles, strict=True)] for row in series]
    offsets = [median(gap) for gap in gaps]
    equal = [sum(abs(d) <= 1e-9 * level for d in gap) / len(gap) for gap in gaps]
    if sum(share > 0.9 for share in equal) >= max(2, 0.7 * len(curves)):
        odd = [i for i, share in enumerate(equal) if share < 0.5 and any(curves[i].values)]
        what = "most ranks print the same number"
    else:
        spread = deviation([*offsets], median(offsets))
        noise = median(deviation(gap) for gap in gaps) / math.sqrt(len(steps)) * 1.2533
        bound = max(8 * spread, 6 * noise, 0.1 * level)
        odd = [i for i, offset in enumerate(offsets) if abs(offset) > bound and any(curves[i].values)]
        what = f"ranks differ by {spell(max(spread, noise))} otherwise"
    if not odd or len(odd) > len(curves) / 4:
        return found
    for i in odd:
        curve = curves[i]
        step = next((s for s, gap in zip(steps, gaps[i], strict=True) if abs(gap) > 1e-9 * level), steps[0])
        place = list(curve.steps).index(step)
        own, rest = median(series[i][s] for s in steps), median(middles)
        says = f"Rank {curve.owner.rank} has another {title(curve)} than the others: {spell(own)}, theirs {spell(rest)}"
        found.append(
            make("ranks_differ", curve, place, says, f"over {len(steps)} common steps; {what}", next=_NEXT_RANK)
        )
    return found


_NEXT_RANK = (
    "Compare that rank's data (shard, shuffling, labels) and its weights with another rank's: "
    "`dtdebug run --watch` compares both while it runs."
)


def join_ranks(found: Sequence[CurveFinding], printed: dict[tuple[str, str], int]) -> list[CurveFinding]:
    """Join findings of one kind and curve that several ranks have; name the ranks that have it, if not all do."""
    groups: dict[tuple[str, str, str], list[CurveFinding]] = defaultdict(list)
    for row in found:
        groups[row.kind, row.curve, row.run].append(row)
    joined: list[CurveFinding] = []
    for rows in groups.values():
        first = rows[0]
        ranks = tuple(sorted({rank for row in rows for rank in row.ranks}))
        everyone = printed.get((first.curve, first.run), 0)
        if len(ranks) >= everyone > 1:
            first = msgspec.structs.replace(first, why=f"{first.why}; on all {everyone} ranks that print it")
            ranks = ()
        elif ranks and everyone > len(ranks):
            first = msgspec.structs.replace(
                first, why=f"{first.why}; the other {everyone - len(ranks)} ranks have it not"
            )
        joined.append(msgspec.structs.replace(first, ranks=ranks if everyone > 1 else ()))
    return joined
