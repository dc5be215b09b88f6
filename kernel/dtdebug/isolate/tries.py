"""The runs that were made, and those still to make: how the job goes with a setting, within a budget."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping

from dtdebug.isolate.identity import Failure
from dtdebug.isolate.runner import RANKS, Outcome, Run

Execute = Callable[[Mapping[str, str], Failure | None, float], Run]
_MOST = 100
"""Runs of one search."""
_LONGER, _MORE = 3.0, 20.0
"""A run may take this many times as long as the failing one, and these seconds more."""
_SHORTEST = 2.0
LIKELY, SURE = 0.1, 0.03
"""Chance of taking luck for an effect, in a job that does not always fail: on the way, and in what is named."""
_MOST_REPEATS = 12
"""Runs of one setting at most."""


class OutOfBudgetError(Exception):
    """No time is left for another run."""


class Tries:
    """Settings and their runs; what `known` runs have shown is not run again.

    `told`: factor -> how the job goes with it changed, as the user says; it is not run, unless to confirm it.
    `budget`: seconds for all runs; `patience`: seconds after which a hang is seen to be one.
    """

    def __init__(
        self,
        execute: Execute,
        known: Iterable[Run],
        *,
        budget: float,
        patience: float = 0.0,
        told: Mapping[str, Outcome] | None = None,
        clock: Callable[[], float] = time.monotonic,
        tell: Callable[[Run], None] = lambda run: None,
    ) -> None:
        self.runs: list[Run] = []
        self.of: dict[frozenset[tuple[str, str]], list[Run]] = {}
        self.flaky = False
        """The job does not always fail: one run without failure says little."""
        self.world = 1
        """Ranks of the unchanged job."""
        self._execute, self._tell, self._clock = execute, tell, clock
        self._until, self._patience = clock() + budget, patience
        self._known, self._told = list(known), dict(told or {})

    def told(self, setting: Mapping[str, str]) -> Outcome | None:
        """What the user has said of it; None where nothing was said, or a run of ours has shown it.

        One change is told of, whatever the number of ranks; and that of one rank.
        """
        changed = [name for name in setting if name != RANKS]
        name = changed[0] if len(changed) == 1 else RANKS if not changed and setting.get(RANKS) == "1" else ""
        return None if self.of.get(frozenset(setting.items())) else self._told.get(name)

    def rate(self) -> tuple[int, int]:
        """(failures, runs) of all settings with which it fails: what is changed in them has nothing to do with it."""
        failing = [runs for runs in self.of.values() if any(run.outcome == "same" for run in runs)]
        tried = [run.outcome for runs in failing for run in runs]
        return tried.count("same"), len(tried)

    def needed(self, setting: Mapping[str, str], error: float) -> int:
        """Runs without failure after which luck is as unlikely as `error`.

        A job that fails now and then may do so on each of its ranks: fewer of them then have fewer chances to fail.
        """
        if not self.flaky:
            return 1
        failed, tried = self.rate()
        chance = min(0.95, (failed + 0.5) / (tried + 1))
        share = min(1.0, int(setting.get(RANKS, self.world)) / self.world)
        return max(2, min(_MOST_REPEATS, math.ceil(math.log(error) / (share * math.log(1 - chance)))))

    def outcome(
        self, setting: Mapping[str, str], failure: Failure | None, error: float = LIKELY
    ) -> tuple[Outcome, tuple[str, ...]]:
        """How the job goes with a setting, by as many runs as that needs, and what was not seen to be set."""
        if (said := self.told(setting)) is not None:
            return said, ()
        while True:
            runs = self.of.get(frozenset(setting.items()), [])
            unproven = tuple(dict.fromkeys(name for run in runs for name in run.unproven))
            if any(run.outcome == "same" for run in runs):
                return "same", unproven
            good = [run for run in runs if run.outcome in ("ok", "timeout")]
            if len(good) >= self.needed(setting, error) or (good and unproven):
                return good[0].outcome, unproven
            if any(run.outcome == "other" for run in runs):
                return "other", unproven
            self.once(setting, failure)

    def once(self, setting: Mapping[str, str], failure: Failure | None) -> Run:
        """One run; an earlier one that is not counted yet, if there is one.

        Raises:
            OutOfBudgetError: no time is left for it.

        """
        key = frozenset(setting.items())
        run = next((run for run in self._known if frozenset(run.factors.items()) == key), None)
        new = run is None
        if run is None:
            run = self._execute(setting, failure, self._limit())
        else:
            self._known.remove(run)
        self.runs.append(run)
        self.of.setdefault(key, []).append(run)
        if new:
            self._tell(run)
        return run

    def _limit(self) -> float:
        """Seconds that the next run may take."""
        left = self._until - self._clock()
        if left < max(_SHORTEST, min((run.seconds for run in self.runs), default=0.0)):
            raise OutOfBudgetError("the budget is spent")
        if len(self.runs) >= _MOST:
            raise OutOfBudgetError(f"{_MOST} runs were made")
        failing = [run.seconds for run in self.runs if run.outcome == "same"]
        if not failing:
            return left
        return min(left, max(_LONGER * max(failing) + _MORE, max(failing) + self._patience))
