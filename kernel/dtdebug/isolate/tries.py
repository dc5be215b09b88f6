"""The runs that were made, and those still to make: how the job goes with a setting, within a budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from dtdebug.isolate.identity import Failure
from dtdebug.isolate.runner import Outcome, Run

Execute = Callable[[Mapping[str, str], Failure | None, float], Run]
_MOST = 100
"""Runs of one search."""
_LONGER, _MORE = 3.0, 20.0
"""A run may take this many times as long as the failing one, and these seconds more."""
_SHORTEST = 2.0


class OutOfBudgetError(Exception):
    """No time is left for another run."""


class Tries:
    """Settings and their runs; what `known` runs have shown is not run again.

    `budget`: seconds for all runs; `patience`: seconds after which a hang is seen to be one.
    """

    def __init__(
        self,
        execute: Execute,
        known: Iterable[Run],
        *,
        budget: float,
        patience: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        tell: Callable[[Run], None] = lambda run: None,
    ) -> None:
        self.runs: list[Run] = []
        self.of: dict[frozenset[tuple[str, str]], list[Run]] = {}
        self.needed = 1
        """Runs without failure that mean that the job does not fail."""
        self._execute, self._tell, self._clock = execute, tell, clock
        self._until, self._patience = clock() + budget, patience
        self._known = list(known)

    def outcome(self, setting: Mapping[str, str], failure: Failure | None) -> tuple[Outcome, tuple[str, ...]]:
        """How the job goes with a setting, by as many runs as that needs, and what was not seen to be set."""
        while True:
            runs = self.of.get(frozenset(setting.items()), [])
            unproven = tuple(dict.fromkeys(name for run in runs for name in run.unproven))
            if any(run.outcome == "same" for run in runs):
                return "same", unproven
            good = [run for run in runs if run.outcome in ("ok", "timeout")]
            if len(good) >= self.needed or (good and unproven):
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
