"""What the runs say, row by row: what is responsible, what is ruled out, what stays open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dtdebug.isolate.found import Responsible, RunRow, SearchState
from dtdebug.isolate.remedies import remedy
from dtdebug.isolate.run import ENVIRONMENT, NODES, RANKS, VERSION, Outcome
from dtdebug_taxonomy.factors import Factor

_WENT: dict[Outcome, str] = {"other": "another failure", "timeout": "no failure in time"}


class Rows:
    """Writes rows into what is found; `named` are the factors by their names."""

    def __init__(self, found: SearchState, named: Mapping[str, Factor]) -> None:
        self._found, self._named = found, named

    def clear(self) -> None:
        """Takes back what was said."""
        self._found.rows, self._found.responsible, self._found.ruled_out, self._found.unclear = [], [], [], []

    def blame(self, factor: str, value: str, text: str = "") -> None:
        """Names what is responsible."""
        fix, diff = remedy(self._found, factor, self._named.get(factor), value)
        text = text or self._gone(factor)
        self._found.responsible.append(Responsible(factor=factor, value=value, text=text, fix=fix, diff=diff))

    def add(self, title: str, tried: Sequence[tuple[str, str]], says: str) -> None:
        """A row of its own."""
        self._found.rows.append(RunRow(title=title, tried=tuple(tried), says=says))

    def changed(self, name: str, to: str, outcome: Outcome | None, *, said: bool = False, together: str = "") -> None:
        """One change: how the job went, and what that says; `said` by the user, or tried `together` with others."""
        says = ""
        if outcome == "same":
            says = self.rule_out(name)
        elif outcome in ("ok", "timeout"):
            says = f"it is {self._gone(name)}"
        elif outcome == "other":
            says = "says nothing"
            self._found.unclear.append(self.title(name))
        self.add(self.title(name), [(to, self.went(outcome, said=said) + together)], says)

    def weighed(self, name: str, tried: Sequence[tuple[str, str]], says: str) -> None:
        """What runs beside each other have shown of a part, in place of what was said of it before."""
        rows, title = self._found.rows, self.title(name)
        rows[:] = [row for row in rows if row.title != title]
        self.add(title, tried, says)

    def rule_out(self, name: str) -> str:
        """What is not it, in words."""
        f = self._named.get(name)
        says = f.same if f else f"{self._gone(name)} is not it"
        self._found.ruled_out.append(says)
        return says

    def note(self, says: str) -> None:
        """What is not it, in these words."""
        self._found.ruled_out.append(says)

    def went(self, outcome: Outcome | None, *, said: bool = False) -> str:
        """How the job went, in words; None: with nothing changed, for it could not be."""
        if outcome is None:
            return "could not be changed"
        as_before, not_so, *_ = self._found.words
        words = {**_WENT, "same": as_before, "ok": not_so}[outcome]
        return f"{words}{', as you say' * said}"

    def title(self, name: str) -> str:
        """How a factor or a variable is called."""
        f = self._named.get(name)
        return f.title if f else name.removeprefix(ENVIRONMENT).removeprefix(VERSION)

    def _gone(self, name: str) -> str:
        f = self._named.get(name)
        if f is not None:
            return f.gone
        if name.startswith(VERSION):
            return f"the version of {name.removeprefix(VERSION)}"
        return f"the variable {name.removeprefix(ENVIRONMENT)}"

    def remainder(self) -> None:
        """What is left where no change but the number of ranks makes the failure go away: the program itself."""
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
