"""Writes the rows of the answer: what is responsible, what is ruled out, what is open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dtdebug.experiments.isolate.advice import remedy
from dtdebug.experiments.isolate.run_types import ENVIRONMENT, NODES, RANKS, VERSION, Outcome
from dtdebug.experiments.isolate.search_state import ResponsibleFactor, RunRow, SearchState
from dtdebug_taxonomy.knowledge.factors import Factor

_WENT: dict[Outcome, str] = {"other": "another failure", "timeout": "no failure in time"}


class Rows:
    """Writer of rows into a search's state; `named` maps names to factors."""

    def __init__(self, found: SearchState, named: Mapping[str, Factor]) -> None:
        self._found, self._named = found, named

    def clear(self) -> None:
        """Remove all conclusions."""
        self._found.rows, self._found.responsible, self._found.ruled_out, self._found.unclear = [], [], [], []

    def blame(self, factor: str, value: str, text: str = "") -> None:
        """Add a responsible factor."""
        fix, diff = remedy(self._found, factor, self._named.get(factor), value)
        text = text or self._part_name(factor)
        self._found.responsible.append(ResponsibleFactor(factor=factor, value=value, text=text, fix=fix, diff=diff))

    def add(self, title: str, tried: Sequence[tuple[str, str]], says: str) -> None:
        """Add a row."""
        self._found.rows.append(RunRow(title=title, tried=tuple(tried), says=says))

    def add_change(
        self, name: str, to: str, outcome: Outcome | None, *, said: bool = False, together: str = ""
    ) -> None:
        """Add the row of one change and its conclusion; `said` by the user, or tried `together` with others."""
        says = ""
        if outcome == "same":
            says = self.rule_out(name)
        elif outcome in ("ok", "timeout"):
            says = f"it is {self._part_name(name)}"
        elif outcome == "other":
            says = "says nothing"
            self._found.unclear.append(self.title(name))
        self.add(self.title(name), [(to, self.went(outcome, said=said) + together)], says)

    def replace_row(self, name: str, tried: Sequence[tuple[str, str]], says: str) -> None:
        """Replace the row of a part by the results of runs compared with each other."""
        rows, title = self._found.rows, self.title(name)
        rows[:] = [row for row in rows if row.title != title]
        self.add(title, tried, says)

    def rule_out(self, name: str) -> str:
        """Add what is ruled out, and return it in words."""
        f = self._named.get(name)
        says = f.same if f else f"{self._part_name(name)} is not it"
        self._found.ruled_out.append(says)
        return says

    def note(self, says: str) -> None:
        """Add what is ruled out, in these words."""
        self._found.ruled_out.append(says)

    def went(self, outcome: Outcome | None, *, said: bool = False) -> str:
        """Return the outcome in words; None means that the change could not be made."""
        if outcome is None:
            return "could not be changed"
        as_before, not_so, *_ = self._found.words
        words = {**_WENT, "same": as_before, "ok": not_so}[outcome]
        return f"{words}{', as you say' * said}"

    def title(self, name: str) -> str:
        """Return the display name of a factor or variable."""
        f = self._named.get(name)
        return f.title if f else name.removeprefix(ENVIRONMENT).removeprefix(VERSION)

    def _part_name(self, name: str) -> str:
        f = self._named.get(name)
        if f is not None:
            return f.gone
        if name.startswith(VERSION):
            return f"the version of {name.removeprefix(VERSION)}"
        return f"the variable {name.removeprefix(ENVIRONMENT)}"

    def remainder(self) -> None:
        """Blame the program itself if only the number of ranks makes the failure go away."""
        found = self._found
        named = [r for r in found.responsible if r.factor not in (RANKS, NODES)]
        failure = found.failure
        if named or failure is None or (found.distributed is None and not found.ruled_out):
            return
        place = f"{failure.file}:{failure.line} in {failure.function}" if failure.file else ""
        who = f"what {failure.role} does" if failure.role.startswith(("rank", "the last")) else "what ranks do"
        text = "the program itself" if found.distributed is False else f"the program: {who} there"
        if found.distributed is not False and not place:
            text = "the program, or communication"
        if failure.how == "differs":
            text = "the program, its arguments or its data"
        if found.unclear:
            text += f", unless it is {' or '.join(found.unclear)}, without which the job fails in another way"
        self.blame("program", place, text)
