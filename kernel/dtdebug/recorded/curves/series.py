"""Puts values that were read one after the other into curves: one for each name and owner, in the order of steps."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections import defaultdict

from dtdebug.recorded.curves.curve import Curve, Owner
from dtdebug.recorded.curves.names import Name

_CURVES, MOST_VALUES = 512, 4_000_000
"""Maximum number of curves of one reading, and of values of each."""
_LOADS = 1_000
"""Maximum number of lines of one file that say that a checkpoint is loaded."""
_MIXED = 0.2
"""Share of steps that go back from which counters run through each other, and nothing is a restart."""
_NEAR = 0.9
"""Share of an epoch after which its counter may begin again."""


class Series:
    """Collects curves while files are read."""

    def __init__(self) -> None:
        self._found: dict[tuple[Owner, str, bool], Curve] = {}
        self._loads: dict[str, list[int]] = defaultdict(list)
        self.full = False

    def curve(self, owner: Owner, name: Name, unit: str = "step") -> Curve | None:
        """Return the curve of a name, a new one if there is none; None where there are too many."""
        key = owner, name.name, name.held_out
        curve = self._found.get(key)
        if curve is None:
            if len(self._found) >= _CURVES:
                self.full = True
                return None
            curve = self._found[key] = Curve(owner, name, unit)
        return curve

    def note_load(self, file: str, line: int) -> None:
        """Note that a line of a file says that a checkpoint is loaded, or that training is resumed."""
        if len(self._loads[file]) < _LOADS:
            self._loads[file].append(line)

    def add(self, other: Series) -> None:
        """Add the curves of other files."""
        for file, lines in other._loads.items():
            self._loads[file] += lines
        room = _CURVES - len(self._found)
        self.full = self.full or other.full or len(other._found) > room
        self._found.update(itertools.islice(other._found.items(), max(room, 0)))

    def curves(self) -> list[Curve]:
        """Return the curves, each divided into its attempts."""
        for curve in self._found.values():
            _divide(curve)
            places = {bisect_left(curve.lines, line) for line in self._loads.get(curve.owner.file, ())}
            curve.loads = sorted(place for place in places if 0 < place < len(curve))
        return [curve for curve in self._found.values() if len(curve)]


def put(curve: Curve, value: float, step: float, line: int = 0, epoch: float = -1.0, *, factor: float = 0.0) -> None:
    """Add one value to a curve; one at the same step as before replaces it, as by the refresh of a bar.

    `factor`: factor to the curve's unit, if it is not that of its name.
    """
    steps = curve.steps
    same = steps and steps[-1] == step and (not curve.epochs or curve.epochs[-1] == epoch)
    if same and not (curve.rounded and line != curve.lines[-1]):
        curve.values[-1] = value * (factor or curve.name.factor)
        curve.lines[-1] = line
        return
    if len(steps) >= MOST_VALUES:
        return
    steps.append(step)
    curve.values.append(value * (factor or curve.name.factor))
    curve.lines.append(line)
    if epoch >= 0 or curve.epochs:
        curve.epochs.extend([-1.0] * (len(steps) - 1 - len(curve.epochs)))
        curve.epochs.append(epoch)


def _divide(curve: Curve) -> None:
    """Find the attempts: the counter goes back, and no epoch has begun."""
    steps, epochs, total = curve.steps, curve.epochs, curve.total
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
    ups = sum(b >= a for a, b in itertools.pairwise(values))
    return ups >= 0.97 * (len(values) - 1) and values[-1] > 5 * max(values[0], 1e-12) and math.isfinite(values[-1])
