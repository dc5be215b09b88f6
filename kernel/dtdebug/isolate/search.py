"""Which run is next, and what all of them say together: cheap and telling runs first, combinations only where needed.

First fewer ranks, since what fails with one rank has nothing to do with distribution, and few are cheaper for all that
follows. Then without communication. Then all parts that the program uses are taken away at once: if it still fails,
none of them alone is it; if not, the smallest set that matters is found by halving (delta debugging). Data come last.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from dtdebug.isolate.identity import Failure
from dtdebug.isolate.runner import ENVIRONMENT, RANKS, Outcome, Run
from dtdebug_taxonomy.factors import Factor

_FIRST, _RATE = 3, 6
"""Runs of a command that does not fail at once, and those that measure how often it fails."""
_ERROR = 0.03
"""Chance of taking luck for an effect, in a job that does not always fail."""
_MOST_REPEATS, _MOST_RUNS = 8, 100
_LONGER, _MORE = 3.0, 20.0
"""A run may take this many times as long as the failing one, and these seconds more."""
_SHORTEST = 2.0


class OutOfBudgetError(Exception):
    """No time is left for another run."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the answer: what was changed, how the job then went, what that says."""

    title: str
    tried: tuple[tuple[str, str], ...]
    """(what to, how it went), in the order of the runs."""
    says: str = ""


class Responsible(msgspec.Struct, frozen=True, kw_only=True):
    """One part of what is responsible."""

    factor: str
    value: str
    """With which change of it the job does not fail; for `program`, its place."""
    text: str


class Found(msgspec.Struct, kw_only=True):
    """What is known so far."""

    failure: Failure | None = None
    first: Run | None = None
    runs: list[Run] = []
    rows: list[Row] = []
    responsible: list[Responsible] = []
    distributed: bool | None = None
    ruled_out: list[str] = []
    unproven: list[str] = []
    """What could not be changed."""
    rate: tuple[int, int] | None = None
    """(failures, runs) of the settings with which it fails, where it does not always."""
    unfinished: str = ""
    """Why the search ended early."""
    works_with_one: bool | None = None
    confirmed: bool = False
    """What is responsible was seen twice."""


Execute = Callable[[Mapping[str, str], Failure | None, float], Run]
_WORDS: dict[Outcome, str] = {"same": "fails", "ok": "ok", "other": "another failure", "timeout": "no failure in time"}


