"""Finds the smallest set of changes with which a job does not fail: all at once, then by halves (delta debugging).

A. Zeller, R. Hildebrandt: Simplifying and isolating failure-inducing input, https://doi.org/10.1109/32.988498
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dtdebug.experiments.isolate.result_rows import Rows
from dtdebug.experiments.isolate.run_history import Tries
from dtdebug.experiments.isolate.run_types import Outcome
from dtdebug.experiments.isolate.search_state import SearchState


class MinimalSearch:
    """Search among changes that can be made together."""

    def __init__(
        self,
        changes: Mapping[str, str],
        setting: Callable[[Mapping[str, str]], dict[str, str]],
        attempt: Callable[[Mapping[str, str]], Outcome | None],
        *,
        tries: Tries,
        rows: Rows,
        found: SearchState,
    ) -> None:
        """`setting`: adds changes to those of all runs; `attempt`: runs a setting and returns the outcome."""
        self._changes, self._with, self._attempt = changes, setting, attempt
        self._tries, self._rows, self._found = tries, rows, found

    def find(self) -> list[str]:
        """Return the names of the smallest set without which the job does not fail; empty if there is none.

        If the user reports that one change helps, return it without a search; write rows for all reported results.
        """
        told = {name: self._tries.reported_outcome(self._with({name: to})) for name, to in self._changes.items()}
        for name, outcome in told.items():
            if outcome is not None:
                self._rows.add_change(name, self._changes[name], outcome, said=True)
        enough = [name for name, outcome in told.items() if outcome == "ok"][:1]
        left = [name for name, outcome in told.items() if outcome != "same"]
        return enough or (self._find_needed(left) if left else [])

    def _find_needed(self, names: list[str]) -> list[str]:
        """Return the names that make the failure go away: all at once, then by halves if that fails in another way."""
        outcome = self._attempt(self._with({name: self._changes[name] for name in names}))
        known = [name for name in names if name not in self._found.unproven]
        if outcome in ("ok", "timeout"):
            minimal = self._reduce_changes(known, [])
            self._say_reduced(known, minimal)
            return minimal
        if outcome == "same":
            for name in known:
                self._rows.add_change(name, self._changes[name], "same", together=", all at once" * (len(known) > 1))
        elif outcome == "other" and len(names) == 1:
            self._rows.add_change(names[0], self._changes[names[0]], outcome)
        elif outcome == "other":
            half = (len(names) + 1) // 2
            return self._find_needed(names[:half]) or self._find_needed(names[half:])
        return []

    def _reduce_changes(self, names: list[str], kept: list[str]) -> list[str]:
        """Return the names that are needed in addition to `kept` for the failure to go away."""
        if len(names) < 2:
            return names
        first, second = names[: (len(names) + 1) // 2], names[(len(names) + 1) // 2 :]
        for half in (first, second):
            setting = self._with({name: self._changes[name] for name in (*half, *kept)})
            if self._attempt(setting) in ("ok", "timeout"):
                return self._reduce_changes(half, kept)
        needed = self._reduce_changes(first, [*second, *kept])
        return [*needed, *self._reduce_changes(second, [*needed, *kept])]

    def _say_reduced(self, names: Sequence[str], minimal: Sequence[str]) -> None:
        """Write rows for the changes of a reduced set, also for those that are not responsible."""
        failing = [dict(key) for key, runs in self._tries.of.items() if any(run.outcome == "same" for run in runs)]
        together = ", together with the others" if len(minimal) > 1 else ""
        for name in names:
            if name in minimal:
                self._rows.add_change(name, self._changes[name], "ok", together=together)
            elif any(name in setting for setting in failing):
                self._rows.add_change(name, self._changes[name], "same")
