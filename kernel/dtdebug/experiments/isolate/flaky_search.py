"""Searches a job that fails only sometimes: each run is the most informative one, until the odds are clear.

If the budget can't suffice, it ends early, and reports how often the job fails and the number of runs needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from dtdebug.experiments.isolate.bayes_odds import PROGRAM, SEVERAL, Explanation, Odds, Trial
from dtdebug.experiments.isolate.result_rows import Rows
from dtdebug.experiments.isolate.run_history import OutOfBudgetError, Tries
from dtdebug.experiments.isolate.run_types import RANKS, Run
from dtdebug.experiments.isolate.search_state import SearchState

_SURE = 0.93
"""Minimum probability of an explanation to be named."""
_ENOUGH = 8
"""Runs after which to check whether the budget can suffice."""
_HOPE = 2.0
"""Maximum ratio of the expected runs to the runs left in the budget."""
_BITS = 0.3
"""Remaining entropy in bits once an explanation is sure enough."""
_UNLIKELY = 0.02


class Suspects(NamedTuple):
    """Possible changes: name -> new value."""

    parts: Mapping[str, str]
    """Changes that can be made together."""
    alone: Mapping[str, str]
    """Changes that can only be made one at a time."""
    ranks: int
    """Number of ranks that the command starts; 1 if it can't be changed."""


