"""Decides which changes that make a slow job faster do so alone: equal runs compared with each other, in turns.

Halving names whatever passes a threshold in single runs, and step times of equal runs vary. So each change is run alone
and compared with the unchanged job, and if there are several, all of them are compared with all but this one. A change
is named only if its slowest run is faster than the fastest one without it, and by more than equal runs differ plus a
margin: by share, or, with three runs each, by seconds, since a share of a short step means little.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Literal

from dtdebug.experiments.isolate.claims import format_changes
from dtdebug.experiments.isolate.result_rows import Rows
from dtdebug.experiments.isolate.run_history import Tries
from dtdebug.experiments.isolate.run_types import NODES, RANKS
from dtdebug.experiments.isolate.search_state import ResponsibleFactor, SearchState
from dtdebug.experiments.isolate.step_time import FASTER

MARGIN = 0.15
"""Minimum slow-down without a change, beyond the noise of equal runs; also the noise from which equal runs differ."""
_TIMES, _LEAST = 3, 2
"""Runs of each setting, and minimum number of them with a measured time."""
_COUNTS = (RANKS, NODES)
Weight = Literal["clear", "none", "varies", "unmeasured"]
Setting = dict[str, str]


class Weighing:
    """Comparison of the responsible changes of a slow job."""

    def __init__(self, tries: Tries, found: SearchState, rows: Rows) -> None:
        self._tries, self._found, self._rows = tries, found, rows

    def measure(self, base: Mapping[str, str]) -> None:
        """Make the runs that `judge` compares, in turns.

        Raises:
            OutOfBudgetError: no time is left for one of them.

        """
        wanted = [dict(base)]
        for r in self._parts() or self._counts():
            wanted += [setting for pair in self._pairs(base, r) for setting in pair if setting not in wanted]
        for count in range(1, _TIMES + 1):
            for setting in wanted:
                if len(self._runs(setting)) < count:
                    self._tries.once(setting, self._found.failure)

    def judge(self, base: Mapping[str, str]) -> None:
        """Keep only the changes that matter alone, and write the rows of the others.

        Fewer ranks leave more of the host to each, so their number is named only if no part is.
        """
        found, base = self._found, dict(base)
        found.undecided = ""
        parts = self._parts()
        weights = {r.factor: self._weight(base, r) for r in parts}
        kept = [r for r in parts if weights[r.factor] == "clear"]
        if not parts:
            weights = {r.factor: self._weight(base, r) for r in self._counts()}
            kept = [r for r in self._counts() if weights[r.factor] == "clear"]
            steady = self._noise() <= 1 / FASTER - 1  # otherwise luck alone has as much effect as a change must have
            kept += [r for r in found.responsible if r.factor == "program" and steady]
            if not (steady or kept):
                found.undecided = self._varying()
        for r in parts:
            self._say(base, r, weights[r.factor])
        if parts and not kept:
            found.undecided = self._varying() if "varies" in weights.values() else ""
        if any(r.factor in _COUNTS for r in found.responsible) and not {RANKS, NODES} & {r.factor for r in kept}:
            found.distributed = True if any(r.factor.endswith("-backend") for r in kept) else None
        weighed = any(r.factor != "program" for r in kept) or len(self._seconds(base)) >= _TIMES
        found.responsible, found.confirmed = kept, bool(kept) and weighed
        found.measured = self._format_seconds(base, kept)

    # --- comparisons

    def _parts(self) -> list[ResponsibleFactor]:
        return [r for r in self._found.responsible if r.factor not in (*_COUNTS, "program")]

    def _counts(self) -> list[ResponsibleFactor]:
        return [r for r in self._found.responsible if r.factor in _COUNTS]

    def _pairs(self, base: Mapping[str, str], r: ResponsibleFactor) -> Iterator[tuple[Setting, Setting]]:
        """Yield (changed, unchanged) settings, for the change alone and with all others."""
        if r.factor in _COUNTS:  # the value is a lower bound such as `>1`
            yield {**base, r.factor: r.value.removeprefix(">")}, dict(base)
            return
        yield {**base, r.factor: r.value}, dict(base)
        every = {**base, **{other.factor: other.value for other in self._parts()}}
        if len(self._parts()) > 1:
            yield every, {name: to for name, to in every.items() if name != r.factor}

    def _weight(self, base: Mapping[str, str], r: ResponsibleFactor) -> Weight:
        weights = {self._between(*pair) for pair in self._pairs(base, r)}
        order: tuple[Weight, ...] = ("none", "unmeasured", "varies", "clear")
        return next(w for w in order if w in weights)

    def _between(self, changed: Setting, without: Setting) -> Weight:
        fast, slow = self._seconds(changed), self._seconds(without)
        if min(len(fast), len(slow)) < _LEAST:
            return "unmeasured"
        noise, gain = self._noise(), median(slow) / median(fast) - 1
        if max(fast) < min(slow) and (gain > noise + MARGIN or (gain > MARGIN and _far_apart(fast, slow))):
            return "clear"
        return "varies" if noise > MARGIN else "none"

    def _runs(self, setting: Mapping[str, str]) -> list[float]:
        """Return the seconds per step of all runs of a setting; 0 for a run that says nothing."""
        runs = self._tries.of.get(frozenset(setting.items()), ())
        return [0.0 if set(run.unproven) & set(setting) else run.pace for run in runs]

    def _seconds(self, setting: Mapping[str, str]) -> list[float]:
        return [seconds for seconds in self._runs(setting) if seconds > 0]

    def _spread(self, setting: Mapping[str, str]) -> float:
        """Return the share by which the slowest of equal runs takes longer than the fastest."""
        seconds = self._seconds(setting)
        return max(seconds) / min(seconds) - 1 if seconds else 0.0

    def _noise(self) -> float:
        """Return the largest spread of equal runs."""
        return max(self._spread(dict(key)) for key in self._tries.of)

    # --- the answer

    def _varying(self) -> str:
        return f"undecided: step times of equal runs differ by {100 * self._noise():.0f} %"

    def _say(self, base: Setting, r: ResponsibleFactor, weight: Weight) -> None:
        alone, as_it_is = {**base, r.factor: r.value}, dict(base)
        says = f"it is {r.text}"
        if weight == "none":
            says = f"by itself it does not change {self._what} by more than {MARGIN:.0%} beyond what equal runs vary"
        elif weight == "unmeasured":
            says = "undecided: not enough runs of it alone"
        elif weight == "varies":
            says = self._varying()
        rows = [(to, self._range(s)) for to, s in (("as it is", as_it_is), (r.value, alone)) if self._seconds(s)]
        self._rows.replace_row(r.factor, rows, says)

    def _format_seconds(self, base: Setting, kept: list[ResponsibleFactor]) -> str:
        """Return the measured seconds on which the answer rests."""
        rows = [
            (setting, self._range(setting))
            for r in kept
            if r.factor != "program"
            for setting, _ in self._pairs(base, r)
        ]
        told = {format_changes(setting): text for setting, text in rows}
        as_it_is = f"as it is{f', with {format_changes(base)}' if base else ''}"
        with_it = [f"{text} with {name}" for name, text in told.items()]
        return (
            f"{self._what.capitalize()} takes {', '.join([f'{self._range(base)} {as_it_is}', *with_it])}."
            if told
            else ""
        )

    @property
    def _what(self) -> str:
        return "the whole run" if self._found.failure is not None and self._found.failure.type == "run" else "a step"

    def _range(self, setting: Mapping[str, str]) -> str:
        seconds = self._seconds(setting)
        least, most = f"{min(seconds):.3g}", f"{max(seconds):.3g}"
        return f"{least if least == most else f'{least} to {most}'} s ({len(seconds)} run{'s' * (len(seconds) != 1)})"


def _far_apart(fast: Sequence[float], slow: Sequence[float]) -> bool:
    """True if the gap between the two in seconds is larger than either of their spans."""
    spans = (max(fast) - min(fast), max(slow) - min(slow))
    return min(len(fast), len(slow)) >= _TIMES and min(slow) - max(fast) > max(spans)
