"""Puts values that were read one after the other into curves: one for each name and owner, in the order of steps."""

from __future__ import annotations

import math

from dtdebug.recorded.curves.curve import Curve, Name, Owner

_CURVES, _POINTS = 512, 2_000_000
"""Maximum number of curves of one reading, and of values of all of them."""
_MIXED = 0.2
"""Share of steps that go back from which counters run through each other, and nothing is a restart."""
_NEAR = 0.9
"""Share of an epoch after which its counter may begin anew."""


class Series:
    """Collects curves while files are read."""

    def __init__(self) -> None:
        self._found: dict[tuple[Owner, str, bool], Curve] = {}
        self._totals: dict[tuple[Owner, str, bool], float] = {}
        self._count = 0
        self.full = False

    def add(
        self,
        owner: Owner,
        name: Name,
        value: float,
        step: float,
        *,
        line: int = 0,
        epoch: float = -1.0,
        total: float = 0.0,
        unit: str = "step",
    ) -> Curve | None:
        """Add one value; return its curve, None where there are too many."""
        key = owner, name.name, name.held_out
        curve = self._found.get(key)
        if curve is None:
            if len(self._found) >= _CURVES:
                self.full = True
                return None
            curve = self._found[key] = Curve(owner, name, unit)
        if self._count >= _POINTS:
            self.full = True
            return None
        if total:
            self._totals[key] = total
        value *= name.factor
        steps = curve.steps
        if steps and steps[-1] == step and (not curve.epochs or curve.epochs[-1] == epoch):
            curve.values[-1], curve.lines[-1] = value, line  # printed again, as by the refresh of a bar
            return curve
        self._count += 1
        steps.append(step)
        curve.values.append(value)
        curve.lines.append(line)
        if epoch >= 0 or curve.epochs:
            curve.epochs.extend([-1.0] * (len(steps) - 1 - len(curve.epochs)))
            curve.epochs.append(epoch)
        return curve

    def curves(self) -> list[Curve]:
        """Return the curves, each divided into its attempts."""
        for key, curve in self._found.items():
            _divide(curve, self._totals.get(key, 0.0))
        return list(self._found.values())


def _divide(curve: Curve, total: float) -> None:
    """Find the attempts: the counter goes back, and no epoch has begun."""
    steps, epochs = curve.steps, curve.epochs
    backs = []
    for place in range(1, len(steps)):
        if steps[place] >= steps[place - 1]:
            if not epochs or epochs[place] >= epochs[place - 1] or epochs[place] < 0:
                continue
            backs.append(place)  # an earlier epoch, by a counter that begins anew in each
        elif epochs and epochs[place] > epochs[place - 1] >= 0:
            continue
        elif total and steps[place - 1] >= _NEAR * total and steps[place] <= max(2.0, total / 2):
            continue  # the bar of the next epoch
        else:
            backs.append(place)
    if len(backs) > max(3, _MIXED * len(steps)):
        curve.mixed = True
        return
    curve.attempts = [0, *backs]


def is_running_total(values: list[float]) -> bool:
    """True for a clock that runs on, which is no time of a step."""
    if len(values) < 4:
        return False
    ups = sum(b >= a for a, b in zip(values, values[1:], strict=False))
    return ups >= 0.97 * (len(values) - 1) and values[-1] > 5 * max(values[0], 1e-12) and math.isfinite(values[-1])
