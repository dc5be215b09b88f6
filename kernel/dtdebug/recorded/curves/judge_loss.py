"""Finds what is wrong with losses and norms: values that are not finite, divergence, a plateau, spikes, repetition."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from statistics import median

from dtdebug.recorded.curves.curve import Curve, spell
from dtdebug.recorded.curves.finding import CurveFinding, FindingKind, Value
from dtdebug.recorded.curves.statistics import Bin, bins, running_medians, step_noise

_LEAD = 4
"""Values before a NaN that are shown."""
_DIVERGED, _REGAINED, _RATIO = 6.0, 0.5, 0.5
"""A loss diverges if it rises by this multiple of its noise above its least level, by this share of what it had fallen,
and by this share of the level itself; noise is that between neighbours, so a slow trend is none."""
_HOLDS = 0.7
"""Share of the highest rise that the end still has: a spike from which a loss recovers is no divergence."""
_SPIKE, _HIGHER, _ALONE = 20.0, 0.5, 4.0
"""A spike exceeds the median of its neighbours by this multiple of the noise, by this share of that median, and by this
multiple of the next highest excess: where outliers are usual, none is a spike."""
_OF_FALL = 0.15
"""Share of what the loss has fallen in all that a spike rises at least: what is less is the noise of a loss near 0."""
_SETTLED = 10
"""First values of an attempt, which are no spikes."""
_CHANCE = (2, 3, 4, 5, 10, 20, 100, 1000, 30522, 32000, 32768, 50257, 50304, 128256, 151936)
"""Usual numbers of classes and tokens; guessing among k of them has the loss ln k."""
_RUN = 6
"""Equal values in a row that are no accident, if they have four digits and differ among themselves."""
_NOTHING, _LEAST = 1e-5, 5
"""Share of the highest value that counts as 0, and the least number of values of which that is said."""


def _record(curve: Curve, place: int) -> Value:
    return Value(curve.label(place), spell(curve.values[place]), curve.lines[place], curve.name.name)


def make(
    kind: FindingKind,
    curve: Curve,
    place: int,
    says: str,
    why: str,
    *,
    values: Sequence[Value] = (),
    cause: bool = False,
    **more: str,
) -> CurveFinding:
    """Return a finding at one place of a curve."""
    return CurveFinding(
        kind=kind,
        curve=curve.name.name,
        says=says,
        why=why,
        file=curve.owner.file,
        line=curve.lines[place],
        ranks=() if curve.owner.rank is None else (curve.owner.rank,),
        step=curve.label(place),
        run=curve.owner.run,
        values=tuple(values) or (_record(curve, place),),
        cause=cause,
        **more,
    )


def title(curve: Curve) -> str:
    """Return the name of a curve for a sentence."""
    what = {"loss": "loss", "part": "loss", "grad_norm": "gradient norm"}.get(curve.kind, curve.name.name)
    printed = curve.name.name
    word = f"evaluation {what}" if curve.name.held_out else what
    return word if printed.lower() in (what, word, "grad_norm", "grad norm") else f"{word} `{printed}`"


def not_finite(curve: Curve, others: Sequence[Curve]) -> CurveFinding | None:
    """Find NaN and infinity: to the end, or in the midst of finite values.

    Not counted: what precedes the first finite value, as bars start with; steps that a loss scale skips while it is
    found; a single value of an evaluation.
    """
    values = curve.values
    bad = [i for i, value in enumerate(values) if not math.isfinite(value)]
    if not bad:
        return None
    finite = len(values) - len(bad)
    if not finite:
        if curve.kind not in ("loss", "grad_norm") or len(values) < 3:
            return None
        return make(
            "not_finite", curve, 0, f"The {title(curve)} is {spell(values[0])} from the first step that was printed",
            f"all {len(values)} values, {curve.label(0)} to {curve.label(len(values) - 1)}", next=_NEXT_FIRST,
        )  # fmt: skip
    first_finite = next(i for i, value in enumerate(values) if math.isfinite(value))
    bad = [i for i in bad if i > first_finite]
    if not bad or curve.kind not in ("loss", "part", "grad_norm"):
        return None
    to_end = bad[-1] == len(values) - 1 and (len(bad) == 1 or bad[-2] == bad[-1] - 1 or finite > len(values) / 2)
    begin = bad[-1]
    while begin and not math.isfinite(values[begin - 1]):
        begin -= 1
    run = len(values) - begin
    scaled = any(other.kind in ("loss_scale", "skipped") for other in others)
    if not (to_end and run >= (3 if scaled else 2 if curve.kind != "part" else 3)):
        if to_end and run == 1 and curve.kind == "loss" and not scaled:
            pass
        elif scaled or curve.kind != "loss" or curve.name.held_out or len(bad) < 2:
            return None
        else:
            begin = bad[0]
            to_end = False
    lead = [i for i in range(max(0, begin - _LEAD), begin) if math.isfinite(values[i])]
    shown = ", ".join(spell(values[i]) for i in lead)
    norms = _lead_up(curve, others, begin)
    last = lead[-1] if lead else first_finite
    word = spell(values[begin])
    if to_end:
        says = f"The {title(curve)} is {word} from {curve.label(begin)} to the end ({run} of {len(values)} values)"
    else:
        says = f"The {title(curve)} is {word} at {curve.label(begin)}, in {len(bad)} of {len(values)} values"
    why = f"last finite {spell(values[last])} at {curve.label(last)}; before it {shown}"
    return make(
        "not_finite", curve, begin, says, f"{why}{norms}", values=[*(_record(curve, i) for i in lead),
        _record(curve, begin)], next=_next_of(norms, curve, lead), command="dtdebug run --nan -- ...",
    )  # fmt: skip


_NEXT_FIRST = "Look at the first batch and at the inputs of the loss: nothing was finite before it."


def _next_of(norms: str, curve: Curve, lead: Sequence[int]) -> str:
    values = [curve.values[i] for i in lead]
    grew = len(values) > 2 and values[-1] > 2 * min(values)
    if grew or "grew" in norms:
        return (
            "It blew up before it was NaN: go back to the checkpoint before it with gradient clipping or a lower "
            "learning rate; --nan names the layer and the rank:"
        )
    return (
        "Nothing led up to it: look at that step's batch (empty, all padding, a zero divisor); --nan names the "
        "layer and the rank:"
    )


def _lead_up(curve: Curve, others: Sequence[Curve], begin: int) -> str:
    """Return what the gradient norm did before."""
    if curve.kind == "grad_norm":
        return ""
    step = curve.steps[begin]
    for other in others:
        if other.kind != "grad_norm" or other.owner != curve.owner:
            continue
        places = [i for i in range(len(other.values)) if other.steps[i] <= step and math.isfinite(other.values[i])][
            -200:
        ]
        if len(places) < 4:
            continue
        usual = median(other.values[i] for i in places)
        last = [other.values[i] for i in places[-3:]]
        grew = max(last) > 5 * usual > 0
        return f"; gradient norm {', '.join(map(spell, last))}" + (f" grew from {spell(usual)}" if grew else "")
    return ""


def diverges(curve: Curve, rates: Sequence[Curve]) -> CurveFinding | None:
    """Find a loss that ends far above its least level, and stays there."""
    begin, end = curve.spans()[-1]
    places, values = curve.finite(begin, end)
    if len(values) < 16:
        return None
    parts = bins(values)
    levels = [part.level for part in parts]
    least = min(range(len(levels)), key=levels.__getitem__)
    noise = max(median(part.noise for part in parts), 1e-9 * abs(levels[least]))
    start, low, last = levels[0], levels[least], levels[-1]
    rise, fell, peak = last - low, max(start - low, 0.0), max(levels[least:])
    tail = levels[least + 1 :]
    if least == 0 and is_average(curve):  # it begins at 0, and fills with what the loss is
        return None
    if len(tail) < max(2, len(levels) // 20) or rise < _DIVERGED * noise or rise < _RATIO * abs(low):
        return None
    if rise < _REGAINED * fell or rise < _HOLDS * (peak - low):
        return None
    if min(values) < 0 < max(values) and rise < max(1.5 * fell, 3 * noise * _DIVERGED):
        return None
    held = max(2, len(levels) // 10)
    climbs = levels[-held - 1 :] == sorted(levels[-held - 1 :]) and levels[-held] > max(start, low + _DIVERGED * noise)
    if (min(levels[-held:]) < low + _REGAINED * rise and not climbs) or (_is_cyclic(rates) and last < 1.1 * start):
        return None
    onset = _onset(values, parts, least, low + max(3 * noise, 0.1 * min(rise, max(fell, abs(low)))))
    at = places[onset]
    bottom = places[min(range(parts[least].begin, parts[least].end), key=values.__getitem__)]
    says = f"The {title(curve)} diverges from {curve.label(at)} on: {spell(low)} before, {spell(last)} at the end"
    why = f"least level {spell(low)} near {curve.label(bottom)}, noise {spell(noise)}; rose by {spell(rise)}"
    return make(
        "diverges", curve, at, says, why, values=[_record(curve, i) for i in (bottom, at, places[-1])],
        next="Go back to a checkpoint before that step; lower the learning rate or clip gradients, and compare what "
        "changed there (data, learning rate, a resume).",
    )  # fmt: skip


def is_average(curve: Curve) -> bool:
    """True if the name says that a value is an average of those before."""
    return re.search(r"(?i)avg|average|running|smooth|ema\b", curve.name.name) is not None


def _onset(values: Sequence[float], parts: Sequence[Bin], least: int, above: float) -> int:
    """Return the first value from which the level stays above a bound."""
    low = least
    for number in range(least, len(parts)):
        if parts[number].level <= above:
            low = number
    begin = parts[low].begin
    for place in range(begin, len(values) - 2):
        if median(values[place : place + 5]) > above and values[place] > above:
            return place
    return begin


def _is_cyclic(rates: Sequence[Curve]) -> bool:
    """True if a learning rate rises again after it has fallen: losses rise and fall with it."""
    for rate in rates:
        values = [value for value in rate.values if math.isfinite(value)]
        if len(values) < 8:
            continue
        levels = [part.level for part in bins(values, 60)]
        high = levels[0]
        fallen = False
        for level in levels[1:]:
            fallen = fallen or level < 0.5 * high
            if fallen and level > 0.8 * high:
                return True
            high = max(high, level)
    return False


def does_not_move(curve: Curve, rates: Sequence[Curve]) -> CurveFinding | None:
    """Find a loss that stays where it began: at that of guessing, or nearly without noise.

    A loss at another level with usual noise is not called so: a model that is tuned further begins where it was.
    """
    if curve.name.held_out or len(curve.attempts) > 1:
        return None
    places, values = curve.finite()
    if len(values) < 40 or len(values) < 0.9 * len(curve.values):
        return None
    first, last = curve.steps[0], curve.steps[-1]
    gap = (last - first) / (len(values) - 1)
    if gap <= 0 or first > 2.5 * gap + 1 or (curve.unit != "epoch" and last < 100):
        return None
    level, noise = median(values), step_noise(values)
    if level <= 0.05:
        return None
    fifth = max(5, len(values) // 5)
    begin, end = median(values[:fifth]), median(values[-fifth:])
    moved = abs(begin - end)
    near = [k for k in _CHANCE if abs(level - math.log(k)) < 0.01 * level]
    constant = noise < 0.002 * level and moved < 0.002 * level and len({*values}) <= max(3, len(values) // 10)
    flat = moved < 0.005 * level and max(map(abs, _drifts(values, level))) < 3 * noise + 0.005 * level
    still = noise < 0.02 * level and flat and (last >= 500 or curve.unit == "epoch") and len(values) >= 100
    at_chance = bool(near) and noise < 0.05 * level and moved < 0.01 * level and flat
    if abs(median(values[:3]) - level) > 3 * noise + 0.01 * level:  # it fell at once, and is flat since
        return None
    if not (constant or at_chance or still) or _warms_up(rates):
        return None
    guess = f", that of guessing among {near[0]:,} (ln {near[0]:,} = {math.log(near[0]):.3f})" if near else ""
    says = (
        f"The {title(curve)} has not moved from {spell(begin)} since {curve.label(places[0])}: {spell(end)} at "
        f"{curve.label(places[-1])}{guess}"
    )
    return make(
        "does_not_move", curve, places[0], says, f"{len(values)} values, change {spell(moved)}, noise {spell(noise)}",
        values=[_record(curve, places[0]), _record(curve, places[-1])],
        next="Check that the optimizer holds the model's parameters, that the learning rate is not 0, and that labels "
        "belong to their inputs: train on one batch until its loss is near 0.",
    )  # fmt: skip


def vanishes(curve: Curve, norms: Sequence[Curve], rates: Sequence[Curve]) -> CurveFinding | None:
    """Find a loss that is 0 from one step to the next, or from the start.

    Not counted: one that falls to 0 by and by, as where all is learnt by heart, and one whose gradient is not 0, as of
    objectives that are 0 on average.
    """
    values = curve.values
    begin, top = len(values), max(values)
    while begin and 0 <= values[begin - 1] <= _NOTHING * top:
        begin -= 1
    if len(values) - begin < _LEAST or any(math.isfinite(n.values[-1]) and n.values[-1] > _NOTHING for n in norms):
        return None
    if begin:
        if values[begin - 1] < 0.1 * median(values[:begin]):
            return None
        before = f"it was {spell(values[begin - 1])} at {curve.label(begin - 1)}"
    elif norms or (rates and not any(rates[0].values)):
        before = "so is " + " and ".join(f"`{c.name.name}`" for c in (*norms[:1], *rates[:1]) if not any(c.values))
    else:
        return None
    says = f"The {title(curve)} is 0 from {curve.label(begin)} on; {before}"
    return make(
        "vanishes", curve, begin, says, f"{len(values) - begin} of {len(values)} values",
        next="Count the labels of that batch that are not masked (-100), and print the loss in float32 before anything "
        "replaces what is not finite: both give 0.",
    )  # fmt: skip


def always_zero(curve: Curve, loss: Curve) -> CurveFinding | None:
    """Find a column of unknown meaning that is 0 in each step, in the form of a rate, while the loss stays."""
    places, values = loss.finite()
    fifth = len(values) // 5
    if fifth < _LEAST or len(curve) != len(loss) or loss.name.held_out or len(loss.attempts) > 1:
        return None
    begin, end = median(values[:fifth]), median(values[-fifth:])
    if abs(begin - end) > step_noise(values) or abs(begin - end) > 0.005 * abs(begin):
        return None
    steps = f"all {len(curve)} steps that were printed"
    says = f"`{curve.name.name}` is 0 in {steps}, and the {title(loss)} stays at {spell(end)}"
    return make(
        "zero_rate", curve, 0, says, f"{spell(begin)} at first ({loss.label(places[0])})",
        next="If that is the learning rate or the size of an update, nothing is learnt: print the rate of each "
        "group of the optimizer, and how often the scheduler steps.",
    )  # fmt: skip


def _drifts(values: Sequence[float], level: float) -> list[float]:
    return [part.level - level for part in bins(values, 10)]


def _warms_up(rates: Sequence[Curve]) -> bool:
    """True if a learning rate still rises at the end: nothing can be said yet."""
    for rate in rates:
        values = [value for value in rate.values if math.isfinite(value)]
        if len(values) > 3 and values[-1] >= max(values) and values[-1] > 1.05 * values[len(values) // 2]:
            return True
    return False


def spike(curve: Curve) -> CurveFinding | None:
    """Find one group of values far above their neighbours, from which the loss comes back."""
    if curve.name.held_out:
        return None
    places, values = curve.finite()
    if not 30 <= len(values) <= 200_000 or min(values) < 0:
        return None
    usual = running_medians(values) if len(values) <= 20_000 else _coarse(values)
    over = [value - middle for value, middle in zip(values, usual, strict=True)]
    begin = max(_SETTLED, len(values) // 20)
    near_begin = {place + i for place in curve.attempts for i in range(-1, _SETTLED)}
    candidates = [i for i in range(begin, len(values) - 3) if places[i] not in near_begin]
    top = max(candidates, key=over.__getitem__, default=-1)
    if top < 0:
        return None
    near = values[max(0, top - 60) : max(0, top - 5)] + values[top + 6 : top + 61]
    noise = max(step_noise(near), 1e-9)
    if over[top] < _OF_FALL * (median(values[:3]) - median(values)) or over[top] < _HIGHER * median(values):
        return None
    rest = [over[i] for i in range(begin, len(values)) if abs(i - top) > 10]
    if over[top] < _SPIKE * noise or over[top] < _HIGHER * abs(usual[top]):
        return None
    if rest and over[top] < _ALONE * max(rest):
        return None
    if median(values[top + 1 : top + 61]) > usual[top] + over[top] / 2:  # it does not come back
        return None
    at = places[top]
    says = (
        f"The {title(curve)} has a spike at {curve.label(at)}: {spell(values[top])} where {spell(usual[top])} is usual"
    )
    return make(
        "spike", curve, at, says, f"{over[top] / noise:.0f} times the noise of its neighbours; it came back",
        next="It recovered. Look at that step's batch and gradient norm; clipping prevents it.",
    )  # fmt: skip


def _coarse(values: Sequence[float]) -> list[float]:
    found = list[float]()
    for part in bins(values, len(values) // 21):
        found += [part.level] * (part.end - part.begin)
    return found


def repeats(curve: Curve) -> CurveFinding | None:
    """Find values that come again in the same order at other steps: the same batches with the same weights."""
    values = curve.values
    seen: dict[tuple[float, ...], int] = {}
    for place in range(len(values) - _RUN + 1):
        run = tuple(values[place : place + _RUN])
        before = seen.setdefault(run, place)
        if before > place - _RUN or not all(map(math.isfinite, run)) or curve.label(before) == curve.label(place):
            continue
        if len({*run}) < _RUN - 1 or not _has_digits(run):
            continue
        if curve.steps[before] == curve.steps[place] and not curve.epochs:
            continue
        length = _RUN
        while place + length < len(values) and values[place + length] == values[before + length]:
            length += 1
        says = f"The {title(curve)} repeats at {curve.label(place)}: digit by digit that of {curve.label(before)} on"
        why = f"{length} values in a row are equal: {', '.join(map(spell, run[:3]))}, ..."
        return make(
            "repeats", curve, place, says, why, values=[_record(curve, before), _record(curve, place)],
            next="The same batches met the same weights: check that the optimizer steps, and that a resume restores "
            "both the weights and the position in the data.",
        )  # fmt: skip
    return None


def _has_digits(run: Sequence[float]) -> bool:
    return sum(len(f"{abs(value):.6g}".replace(".", "").lstrip("0")) >= 4 for value in run) >= _RUN - 1
