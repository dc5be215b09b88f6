"""Which run is next, and what all of them say together: cheap and telling runs first, combinations only where needed.

First fewer ranks, since what fails with one rank has nothing to do with distribution, and few are cheaper for all that
follows. Then without communication. Then all parts that the program uses are taken away at once: if it still fails,
none of them alone is it; if not, the smallest set that matters is found by halving (delta debugging). Data come last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dtdebug.isolate.findings import spelled
from dtdebug.isolate.found import Found, Responsible, Row
from dtdebug.isolate.runner import ENVIRONMENT, RANKS, Outcome
from dtdebug.isolate.tries import SURE, OutOfBudgetError, Tries
from dtdebug_taxonomy.factors import Factor

_FIRST, _SOMETIMES = 3, 8
"""Runs of a command that does not fail at once, and of one that fails only sometimes, as the user says."""
_FAILURES, _RATE = 3, 10
"""How often it fails is measured until so many failures were seen, with so many runs at most."""
_RELIABLE, _UNLIKELY = 5, 7
"""Failures without exception after which it is taken to fail each time; more where several parts are named, for luck
names such sets more often than there are any."""
_ROUNDS = 3
"""Searches of a job that does not always fail: what luck has said is put right by more runs of the same settings."""


_WORDS: dict[Outcome, str] = {"same": "fails", "ok": "ok", "other": "another failure", "timeout": "no failure in time"}


class Search:
    """The search over settings."""

    def __init__(self, tries: Tries, *, sometimes: bool = False) -> None:
        self.found = Found(runs=tries.runs)
        self._tries, self._sometimes = tries, sometimes
        self._base: dict[str, str] = {}

    def run(self, ranks: int | None, factors: Sequence[Factor], variables: Sequence[str]) -> Found:
        """Searches until it is decided or the budget is spent.

        `ranks`: how many the command starts, None where that can't be changed; `variables`: those of the environment
        that may matter.
        """
        self._tries.world = ranks or 1
        try:
            if not self._reproduce():
                return self.found
            for _ in range(_ROUNDS):
                self._parts(ranks, factors, variables)
                if self._confirm():
                    break
                if self._varies():
                    self._measure_rate()
        except OutOfBudgetError as error:
            self.found.unfinished = f"{error}{self._narrowed()}"
        return self.found

    def _narrowed(self) -> str:
        """With which fewest changes it was seen not to fail, where the search could not end."""
        good = [dict(key) for key, runs in self._tries.of.items() if {run.outcome for run in runs} == {"ok"}]
        good = [{name: to for name, to in setting.items() if name != RANKS} for setting in good]
        fewest = min((setting for setting in good if setting), key=len, default=None)
        if self.found.failure is None or fewest is None or {r.factor for r in self.found.responsible} - {RANKS}:
            return ""
        return f"; it did not fail with {spelled(fewest)}"

    def interrupted(self) -> Found:
        """What is known where the user has ended the search."""
        if self.found.failure is None:
            self.found.first = next((run for run in self.found.runs if run.outcome == "same"), None)
            self.found.failure = self.found.first.failure if self.found.first is not None else None
        self.found.unfinished = "interrupted"
        return self.found

    def _parts(self, ranks: int | None, factors: Sequence[Factor], variables: Sequence[str]) -> None:
        self.found.rows, self.found.responsible, self.found.ruled_out, self._base = [], [], [], {}
        self.found.unclear = []
        self._ranks(ranks)
        talking = self.found.distributed is not False and self._communication(factors)
        chosen = [f for f in factors if f.stage == "part" and self._applies(f)]
        if self.found.distributed is False:  # a backend may refuse one rank what it is asked for, too
            chosen += [f for f in factors if f.stage == "communication" and self._applies(f)][:1]
        minimal = self._take_away(chosen, variables)
        if not minimal and not talking:
            self._workload([f for f in factors if f.stage == "workload" and self._applies(f)])
        self._remainder()

    # --- the failure itself

    def _reproduce(self) -> bool:
        """Runs the job as it is; False if it does not fail."""
        for _ in range(_SOMETIMES if self._sometimes else _FIRST):
            run = self._tries.once({}, self.found.failure)
            if run.outcome == "timeout" and run.failure is None:
                self.found.unfinished = "the job neither failed nor ended within the budget"
                return False
            if run.failure is not None:
                break
        else:
            return False
        self.found.failure, self.found.first = run.failure, run
        tried = self._tries.of[frozenset()]
        if len(tried) > 1 or self._sometimes:
            self._measure_rate()
        return True

    def _measure_rate(self) -> None:
        """How often the unchanged job fails: runs without failure mean something by that."""
        self._tries.flaky = True
        while True:
            tried = [run.outcome for run in self._tries.of.get(frozenset(), [])]
            if tried.count("same") >= _FAILURES or len(tried) >= _RATE:
                break
            self._tries.once({}, self.found.failure)
        self.found.rate = self._tries.rate()

    def _confirm(self) -> bool:
        """What made the failure go away does so again; False if it was luck."""
        if not self.found.responsible:
            return True
        if self._tries.flaky:
            gone = [self._tries.outcome(s, self.found.failure, SURE)[0] != "same" for s in self._telling()]
            self.found.rate, self.found.confirmed = self._tries.rate(), all(gone)
            return self.found.confirmed
        several = sum(r.factor not in (RANKS, "program") for r in self.found.responsible) > 1
        while sum(run.outcome == "same" for run in self.found.runs) < (_UNLIKELY if several else _RELIABLE):
            if self._tries.once({}, self.found.failure).outcome != "same":
                break
        refuted = False
        for setting in self._telling():
            told = self._tries.told(setting)
            refuted |= told is not None and self._tries.once(setting, self.found.failure).outcome == "same"
            enough = 3 if several or set(setting) == {RANKS} else 2
            while told is None and not self._varies() and len(self._tries.of[frozenset(setting.items())]) < enough:
                self._tries.once(setting, self.found.failure)
        self.found.confirmed = not refuted and not self._varies()
        return self.found.confirmed

    def _varies(self) -> bool:
        """The job was seen to fail and not to fail with one and the same setting."""
        seen = [{run.outcome for run in runs if run.outcome in ("same", "ok")} for runs in self._tries.of.values()]
        return any(len(outcomes) > 1 for outcomes in seen)

    def _telling(self) -> list[dict[str, str]]:
        """The settings without failure that the answer rests on: too few ranks, and what is responsible changed."""
        named = {r.factor for r in self.found.responsible} - {RANKS}
        good = [dict(key) for key, runs in self._tries.of.items() if runs[-1].outcome == "ok"]
        said = [self._with({r.factor: r.value}) for r in self.found.responsible if r.factor in named]
        said += [{RANKS: "1"}] if any(r.factor == RANKS for r in self.found.responsible) else []
        good += [s for s in said if self._tries.told(s) == "ok"]
        fewer = max((s for s in good if set(s) == {RANKS}), key=lambda s: int(s[RANKS]), default=None)
        changed = min((s for s in good if named and named <= set(s)), key=len, default=None)
        return [s for s in (fewer, changed) if s is not None]

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
            if number == 1 and outcome in ("same", "ok") and self._tries.of.get(frozenset({(RANKS, "1")})):
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
        minimal = self._told(changes, named)
        changes = {name: to for name, to in changes.items() if self._tries.told(self._with({name: to})) != "same"}
        if not minimal and changes:
            minimal = self._sifted(list(changes), changes, named)
        if any(f.stage == "communication" for f in factors if f.id in minimal):
            self.found.distributed = True  # one rank is enough for it, but not without a backend
        for name in minimal:
            f = named.get(name)
            text = f.gone if f else f"the variable {name.removeprefix(ENVIRONMENT)}"
            self._blame(name, changes[name], text)
        return minimal

    def _told(self, changes: Mapping[str, str], named: Mapping[str, Factor]) -> list[str]:
        """The part without which it works, as the user says; rows for all that was told."""
        said = {name: self._tries.told(self._with({name: to})) for name, to in changes.items()}
        for name, outcome in said.items():
            if outcome is not None:
                self._row(name, changes[name], outcome, named)
        return [name for name, outcome in said.items() if outcome == "ok"][:1]

    def _sifted(self, names: list[str], changes: Mapping[str, str], named: Mapping[str, Factor]) -> list[str]:
        """Those of the names that make the failure go away: all at once, and by halves if that fails otherwise."""
        outcome = self._try(self._with({name: changes[name] for name in names}))
        known = {name: changes[name] for name in names if name not in self.found.unproven}
        if outcome in ("ok", "timeout"):
            minimal = self._reduced(list(known), [], changes)
            self._rows_of_reduction(known, minimal, named)
            return minimal
        if outcome == "same":
            self._rule_out(known, named)
        elif outcome == "other" and len(names) == 1:
            self._row(names[0], changes[names[0]], outcome, named)
            self.found.unclear.append(self.found.rows[-1].title)
        elif outcome == "other":
            half = (len(names) + 1) // 2
            return self._sifted(names[:half], changes, named) or self._sifted(names[half:], changes, named)
        return []

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
        if self.found.unclear:
            text += f", unless it is {' or '.join(self.found.unclear)}, without which the job fails in another way"
        self._blame("program", place, text)

    # --- one change

    def _applies(self, f: Factor) -> bool:
        first = self.found.first
        saw = first.saw if first is not None else {}
        return all(use in saw for use in f.uses) and not any(use in saw for use in f.unless)

    def _with(self, changes: Mapping[str, str]) -> dict[str, str]:
        return {**self._base, **changes}

    def _try(self, setting: Mapping[str, str]) -> Outcome | None:
        """How the job goes with a setting; None if it could not be set."""
        outcome, unproven = self._tries.outcome(setting, self.found.failure)
        self.found.unproven += [name for name in unproven if name not in {*self.found.unproven, *self._base}]
        return None if setting and set(setting) - set(self._base) <= set(unproven) else outcome

    # --- what is said

    def _blame(self, factor: str, value: str, text: str) -> None:
        self.found.responsible.append(Responsible(factor=factor, value=value, text=text))

    def _said(self, setting: Mapping[str, str], outcome: Outcome | None) -> str:
        if outcome is None:
            return "could not be changed"
        if self._tries.told(setting) is not None:
            return f"{_WORDS[outcome]}, as you say"
        runs = self._tries.of[frozenset(setting.items())]
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
        failing = [dict(key) for key, runs in self._tries.of.items() if any(run.outcome == "same" for run in runs)]
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
