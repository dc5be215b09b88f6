"""Decides which run is next, and what all runs show: cheap and informative runs first, combinations only if needed.

First fewer ranks, since a failure with one rank is unrelated to distribution, and few ranks make all later runs
cheaper. Then without communication. Then all parts in use are removed at once: if the job still fails, none of them
alone is responsible; if not, the smallest responsible set is found by halving (delta debugging). Data come last. A job
that fails only sometimes is searched by `flaky_search`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dtdebug.experiments.isolate.claims import format_changes
from dtdebug.experiments.isolate.delta_debugging import MinimalSearch
from dtdebug.experiments.isolate.flaky_search import FlakySearch, Suspects
from dtdebug.experiments.isolate.result_rows import Rows
from dtdebug.experiments.isolate.run_history import OutOfBudgetError, Tries
from dtdebug.experiments.isolate.run_types import ENVIRONMENT, NODES, RANKS, Outcome, Run
from dtdebug.experiments.isolate.search_state import SearchState
from dtdebug.experiments.isolate.slow_comparison import Weighing
from dtdebug_taxonomy.knowledge.factors import Factor

_FIRST, _SOMETIMES = 3, 8
"""Maximum runs of a command that does not fail at once, and of one that the user reports to fail only sometimes."""
_RELIABLE, _UNLIKELY = 4, 6
"""Consecutive failures after which a job counts as always failing; higher for several parts, which luck often names."""
_ROUNDS = 2
"""Maximum searches if a run refutes the user's report."""


class _VariesError(Exception):
    """The job does not always fail."""