class FlakySearch:
    """Search over these suspects."""

    def __init__(self, tries: Tries, found: SearchState, rows: Rows, suspects: Suspects) -> None:
        parts, alone, ranks = suspects
        self._tries, self._found, self._rows = tries, found, rows
        self._parts, self._changes, self._world = parts, {**parts, **alone}, ranks
        self._odds = Odds(list(parts), list(alone), ranks)
        self._closed: set[Trial] = set()
        self._unclear: dict[str, None] = {}

    def run(self) -> None:
        """Run until one explanation is sure, or the budget can't suffice."""
        for name in (*self._changes, RANKS):
            trial = Trial(one=True) if name == RANKS else Trial(frozenset((name,)))
            outcome = self._tries.reported_outcome(self._setting(trial)) if name != RANKS or self._world > 1 else None
            if outcome is not None:
                self._odds.add_report(trial, failed=outcome == "same")
        for run in self._tries.runs:
            self._see(run)
        try:
            while self._odds.causes()[0][1] < _SURE:
                trial, bits = self._odds.next(self._costs(), self._closed)
                if bits < 1e-4:
                    self._found.unfinished = f"{self._often()}; no other change can tell {self._open()}"
                    break
                if self._is_hopeless(bits):
                    break
                self._see(self._tries.once(self._setting(trial), self._found.failure))
        except OutOfBudgetError as error:
            self._found.unfinished = f"{error}: {self._often()}, and it stays open whether it is {self._open()}"
        finally:
            self._say()

    def _setting(self, trial: Trial) -> dict[str, str]:
        ranks = {RANKS: "1"} if trial.one else {}
        return ranks | {name: to for name, to in self._changes.items() if name in trial.changed}

    def _see(self, run: Run) -> None:
        """Update the odds with a run; changes that it did not make count as not made."""
        changed = frozenset(run.factors) - {RANKS}
        planned = Trial(changed, run.factors.get(RANKS) == "1")
        if run.outcome == "other":
            self._closed.add(planned)
            self._unclear |= dict.fromkeys(changed if len(changed) == 1 else ())
            return
        if run.unproven:
            self._closed.add(planned)
            self._found.unproven += [name for name in run.unproven if name not in self._found.unproven]
        if RANKS in run.unproven or (RANKS in run.factors and not planned.one and run.outcome != "same"):
            return  # a number between one and all says little
        self._odds.see(Trial(changed - set(run.unproven), planned.one), failed=run.outcome == "same")

    def _costs(self) -> tuple[float, float]:
        """Return the mean seconds of a run with all ranks, and with one."""
        one = [run.seconds for run in self._tries.runs if run.factors.get(RANKS) == "1"]
        full = [run.seconds for run in self._tries.runs if run.factors.get(RANKS) != "1"]
        usual = sum(full) / len(full) if full else 1.0
        return max(usual, 0.1), max(sum(one) / len(one) if one else usual, 0.1)

    def _is_hopeless(self, bits: float) -> bool:
        """True if the budget can't suffice; notes that in `unfinished`."""
        if len(self._tries.runs) < _ENOUGH:
            return False
        doubt = -math.fsum(p * math.log2(p) for _, p in self._odds.causes() if p > 0)
        more, left = math.ceil(max(1.0, (doubt - _BITS) / bits)), int(self._tries.seconds_left() / self._costs()[0])
        if more <= _HOPE * left:
            return False
        self._found.unfinished = (
            f"{self._often()}; to tell whether it is {self._open()} takes about {more} more runs, "
            f"and the budget suffices for {left}"
        )
        return True

    def _often(self) -> str:
        failed, of = self._tries.rate()
        return f"it fails in {failed} of {of} runs"

    def _open(self) -> str:
        likely = [self._format_cause(cause) for cause, p in self._odds.causes()[:3] if p > _UNLIKELY]
        return " or ".join(likely)

    def _format_cause(self, cause: Explanation) -> str:
        part = {PROGRAM: "the program", SEVERAL: "several parts together"}.get(cause.part)
        part = part or self._rows.title(cause.part)
        return (
            part
            if self._world < 2
            else f"{part} {'only with several ranks' if cause.needs_ranks else 'also with one rank'}"
        )

    # --- the answer

    def _say(self) -> None:
        found, rows = self._found, self._rows
        rows.clear()
        found.unclear += [rows.title(name) for name in self._unclear]
        found.rate = self._tries.rate()
        parts, causes = self._odds.parts(), self._odds.causes()
        part = max(parts, key=lambda name: parts[name])
        needs = math.fsum(p for cause, p in causes if cause.needs_ranks)
        found.distributed = None
        if self._world > 1:
            found.distributed = True if needs >= _SURE else False if needs <= 1 - _SURE else None
            self._say_ranks()
        for name, to in self._changes.items():
            self._say_part(name, to, sure=name == part and parts[part] >= _SURE)
        found.confirmed = causes[0][1] >= _SURE
        if parts[part] < _SURE:
            return
        if part == SEVERAL:
            named = ", ".join(map(rows.title, self._parts))
            rows.blame("several", "all changed", f"several of {named}, together")
        elif part:
            rows.blame(part, self._changes[part])
        else:
            rows.remainder()

    def _say_ranks(self) -> None:
        runs = [run for run in self._tries.runs if set(run.factors) == {RANKS} and run.factors[RANKS] == "1"]
        says = ""
        if self._found.distributed is False:
            says = "one rank fails too: distribution is not it"
        elif self._found.distributed:
            says = "needs more than 1 rank"
            self._rows.blame(RANKS, ">1", "more than 1 rank")
        if any(run.outcome == "same" for run in runs):
            self._found.works_with_one = False
        elif self._found.distributed:
            self._found.works_with_one = True
        if runs:
            self._rows.add("ranks", [("1 rank", _went(runs))], says or "not decided")

    def _say_part(self, name: str, to: str, *, sure: bool) -> None:
        if (told := self._tries.reported_outcome({name: to})) is not None:
            self._rows.add_change(name, to, told, said=True)
            return
        runs = [run for run in self._tries.runs if name in run.factors and name not in run.unproven]
        if any(run.outcome == "same" for run in runs):
            self._rows.add(self._rows.title(name), [(to, _went(runs))], self._rows.rule_out(name))
        elif sure:
            self._rows.add(self._rows.title(name), [(to, _went(runs))], "it is this")


def _went(runs: list[Run]) -> str:
    failed = sum(run.outcome == "same" for run in runs)
    return f"fails {failed} of {len(runs)}" if failed else f"ok ({len(runs)} runs)"
