"""Finds what happened to a loss at one step: a jump, with the learning rate that moved there, and a resume.

Also a loss that rises with a rate that only grows, and runs of one text that differ.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from dtdebug.recorded.curves.curve import Curve, spell
from dtdebug.recorded.curves.finding import CurveFinding, Value
from dtdebug.recorded.curves.judge_loss import is_average, make, title
from dtdebug.recorded.curves.statistics import bins, step_noise

_BEFORE, _AFTER = 8, 5
"""Values on each side of a jump whose medians are its levels."""
_JUMP, _OVER_NOISE, _OF_FALL = 3.0, 10.0, 0.15
"""A jump is to this multiple of the level before, by this multiple of its noise, and by this share of what the loss had
fallen: data that are twice as hard are no fault."""
_ALONE = 2.0
"""A jump exceeds the next one by this multiple: what comes with each epoch is how the program counts."""
_CAUSED, _MOVED, _ABOVE = 1.5, 3.0, 2.0
"""A jump at whose step the rate has moved is one from this multiple on; a rate has moved if it is multiplied by so much
from one value to the next, to so much above all before: a restart returns to a rate that the loss knows."""
_KEPT = 0.1
"""Share of a jump that is left at the end; a loss that comes back to where it was had a spike."""
_LOST, _PARTLY = 0.6, 0.25
"""Share of what the loss had fallen that is lost where weights were, and where something of the state was."""
_GROWN, _STEADY = 4.0, 0.9
"""A rate grows all the time if it ends at this multiple of its first value, and this share of its moves is upward."""
_RISEN, _REGAINED = 1.5, 0.25
"""A loss rises with the rate if it ends at this multiple of its least level, and regains this share of its fall."""
_FALLEN, _HIGH_AGAIN = 0.6, 0.75
"""A rate has fallen below this share of its highest value, and is high again from that share on."""
_EQUAL, _DIFFER, _SAME_STEPS = 0.01, 1.4, 3
"""Two runs have equal losses within this share, and other norms from this ratio on; common steps that are needed."""


class _Jump(NamedTuple):
    at: int
    before: float
    after: float
    size: float


class _Move(NamedTuple):
    """A rate that moved."""

    curve: Curve
    place: int


def _jumps(places: Sequence[int], values: Sequence[float], ratio: float) -> list[_Jump]:
    """Return the places at which a loss rises from one value to the next, and stays up for some values."""
    found = []
    for i in range(_BEFORE, len(values) - _AFTER + 1):
        if values[i] - values[i - 1] <= 0:
            continue
        left, right = values[i - _BEFORE : i], values[i : i + _AFTER]
        before, after = median(left), median(right)
        size = after - before
        if before <= 0 or after < ratio * before or min(right) <= max(left) or values[i] - values[i - 1] < size / 2:
            continue
        noise = max(step_noise(left), step_noise(values[max(0, i - 40) : i]), 1e-9)
        if size >= _OVER_NOISE * noise and size >= _OF_FALL * (median(values[:3]) - before):
            found.append(_Jump(places[i], before, after, size))
    return found


def _moves(settings: Sequence[Curve]) -> list[_Move]:
    """Return the places at which a rate, or the size of a batch, is multiplied, beyond all that it was before."""
    found = []
    for rate in settings:
        high = 0.0
        for place, (last, now) in enumerate(pairwise(rate.values), 1):
            high = max(high, last) if math.isfinite(last) else high
            if place > 1 and math.isfinite(now) and now >= _MOVED * last > 0 and now >= _ABOVE * high:
                found.append(_Move(rate, place))
    return found


def _cause(curve: Curve, place: int, moves: Sequence[_Move]) -> _Move | None:
    """Return the rate that moved at the step of a jump, or at the value before it."""
    since, until = curve.steps[max(0, place - 2)], curve.steps[place]
    return next((row for row in moves if since < row.curve.steps[row.place] <= until), None)


def jumps(curve: Curve, rates: Sequence[Curve], settings: Sequence[Curve]) -> CurveFinding | None:
    """Find a jump of a loss: one at which the learning rate moves, else one from which it does not come back."""
    begin, end = curve.spans()[-1]
    places, values = curve.finite(begin, end)
    if curve.name.held_out or len(values) < _BEFORE + _AFTER or min(values) < 0:
        return None
    moves = _moves(settings)
    if moves:
        for jump in _jumps(places, values, _CAUSED):
            if (move := _cause(curve, jump.at, moves)) is not None:
                return _with_rate(curve, jump, move)
    start = median(values[:3])
    rows = [row for row in _jumps(places, values, _CAUSED) if row.after >= _JUMP * row.before or _is_lost(row, start)]
    found = sorted(rows, key=lambda row: row.size, reverse=True)
    if not found:
        return None
    top = found[0]
    others = [row for row in found if abs(row.at - top.at) > _BEFORE]
    last = median(values[-_AFTER:])
    lost = _is_lost(top, start)
    back = last - top.before < _KEPT * top.size
    slow = top.at + 2 * _AFTER < len(curve) and median(curve.values[top.at + _AFTER : top.at + 2 * _AFTER]) > (
        top.before + 0.3 * top.size
    )
    if top.after < _JUMP * top.before and not slow:
        return None
    if (
        (others and top.size < _ALONE * others[0].size)
        or (back and not (lost and slow))
        or _is_restart(top, curve, rates)
    ):
        return None
    says = _says(curve, top)
    known = f"level {spell(top.before)} before, {spell(top.after)} after, {spell(last)} at the end"
    if lost and slow:
        return make(
            "jumps", curve, top.at, f"{says}, to where it began", f"{known}; the first steps had {spell(start)}",
            values=_pair(curve, top.at),
            next="If the job was resumed there, the weights were not restored: compare a resumed run with one that "
            "was not stopped. Else see which data or task began there.",
            command="dtdebug run --resume-check -- ...",
        )  # fmt: skip
    return make(
        "jumps", curve, top.at, says, known, values=_pair(curve, top.at),
        next="Go back to a checkpoint before that step, and see what changed there: learning rate, data, a resume.",
    )  # fmt: skip


def _is_lost(jump: _Jump, start: float) -> bool:
    """True if a loss jumps to where it began: most of what it had fallen is lost."""
    return jump.size >= _LOST * (start - jump.before) > 0 and jump.after <= 1.3 * start


def _with_rate(curve: Curve, jump: _Jump, move: _Move) -> CurveFinding:
    rate, at = move.curve, move.place
    old, new = rate.values[at - 1], rate.values[at]
    same = rate.steps[at] == curve.steps[jump.at]
    says = (
        f"{_says(curve, jump)}, {'where' if same else 'after'} {rate.name.name} went from {spell(old)} to {spell(new)}"
        f"{'' if same else f' at {rate.label(at)}'}"
    )
    why = f"{rate.name.name} is {new / old:.3g} times its last value; the loss was near {spell(jump.before)} before"
    return make(
        "jumps", curve, jump.at, says, f"{why}, {spell(curve.values[-1])} at the end",
        cause=True, values=[*_pair(curve, jump.at), _record(rate, at)],
        next=f"Correct the schedule or setting that gives {spell(new)} there, and go back to a checkpoint before "
        f"{rate.label(at)}.",
    )  # fmt: skip


def _says(curve: Curve, jump: _Jump) -> str:
    old, new = _value(curve, jump.at - 1), _value(curve, jump.at)
    return f"The {title(curve)} jumped from {old} to {new} at {curve.label(jump.at)}"


def _is_restart(jump: _Jump, curve: Curve, rates: Sequence[Curve]) -> bool:
    """True if a rate rises at a jump to where it was before: a warm restart, after which a loss falls again."""
    step, before = curve.steps[jump.at], curve.steps[max(0, jump.at - 3)]
    for rate in rates:
        old = bisect_right(rate.steps, before) - 1
        new = bisect_right(rate.steps, step) - 1
        if 0 <= old < new and max(rate.values[old + 1 : new + 1]) > 1.5 * rate.values[old]:
            return True
    return False


def _value(curve: Curve, place: int) -> str:
    return spell(curve.values[place])


def _pair(curve: Curve, place: int) -> list[Value]:
    return [_record(curve, place - 1), _record(curve, place)]


def _record(curve: Curve, place: int) -> Value:
    return Value(curve.label(place), spell(curve.values[place]), curve.lines[place], curve.name.name)


def resumed_from_start(curve: Curve) -> CurveFinding | None:
    """Find a resume after which the loss is that of the beginning, or much higher than before.

    A resume is where the counter goes back, or where a line says so. Not counted: a counter that goes back to its
    first step without such a line, which is another run.
    """
    if curve.name.held_out:
        return None
    edges = sorted({*curve.attempts, *curve.loads, len(curve)})
    for begin, now, until in zip(edges, edges[1:], edges[2:], strict=False):
        _, so_far = curve.finite(0, now)
        _, before = curve.finite(begin, now)
        _, after = curve.finite(now, until)
        said = now in curve.loads
        if len(so_far) < 20 or len(before) < 8 or len(after) < 3 or not (said or curve.steps[now] > curve.steps[0] + 5):
            continue
        start, level, then = median(so_far[:3]), median(before[-5:]), median(after[:3])
        noise, fall = step_noise(before), start - level
        share = _LOST if not said else _PARTLY
        if not (fall > 10 * noise and then - level > max(8 * noise, share * fall)):
            continue
        lost = then - level > _LOST * fall
        state = "the weights were not restored" if lost else "not all of the state was restored"
        says = (
            f"The {title(curve)} after the resume at {curve.label(now)} begins at {_value(curve, now)}, it was "
            f"{_value(curve, now - 1)}: {state}"
        )
        what = (
            "Check that the checkpoint is loaded into the model that is trained, before it is wrapped, and what "
            "`load_state_dict` says of missing keys"
            if lost
            else "Check that optimizer, schedule, loss scale and the place in the data are restored with the weights"
        )
        return make(
            "resumed_from_start", curve, now, says, f"the first steps of all had {spell(start)}",
            values=_pair(curve, now), next=f"{what}; this compares a resumed run with one that was not stopped:",
            command="dtdebug run --resume-check -- ...",
        )  # fmt: skip
    return None


def rate_starts_over(rate: Curve) -> CurveFinding | None:
    """Find a learning rate that had fallen and, after a line that speaks of a resume, comes near its highest value.

    Leave out a rate that came back before without a resume, as cyclic schedules do.
    """
    for now in rate.loads:
        before, after = rate.values[:now], rate.values[now:]
        if len(before) < 10 or len(after) < 3:
            continue
        high, last = max(before), before[-1]
        top = max(range(len(before)), key=before.__getitem__)
        low = next((n for n in range(top, now) if before[n] <= last), now)
        came_back = max(before[low:], default=0) > 1.5 * last
        if last >= _FALLEN * high or max(after) < _HIGH_AGAIN * high or came_back:
            continue
        at = next(n for n in range(now, len(rate)) if rate.values[n] >= _HIGH_AGAIN * high)
        name = rate.name.name
        return make(
            "rate_starts_over", rate, now,
            f"After the resume at {rate.label(now)} {name} starts over: it had fallen to {spell(last)}, and is "
            f"{spell(rate.values[at])} at {rate.label(at)}: the scheduler was not restored",
            f"its highest value before was {spell(high)}", cause=True, values=[*_pair(rate, now), _record(rate, at)],
            next="Save `scheduler.state_dict()` with the checkpoint and load it; this compares a resumed run with one "
            "that was not stopped:",
            command="dtdebug run --resume-check -- ...",
        )  # fmt: skip
    return None


def rises_with_rate(curve: Curve, rates: Sequence[Curve]) -> CurveFinding | None:
    """Find a loss that falls and then rises, slowly at first, while the rate grows from its first value to its last."""
    places, values = curve.finite()
    rate = next((row for row in rates if _grows(row)), None)
    if rate is None or curve.name.held_out or len(values) < 24 or len(curve.attempts) > 1 or min(values) < 0:
        return None
    parts = bins(values)
    levels = [part.level for part in parts]
    least = min(range(len(levels)), key=levels.__getitem__)
    tail = levels[least + 1 :]
    low, last = levels[least], levels[-1]
    noise = max(median(part.noise for part in parts[: least + 1]), 1e-9)
    if (
        (least == 0 and is_average(curve))
        or len(tail) < max(3, len(levels) // 8)
        or last < _RISEN * low
        or last - low < 6 * noise
    ):
        return None
    if last - low < _REGAINED * (levels[0] - low) or max(levels[-len(levels) // 5 :]) < max(tail):
        return None
    at = places[min(range(parts[least].begin, parts[least].end), key=values.__getitem__)]
    then = rate.values[max(0, bisect_right(rate.steps, curve.steps[at]) - 1)]
    name = rate.name.name
    says = (
        f"The {title(curve)} rises with {name}, which grows all the time ({spell(rate.values[0])} -> "
        f"{spell(rate.values[-1])}): {spell(low)} near {curve.label(at)}, {spell(last)} at the end"
    )
    return make(
        "rises_with_rate", curve, at, says, f"{name} was {spell(then)} at {curve.label(at)}, and is "
        f"{rate.values[-1] / then:.3g} times that at the end",
        cause=True, values=[_record(curve, at), _record(rate, len(rate) - 1)],
        next=f"Correct the schedule (a factor above 1, a warm-up that does not end), and go back to a checkpoint near "
        f"{curve.label(at)}. A search for the best rate ends like this: take one below {spell(then)}.",
    )  # fmt: skip


def _grows(rate: Curve) -> bool:
    """True if a rate grows to its end, by more than a warm-up that has ended does."""
    _, values = rate.finite()
    values = [value for value in values if value > 0]
    if len(values) < 24 or values[-1] < max(values) or values[-1] < _GROWN * values[0]:
        return False
    moves = [b - a for a, b in pairwise(values) if a != b]
    if sum(move > 0 for move in moves) < _STEADY * len(moves):
        return False
    return values[-1] > 1.15 * values[len(values) * 3 // 4]


def runs_differ(curves: Sequence[Curve]) -> CurveFinding | None:
    """Find two runs in one text, each from its first step, whose losses are equal and whose gradient norms are not."""
    loss = next((c for c in curves if c.kind == "loss" and not c.name.held_out and len(c.attempts) > 1), None)
    norm = next((c for c in curves if c.kind == "grad_norm" and len(c.attempts) > 1), None)
    if loss is None or norm is None:
        return None
    one, two = _first_two(loss), _first_two(norm)
    if one is None or two is None:
        return None
    steps = sorted(one[0].keys() & one[1].keys() & two[0].keys() & two[1].keys())
    if len(steps) < _SAME_STEPS:
        return None
    equal = [abs(one[0][s] - one[1][s]) <= _EQUAL * abs(one[0][s]) for s in steps]
    ratios = [two[1][s] / two[0][s] if two[0][s] > 0 else math.nan for s in steps]
    apart = all(r > _DIFFER for r in ratios) or all(0 < r < 1 / _DIFFER for r in ratios)
    if not all(equal) or not apart:
        return None
    at = norm.attempts[1]
    first = steps[0]
    says = (
        f"Two runs are printed here: {norm.name.name} {spell(two[0][first])} in the first, {spell(two[1][first])} in "
        f"the second, at equal loss"
    )
    return make(
        "runs_differ", norm, at, says, f"in all {len(steps)} common steps; the losses are equal within 1 %",
        next="Equal losses and other gradients: the forward pass is the same, so look at what reduces, scales or clips "
        "gradients in the one that changed.",
    )  # fmt: skip


def _first_two(curve: Curve) -> tuple[dict[float, float], dict[float, float]] | None:
    """Return the values by steps of the first two runs; None if the second does not begin where the first does."""
    (begin, end), (now, until) = curve.spans()[:2]
    if curve.steps[now] > curve.steps[begin]:
        return None
    return tuple(dict(zip(curve.steps[a:b], curve.values[a:b], strict=True)) for a, b in ((begin, end), (now, until)))  # type: ignore[return-value]