class Search:
    """Search over settings."""

    def __init__(
        self,
        tries: Tries,
        factors: Sequence[Factor],
        variables: Mapping[str, str],
        ranks: int | None,
        *,
        agents: int = 1,
        suspects: Callable[[Run], Mapping[str, str]] = lambda run: {},
        sometimes: bool = False,
    ) -> None:
        """Prepare a search among these factors.

        `ranks`: number per agent, None if it can't be changed; `variables`: those that may matter, with the new values;
        `suspects`: given the first run, returns further changes.
        """
        self.found = SearchState(runs=tries.runs)
        self._rows = Rows(self.found, {f.id: f for f in factors})
        self._tries, self._sometimes, self._factors, self._ranks = tries, sometimes, factors, ranks
        self._agents, self._suspects = agents, suspects
        self._variables = {f"{ENVIRONMENT}{name}": to for name, to in variables.items()}
        self._base: dict[str, str] = {}
        self._weighing = Weighing(tries, self.found, self._rows)

    def run(self) -> SearchState:
        """Search until it is decided or the budget is spent."""
        try:
            if not self._reproduce():
                return self.found
            try:
                for _ in range(_ROUNDS):
                    self._stages()
                    if self._confirm():
                        break
            except _VariesError:
                self._follow()
        except OutOfBudgetError as error:
            self.found.unfinished = f"{error}{self._smallest_good()}"
            self._unless_weighed()
        return self.found

    def mark_interrupted(self) -> SearchState:
        """Return the state after the user has interrupted the search."""
        if self.found.failure is None:
            self.found.first = next((run for run in self.found.runs if run.outcome == "same"), None)
            self.found.failure = self.found.first.failure if self.found.first is not None else None
        self.found.unfinished = "interrupted"
        self._unless_weighed()
        return self.found

    @property
    def _slow(self) -> bool:
        return self.found.failure is not None and self.found.failure.how == "slow"

    def _unless_weighed(self) -> None:
        """Retract what a search that ended early has named for a slow job without proof."""
        if self._slow:
            self._weighing.judge(self._base)

    def _smallest_good(self) -> str:
        """Return the smallest setting that did not fail, in words, if the search could not finish."""
        good = [dict(key) for key, runs in self._tries.of.items() if {run.outcome for run in runs} == {"ok"}]
        good = [{name: to for name, to in setting.items() if name not in (RANKS, NODES)} for setting in good]
        fewest = min((setting for setting in good if setting), key=len, default=None)
        if self.found.failure is None or fewest is None or {r.factor for r in self.found.responsible} - {RANKS, NODES}:
            return ""
        return f"; it {'was faster' if self._slow else 'did not fail'} with {format_changes(fewest)}"

    def _stages(self) -> None:
        self._rows.clear()
        self._base = {}
        if not self._needs_hosts():
            self._fewer_ranks()
        talking = self.found.distributed is not False and self._communication()
        if not self._take_away() and not talking and not self._alone():
            self._workload()
        self._rows.remainder()

    def _follow(self) -> None:
        """Search for a job that fails only sometimes."""
        parts = {f.id: f.to for f in self._applying("part")} | self._variables
        alone = {f.id: f.to for stage in ("communication", "workload") for f in self._applying(stage)}
        FlakySearch(self._tries, self.found, self._rows, Suspects(parts, alone, self._ranks or 1)).run()

    # --- the failure itself

    def _reproduce(self) -> bool:
        """Run the job unchanged; False if it does not fail."""
        for _ in range(_SOMETIMES if self._sometimes else _FIRST):
            run = self._tries.once({}, self.found.failure)
            if run.outcome == "timeout" and run.failure is None:
                self.found.unfinished = "the job neither failed nor ended within the budget"
                return False
            if run.failure is not None:
                self.found.failure, self.found.first = run.failure, run
                self._variables |= self._suspects(run)
                return True
        return False

    def _check(self) -> None:
        """Raise _VariesError if the job does not fail each time; varying step times are weighed later."""
        if self._slow:
            return
        if self._sometimes or self._tries.varies():
            raise _VariesError

    def _repeat_run(self, setting: Mapping[str, str], times: int) -> None:
        """Repeat a setting until it has run `times` times with the same result."""
        while len(self._tries.of.get(frozenset(setting.items()), ())) < times:
            self._tries.once(setting, self.found.failure)
            self._check()

    def _confirm(self) -> bool:
        """Repeat the change that made the failure go away; False if a run refutes the user's report."""
        if self._slow:
            self._weighing.measure(self._base)
            self._weighing.judge(self._base)
            return bool(self.found.responsible or self.found.undecided)
        if not self.found.responsible:
            self._repeat_run({}, 2)
            return True
        several = sum(r.factor not in (RANKS, NODES, "program") for r in self.found.responsible) > 1
        while sum(run.outcome == "same" for run in self.found.runs) < (_UNLIKELY if several else _RELIABLE):
            run = self._tries.once(self._base, self.found.failure)
            self._check()
            if run.outcome != "same":
                return True
        refuted = False
        for setting in self._telling():
            if self._tries.reported_outcome(setting) is not None:
                refuted |= self._tries.once(setting, self.found.failure).outcome == "same"
            else:
                self._repeat_run(setting, 3 if several or set(setting) <= {RANKS, NODES} else 2)
        self.found.confirmed = not refuted
        return not refuted

    def _telling(self) -> list[dict[str, str]]:
        """Return the good settings on which the answer rests: too few ranks, and the responsible parts changed."""
        named = {r.factor for r in self.found.responsible} - {RANKS, NODES}
        good = [dict(key) for key, runs in self._tries.of.items() if runs[-1].outcome == "ok"]
        said = [self._with({r.factor: r.value}) for r in self.found.responsible if r.factor in named]
        said += [self._with({RANKS: "1"})] if any(r.factor == RANKS for r in self.found.responsible) else []
        good += [s for s in said if self._tries.reported_outcome(s) == "ok"]
        counts = [s for s in good if s and set(s) <= {RANKS, NODES}]
        fewer = max(counts, key=lambda s: int(s.get(RANKS, "0")), default=None)
        changed = min((s for s in good if named and named <= set(s)), key=len, default=None)
        return [s for s in (fewer, changed) if s is not None]

    # --- stages

    def _needs_hosts(self) -> bool:
        """True if the job does not fail with the ranks of all agents under one agent."""
        if self._agents < 2:
            return False
        outcome = self._try({NODES: "1"})
        says = {"same": "several hosts are not it", "other": "says nothing", None: "says nothing"}
        of_all = f"1 with all {(self._ranks or 1) * self._agents} ranks"
        tried = [(f"{self._agents}", self._rows.went("same")), (of_all, self._rows.went(outcome))]
        self._rows.add("hosts, as agents here", tried, says.get(outcome, "needs more than 1 host"))
        if outcome == "same":
            self._base = {NODES: "1"}
            self._rows.note("several hosts are not it")
        elif outcome in ("ok", "timeout"):
            self.found.distributed = True
            self._rows.blame(NODES, ">1", "more than 1 host: what is counted for each host, such as LOCAL_RANK")
        return outcome in ("ok", "timeout")

    def _fewer_ranks(self) -> None:
        """Find the smallest number of ranks that fails: one first, then by halves."""
        base, low = dict(self._base), 0
        world = (self._ranks or 0) * (self._agents if base else 1)
        if world < 2:
            self.found.distributed = False if self._ranks == 1 else None
            return
        tried, high, number = [(_count(world), self._rows.went("same"))], world, 1
        while low < number < high:
            setting = {**base, RANKS: str(number)}
            outcome, said = self._try(setting), self._tries.reported_outcome(setting) is not None
            tried.append((_count(number), self._rows.went(outcome, said=said)))
            if number == 1 and outcome in ("same", "ok") and self._tries.of.get(frozenset(setting.items())):
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
            says = f"faster with {_count(low)}" if self._slow else f"needs more than {_count(low)}"
            self._rows.blame(RANKS, f">{low}", f"more than {_count(low)}")
        else:
            says = "fewer ranks say nothing"
        self._rows.add("ranks", tried, says)
        if high < world:
            self._base = {**base, RANKS: str(high)}

    def _communication(self) -> bool:
        """True if another backend, or none, makes the failure go away."""
        return any(self._is_it(f) for f in self._applying("communication"))

    def _alone(self) -> bool:
        """True if one process without a launcher does not fail, although one rank does."""
        alone = self.found.distributed is False and any(self._is_it(f) for f in self._applying("process"))
        if alone:
            self.found.distributed = True
        return alone

    def _workload(self) -> None:
        any(self._is_it(f) for f in self._applying("workload"))

    def _is_it(self, f: Factor) -> bool:
        setting = self._with({f.id: f.to})
        outcome = self._try(setting)
        self._rows.add_change(f.id, f.to, outcome, said=self._tries.reported_outcome(setting) is not None)
        if outcome in ("ok", "timeout"):
            self._rows.blame(f.id, f.to)
        return outcome in ("ok", "timeout")

    def _take_away(self) -> list[str]:
        """Return the smallest set of parts without which the job does not fail; empty if there is none."""
        chosen = self._applying("part")
        if self.found.distributed is False:
            chosen = [f for f in chosen if "group" not in f.uses]  # one rank equals no group
        changes = {f.id: f.to for f in chosen} | self._variables
        if self.found.distributed is False:  # a backend may reject a request of one rank, too
            last = self._applying("communication")[:1]  # the broadest change comes last: others are more specific
            chosen, changes = [*chosen, *last], changes | {f.id: f.to for f in last}
        minimal = MinimalSearch(
            changes, self._with, self._try, tries=self._tries, rows=self._rows, found=self.found
        ).find()
        if any(f.stage == "communication" for f in chosen if f.id in minimal):
            self.found.distributed = True  # one rank is enough, but not without a backend
        if minimal:  # a part is more specific than communication
            self.found.responsible = [r for r in self.found.responsible if r.factor in (RANKS, NODES)]
        for name in minimal:
            narrow = self._narrower(name, {other: changes[other] for other in minimal if other != name})
            self._rows.blame(*((narrow.id, narrow.to) if narrow else (name, changes[name])))
        return minimal

    def _narrower(self, name: str, others: Mapping[str, str]) -> Factor | None:
        """Return a part of this part that suffices, or None."""
        for f in self._applying("part", within=name):
            outcome = self._try(self._with({f.id: f.to, **others}))
            self._rows.add_change(f.id, f.to, outcome)
            if outcome == "ok":
                return f
        return None

    # --- one change

    def _applying(self, stage: str, within: str = "") -> list[Factor]:
        """Return the factors of a stage that apply to the program as observed in the first run."""
        saw = self.found.first.saw if self.found.first is not None else {}
        return [
            f
            for f in self._factors
            if (f.stage, f.within) == (stage, within)
            and all(use in saw for use in f.uses)
            and not any(use in saw for use in f.unless)
        ]

    def _with(self, changes: Mapping[str, str]) -> dict[str, str]:
        return {**self._base, **changes}

    def _try(self, setting: Mapping[str, str]) -> Outcome | None:
        """Return the outcome of a setting, or None if it could not be set."""
        self._check()
        outcome, unproven = self._tries.outcome(setting, self.found.failure)
        self.found.unproven += [name for name in unproven if name not in {*self.found.unproven, *self._base}]
        if outcome == "ok" and self._tries.reported_outcome(setting) is None:
            self._repeat_run(self._base, 2)  # it may be luck
        return None if setting and set(setting) - set(self._base) <= set(unproven) else outcome


def _count(number: int) -> str:
    return f"{number} rank{'s' * (number != 1)}"