class Search:
    """The search over settings; `execute` runs one. What `known` runs have shown is not run again."""

    def __init__(
        self,
        execute: Execute,
        known: Iterable[Run],
        *,
        budget: float,
        clock: Callable[[], float] = time.monotonic,
        tell: Callable[[Run], None] = lambda run: None,
    ) -> None:
        self.found = Found()
        self._execute, self._tell, self._clock = execute, tell, clock
        self._until = clock() + budget
        self._known = list(known)
        self._of: dict[frozenset[tuple[str, str]], list[Run]] = {}
        self._needed = 1
        self._base: dict[str, str] = {}

    def run(self, ranks: int | None, factors: Sequence[Factor], variables: Sequence[str]) -> Found:
        """Searches until it is decided or the budget is spent.

        `ranks`: how many the command starts, None where that can't be changed; `variables`: those of the environment
        that may matter.
        """
        try:
            if self._reproduce():
                self._parts(ranks, factors, variables)
                if not self._confirm():
                    self._again(ranks, factors, variables)
        except OutOfBudgetError as error:
            self.found.unfinished = str(error)
        return self.found

    def _parts(self, ranks: int | None, factors: Sequence[Factor], variables: Sequence[str]) -> None:
        self.found.rows, self.found.responsible, self.found.ruled_out, self._base = [], [], [], {}
        self._ranks(ranks)
        talking = self.found.distributed is not False and self._communication(factors)
        chosen = [f for f in factors if f.stage == "part" and self._applies(f)]
        minimal = self._take_away(chosen, variables)
        if not minimal and not talking:
            self._workload([f for f in factors if f.stage == "workload" and self._applies(f)])
        self._remainder()

    # --- the failure itself

    def _reproduce(self) -> bool:
        """Runs the job as it is; False if it does not fail."""
        for _ in range(_FIRST):
            run = self._once({})
            if run.outcome == "timeout" and run.failure is None:
                self.found.unfinished = "the job did not end within the budget of a run"
                return False
            if run.failure is not None:
                break
        else:
            return False
        self.found.failure, self.found.first = run.failure, run
        tried = self._of[frozenset()]
        if len(tried) > 1:
            self._measure_rate()
        return True

    def _measure_rate(self) -> None:
        """How often the unchanged job fails, and how many runs without failure then mean something."""
        while len(self._of.get(frozenset(), [])) < _RATE:
            self._once({})
        failing = [runs for runs in self._of.values() if any(run.outcome == "same" for run in runs)]
        tried = [run for runs in failing for run in runs]  # of settings that have nothing to do with it
        failed = sum(run.outcome == "same" for run in tried)
        self.found.rate = (failed, len(tried))
        rate = min(0.95, (failed + 0.5) / (len(tried) + 1))
        self._needed = max(2, min(_MOST_REPEATS, math.ceil(math.log(_ERROR) / math.log(1 - rate))))

    def _confirm(self) -> bool:
        """What made the failure go away does so again; False if it was luck."""
        if self.found.rate is not None or not self.found.responsible:
            self.found.confirmed = self.found.rate is not None
            return True
        if sum(run.outcome == "same" for runs in self._of.values() for run in runs) < 2:
            self._once({})
        for setting in self._telling():
            if len(self._of[frozenset(setting.items())]) < 2:
                self._once(setting)
        seen = [{run.outcome for run in runs if run.outcome in ("same", "ok")} for runs in self._of.values()]
        self.found.confirmed = all(len(outcomes) < 2 for outcomes in seen)
        return self.found.confirmed

    def _telling(self) -> list[dict[str, str]]:
        """The settings without failure that the answer rests on: too few ranks, and what is responsible changed."""
        named = {r.factor for r in self.found.responsible} - {RANKS}
        good = [dict(key) for key, runs in self._of.items() if runs[-1].outcome == "ok"]
        fewer = max((s for s in good if set(s) == {RANKS}), key=lambda s: int(s[RANKS]), default=None)
        changed = min((s for s in good if named and named <= set(s)), key=len, default=None)
        return [s for s in (fewer, changed) if s is not None]

    def _again(self, ranks: int | None, factors: Sequence[Factor], variables: Sequence[str]) -> None:
        """The failure does not always come: the search once more, with as many runs of each setting as that needs."""
        self._measure_rate()
        self._parts(ranks, factors, variables)

    # --- stages

    def _ranks(self, ranks: int | None) -> None:
        """The smallest number of ranks with which it fails: one first, then by halves."""
        world, low = ranks or 0, 0
        if world < 2:
            self.found.distributed = False if ranks == 1 else None
            return
        tried, high, number = [(_count(world), "fails")], world, 1
        while low < number < high:
            outcome = self._try({RANKS: str(number)})
            tried.append((_count(number), self._said({RANKS: str(number)}, outcome)))
            if number == 1 and outcome in ("same", "ok"):
                self.found.works_with_one = outcome == "ok"
            if outcome == "same":
                high = number
            elif outcome in ("ok", "timeout"):
                low = number
            elif outcome is None or number > 1:
                break
            number = (max(low, 1) + high) // 2
            if number == 1:
                break
        self.found.distributed = False if high == 1 else True if low else None
        if high == 1:
            says = "one rank fails too: distribution is not it"
        elif low:
            says = f"needs more than {_count(low)}"
            self._blame(RANKS, f">{low}", f"more than {_count(low)}")
        else:
            says = "fewer ranks say nothing"
        self.found.rows.append(Row(title="ranks", tried=tuple(tried), says=says))
        if high < world:
            self._base = {RANKS: str(high)}

    def _communication(self, factors: Sequence[Factor]) -> bool:
        """Whether communication is it: other backends. True if one without it makes the failure go away."""
        for f in factors:
            if f.stage != "communication" or not self._applies(f):
                continue
            outcome = self._one(f)
            if outcome in ("ok", "timeout"):
                self._blame(f.id, f.to, f.gone)
                return True
        return False

    def _take_away(self, factors: Sequence[Factor], variables: Sequence[str]) -> list[str]:
        """The smallest set of parts without which it does not fail; empty if there is none."""
        named = {f.id: f for f in factors}
        changes = {f.id: f.to for f in factors} | {f"{ENVIRONMENT}{name}": "not set" for name in variables}
        if not changes:
            return []
        if len(changes) == 1:
            (name, to) = next(iter(changes.items()))
            outcome = self._try(self._with(changes))
            self._row(name, to, outcome, named)
            minimal = [name] if outcome in ("ok", "timeout") else []
        else:
            outcome = self._try(self._with(changes))
            known = {name: to for name, to in changes.items() if name not in self.found.unproven}
            if outcome in ("ok", "timeout"):
                minimal = self._reduced(list(known), [], changes)
                self._rows_of_reduction(known, minimal, named)
            elif outcome == "same":
                self._rule_out(known, named)
                minimal = []
            else:
                minimal = self._singly(known, named)
        for name in minimal:
            f = named.get(name)
            text = f.gone if f else f"the variable {name.removeprefix(ENVIRONMENT)}"
            self._blame(name, changes[name], text)
        return minimal

    def _reduced(self, names: list[str], kept: list[str], changes: Mapping[str, str]) -> list[str]:
        """Those of the names that are needed beside the kept ones for the failure to go away."""
        if len(names) < 2:
            return names
        first, second = names[: (len(names) + 1) // 2], names[(len(names) + 1) // 2 :]
        for half in (first, second):
            if self._gone([*half, *kept], changes):
                return self._reduced(half, kept, changes)
        needed = self._reduced(first, [*second, *kept], changes)
        return [*needed, *self._reduced(second, [*needed, *kept], changes)]

    def _gone(self, names: Sequence[str], changes: Mapping[str, str]) -> bool:
        return self._try(self._with({name: changes[name] for name in names})) in ("ok", "timeout")

    def _singly(self, changes: Mapping[str, str], named: Mapping[str, Factor]) -> list[str]:
        """All at once fail in another way: one by one, until one makes the failure go away."""
        title = f"all {len(changes)} parts"
        self.found.rows.append(Row(title=title, tried=(("changed", _WORDS["other"]),), says="so one by one"))
        for name, to in changes.items():
            outcome = self._try(self._with({name: to}))
            self._row(name, to, outcome, named)
            if outcome in ("ok", "timeout"):
                return [name]
        return []

    def _workload(self, factors: Sequence[Factor]) -> None:
        for f in factors:
            if self._one(f) in ("ok", "timeout"):
                self._blame(f.id, f.to, f.gone)
                return

    def _one(self, f: Factor) -> Outcome | None:
        outcome = self._try(self._with({f.id: f.to}))
        self._row(f.id, f.to, outcome, {f.id: f})
        return outcome

    def _remainder(self) -> None:
        """What is left where no change but the number of ranks makes the failure go away: the program itself."""
        named = [r for r in self.found.responsible if r.factor != RANKS]
        failure = self.found.failure
        if named or failure is None or (self.found.distributed is None and not self.found.ruled_out):
            return
        place = f"{failure.file}:{failure.line} in {failure.function}" if failure.file else ""
        who = f"what {failure.role} does" if failure.role.startswith(("rank", "the last")) else "what ranks do"
        text = "the program itself" if self.found.distributed is False else f"the program: {who} there"
        if self.found.distributed is not False and not place:
            text = "the program, or communication"
        self._blame("program", place, text)

    # --- one change

    def _applies(self, f: Factor) -> bool:
        first = self.found.first
        saw = first.saw if first is not None else {}
        return all(use in saw for use in f.uses) and not any(use in saw for use in f.unless)

    def _with(self, changes: Mapping[str, str]) -> dict[str, str]:
        return {**self._base, **changes}

    def _try(self, setting: Mapping[str, str]) -> Outcome | None:
        """How the job goes with a setting, by as many runs as that needs; None if it could not be set."""
        while True:
            runs = self._of.get(frozenset(setting.items()), [])
            for run in runs:
                self.found.unproven += [n for n in run.unproven if n not in self.found.unproven and n not in self._base]
            if runs and set(setting) - set(self._base) <= set(runs[-1].unproven) and setting:
                return None
            if any(run.outcome == "same" for run in runs):
                return "same"
            good = [run for run in runs if run.outcome in ("ok", "timeout")]
            if len(good) >= self._needed:
                return good[0].outcome
            if any(run.outcome == "other" for run in runs):
                return "other"
            self._once(setting)

    def _once(self, setting: Mapping[str, str]) -> Run:
        """One run; an earlier one that is not counted yet, if there is one.

        Raises:
            OutOfBudgetError: no time is left for it.

        """
        key = frozenset(setting.items())
        old = next((run for run in self._known if frozenset(run.factors.items()) == key), None)
        if old is not None:
            self._known.remove(old)
            run = old
        else:
            run = self._execute(setting, self.found.failure, self._limit())
            self._tell(run)
        self.found.runs.append(run)
        self._of.setdefault(key, []).append(run)
        return run

    def _limit(self) -> float:
        """Seconds that the next run may take."""
        left = self._until - self._clock()
        done = [run.seconds for run in self.found.runs]
        if left < max(_SHORTEST, min(done, default=0.0)):
            raise OutOfBudgetError("the budget is spent")
        if len(done) >= _MOST_RUNS:
            raise OutOfBudgetError(f"{_MOST_RUNS} runs were made")
        failing = [run.seconds for run in self.found.runs if run.outcome == "same"]
        return min(left, _LONGER * max(failing) + _MORE) if failing else left

    # --- what is said

    def _blame(self, factor: str, value: str, text: str) -> None:
        self.found.responsible.append(Responsible(factor=factor, value=value, text=text))

    def _said(self, setting: Mapping[str, str], outcome: Outcome | None) -> str:
        if outcome is None:
            return "could not be changed"
        runs = self._of[frozenset(setting.items())]
        times = f" ({len(runs)} runs)" if self.found.rate is not None and outcome == "ok" else ""
        return f"{_WORDS[outcome]}{times}"

    def _row(self, name: str, to: str, outcome: Outcome | None, named: Mapping[str, Factor]) -> None:
        f = named.get(name)
        title = f.title if f else name.removeprefix(ENVIRONMENT)
        says = ""
        if outcome == "same":
            says = f.same if f else f"the variable {title} is not it"
            self.found.ruled_out.append(says)
        elif outcome in ("ok", "timeout"):
            says = f"it is {f.gone if f else f'the variable {title}'}"
        elif outcome == "other":
            says = "says nothing"
        self.found.rows.append(Row(title=title, tried=((to, self._said(self._with({name: to}), outcome)),), says=says))

    def _rule_out(self, changes: Mapping[str, str], named: Mapping[str, Factor]) -> None:
        """All parts were changed at once and it fails: none of them is it."""
        for name, to in changes.items():
            f = named.get(name)
            says = f.same if f else f"the variable {name.removeprefix(ENVIRONMENT)} is not it"
            self.found.ruled_out.append(says)
            title = f.title if f else name.removeprefix(ENVIRONMENT)
            words = "fails" if len(changes) == 1 else "fails, all at once"
            self.found.rows.append(Row(title=title, tried=((to, words),), says=says))

    def _rows_of_reduction(
        self, changes: Mapping[str, str], minimal: Sequence[str], named: Mapping[str, Factor]
    ) -> None:
        """What a run with this part changed, and not what is responsible, has shown."""
        failing = [dict(key) for key, runs in self._of.items() if any(run.outcome == "same" for run in runs)]
        for name, to in changes.items():
            f = named.get(name)
            title = f.title if f else name.removeprefix(ENVIRONMENT)
            if name in minimal:
                also = "" if len(minimal) == 1 else ", together with the others"
                says = f"it is {f.gone if f else f'the variable {title}'}{also}"
                self.found.rows.append(Row(title=title, tried=((to, "ok"),), says=says))
            elif any(name in setting for setting in failing):
                says = f.same if f else f"the variable {title} is not it"
                self.found.ruled_out.append(says)
                self.found.rows.append(Row(title=title, tried=((to, "fails"),), says=says))


def _count(number: int) -> str:
    return f"{number} rank{'s' * (number != 1)}"
