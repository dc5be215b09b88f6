"""Runs settings within a budget, and remembers the results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from dtdebug.experiments.isolate.failure_identity import FailureIdentity
from dtdebug.experiments.isolate.run_types import NODES, RANKS, Outcome, Run

Execute = Callable[[Mapping[str, str], FailureIdentity | None, float], Run]
_MOST = 100
"""Maximum runs of one search."""
_LONGER, _MORE = 3.0, 20.0
"""Maximum factor, plus seconds, of a run's time compared with the failing run."""
_SHORTEST = 2.0


class OutOfBudgetError(Exception):
    """No budget is left for another run."""


class Tries:
    """Settings and their runs; `known` runs are not repeated.

    `told`: factor -> outcome of the job with it changed, as the user reports; it is only run to confirm it. `budget`:
    seconds for all runs; `patience`: seconds after which a hang is detected.
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
        self._execute, self._tell, self._clock = execute, tell, clock
        self._until, self._patience = clock() + budget, patience
        self._known, self._told = list(known), dict(told or {})

    def reported_outcome(self, setting: Mapping[str, str]) -> Outcome | None:
        """Return the outcome that the user reports for a setting; None without a report, or after a run of it.

        Reports concern one change, with any number of ranks, or one rank.
        """
        changed = [name for name in setting if name not in (RANKS, NODES)]
        name = changed[0] if len(changed) == 1 else RANKS if not changed and setting.get(RANKS) == "1" else ""
        return None if self.of.get(frozenset(setting.items())) else self._told.get(name)

    def rate(self) -> tuple[int, int]:
        """Return (failures, runs) of all settings that fail: their changes are unrelated to the failure."""
        failing = [runs for runs in self.of.values() if any(run.outcome == "same" for run in runs)]
        tried = [run.outcome for runs in failing for run in runs]
        return tried.count("same"), len(tried)

    def outcome(self, setting: Mapping[str, str], failure: FailureIdentity | None) -> tuple[Outcome, tuple[str, ...]]:
        """Return the outcome of a setting, and the changes that were not made."""
        if (said := self.reported_outcome(setting)) is not None:
            return said, ()
        runs = self.of.get(frozenset(setting.items())) or [self.once(setting, failure)]
        unproven = tuple(dict.fromkeys(name for run in runs for name in run.unproven))
        outcomes: list[Outcome] = [run.outcome for run in runs]
        return "same" if "same" in outcomes else outcomes[0], unproven

    def varies(self) -> bool:
        """True if one setting both failed and succeeded."""
        seen = [{run.outcome for run in runs if run.outcome in ("same", "ok")} for runs in self.of.values()]
        return any(len(outcomes) > 1 for outcomes in seen)

    def seconds_left(self) -> float:
        """Return the remaining seconds of the budget."""
        return max(0.0, self._until - self._clock())

    def once(self, setting: Mapping[str, str], failure: FailureIdentity | None) -> Run:
        """Run once, or count an earlier run that is not counted yet.

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
        """Return the maximum seconds of the next run."""
        left = self.seconds_left()
        if left < max(_SHORTEST, min((run.seconds for run in self.runs), default=0.0)):
            raise OutOfBudgetError("the budget is spent")
        if len(self.runs) >= _MOST:
            raise OutOfBudgetError(f"{_MOST} runs were made")
        failing = [run.seconds for run in self.runs if run.outcome == "same"]
        if not failing:
            return left
        return min(left, max(_LONGER * max(failing) + _MORE, max(failing) + self._patience))
