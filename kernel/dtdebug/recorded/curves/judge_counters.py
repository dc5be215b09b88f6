"""Finds counters of what was read so far, and epochs, that start over at a resume although the steps go on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median

from dtdebug.recorded.curves.curve import Curve, spell
from dtdebug.recorded.curves.finding import CurveFinding, Value
from dtdebug.recorded.curves.judge_loss import make, title
from dtdebug.recorded.curves.statistics import step_noise

_FEWEST, _AFTER = 3, 2
"""Values before and after a resume that are needed."""
_FALLEN = 0.5
"""Share of what it had been at that step from which on a counter starts over: another batch size is no fault."""
_SO_FAR = frozenset({"consumed", "seen", "processed", "cumulative", "trained"})
_WORD = re.compile(r"[^a-z]+")
_MOST = 3
"""Falls of a counter from which it counts something else."""
_LEVEL = 8
"""Values of a loss on each side whose medians are its levels."""
_NOISE = 3.0
"""Multiple of its noise by which a loss moves there."""


def start_over(counters: Sequence[Curve], losses: Sequence[Curve]) -> list[CurveFinding | None]:
    """Return the first counter that starts over at a resume; else the epoch of a loss that does."""
    found = [row for curve in counters if (row := _counter_starts_over(curve, losses)) is not None]
    return [*(found[:1] or [row for curve in losses if (row := _epoch_starts_over(curve)) is not None])]


def fall(curve: Curve) -> str:
    """Return where a counter of what was read so far falls while steps and epochs go on, in words; "" if none does."""
    places = _falls(curve)
    if curve.mixed or not _SO_FAR & {*_WORD.split(curve.name.name.lower())} or len(places) > _MOST:
        return ""
    place = next((n for n in places if curve.steps[n] > curve.steps[n - 1]), 0)
    return f"{curve.name.name} falls at {curve.label(place)}" if place else ""


def _falls(curve: Curve) -> list[int]:
    """Return the places at which a counter is lower than before, although no epoch began."""
    values, epochs = curve.values, curve.epochs
    down = (n for n in range(1, len(values)) if values[n] < values[n - 1])
    return [n for n in down if not (epochs and epochs[n] > epochs[n - 1])]


def _counter_starts_over(curve: Curve, losses: Sequence[Curve]) -> CurveFinding | None:
    loads = [n for n in curve.loads if n >= _FEWEST and len(curve) - n >= _AFTER]
    for now in loads:
        if any(n < now for n in _falls(curve) if n not in curve.loads):
            return None  # it starts anew for reasons of its own
        before = next((n for n in range(now - 1, -1, -1) if curve.steps[n] <= curve.steps[now]), None)
        if before is None or curve.values[now] >= _FALLEN * curve.values[before]:
            continue
        if curve.epochs and curve.epochs[now] > curve.epochs[before]:
            continue
        name = curve.name.name
        says = (
            f"{name} falls from {_whole(curve.values[before])} to {_whole(curve.values[now])} at {curve.label(now)}, "
            f"after the resume, while the steps go on"
        )
        why = "a total of what was read only grows; from its start again, the same data are read once more"
        moved = next((text for loss in losses if (text := _move(loss, curve.lines[now]))), "")
        return make(
            "counter_starts_over", curve, now, says, f"{why}{moved}", cause="consumed" in name.lower(),
            values=[_record(curve, before), _record(curve, now)],
            next=f"Restore {name} and the place in the data with the checkpoint, and start again from the one at "
            f"{curve.label(before)}; if it counts from each start on purpose, compare the order of the data instead:",
            command="dtdebug run --resume-check -- ...",
        )  # fmt: skip
    return None


def _epoch_starts_over(curve: Curve) -> CurveFinding | None:
    """Find an epoch that is lower after a resume although its steps go on."""
    steps, epochs = curve.steps, curve.epochs
    for now in curve.loads if epochs else ():
        if now < _FEWEST or not 0 <= epochs[now] < epochs[now - 1] or steps[now] <= steps[now - 1]:
            continue
        return make(
            "counter_starts_over", curve, now,
            f"The epoch falls from {epochs[now - 1]:g} to {epochs[now]:g} at step {steps[now]:,.0f}, after the resume, "
            "while the steps go on",
            "the epoch counts passes through the data; from its start again, the same data are read once more",
            values=[_record(curve, now - 1), _record(curve, now)],
            next="Restore the epoch, the sampler (`set_epoch`) and the place in the data with the checkpoint; this "
            "compares a resumed run with one that was not stopped:",
            command="dtdebug run --resume-check -- ...",
        )  # fmt: skip
    return None


def _move(loss: Curve, line: int) -> str:
    """Return by how much the level of a loss moves at a line, as a clause; "" if that is within its noise."""
    at = next((n for n in range(len(loss)) if loss.lines[n] >= line), len(loss))
    before, after = loss.finite(max(0, at - _LEVEL), at)[1], loss.finite(at, at + _LEVEL)[1]
    if len(before) < _LEVEL or len(after) < _LEVEL:
        return ""
    half = _LEVEL // 2
    trend = 2 * (median(before[half:]) - median(before[:half]))
    size, noise = median(after) - median(before) - trend, max(step_noise(before), step_noise(after))
    if abs(size) <= _NOISE * noise:
        return ""
    return f"; the {title(loss)} {'rises' if size > 0 else 'falls'} by {abs(size):.2g} there"


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _record(curve: Curve, place: int) -> Value:
    return Value(curve.label(place), spell(curve.values[place]), curve.lines[place], curve.name.name)
