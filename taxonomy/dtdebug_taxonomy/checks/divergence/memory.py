"""Interpretations of functions that are kept, also from one version of a program to the next.

Each is kept with all that it has read: keys of the program's tables, and what it asked about other functions, in
order. Where all of that has the same answers, asked in the same order, a new interpretation would end the same.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import NamedTuple

from dtdebug_taxonomy.checks.divergence.origins import Callee, Value
from dtdebug_taxonomy.checks.divergence.summaries import Program, Summary
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.results import Read
from dtdebug_taxonomy.source.python.syntax import Function


class Outcome(NamedTuple):
    """Result of an interpretation."""

    summary: Summary
    env: dict[str, Value]
    """Values of the names in the end."""


class Question(NamedTuple):
    """Request of an interpretation to a program."""

    code: Code
    name: str
    """Method of `Program`."""
    given: tuple[Hashable, ...]


class Interpretation(NamedTuple):
    """Outcome with all that it depends on beyond the text of the function."""

    outcome: Outcome
    reads: frozenset[Read]
    waits: frozenset[ast.Call]
    """Calls in the function in which the ranks wait."""
    answers: tuple[tuple[Question, object], ...]


class Listener:
    """Program that records what an interpretation asks it."""

    def __init__(self, home: Program, answers: dict[Question, object], asked: list[tuple[Question, object]]) -> None:
        self.home, self.code, self.waits = home, home.code, home.waits
        self._answers, self._asked = answers, asked

    def _ask(self, name: str, *given: Hashable) -> object:
        answer, _ = self.code.results.record(lambda: getattr(self.home, name)(*given))
        question = Question(self.code, name, given)
        if question not in self._answers or self._answers[question] != answer:
            self._answers[question] = answer
            self._asked.append((question, answer))
        return answer

    def of(self, code: Code) -> Program:
        """Return the interpreter of another program of the project."""
        return self if code is self.code else Listener(self.home.of(code), self._answers, self._asked)

    def summary(self, node: ast.AST) -> Summary:
        """Return the effects of a function, lambda or the module."""
        return self._ask("summary", node)  # type: ignore[return-value]

    def global_value(self, name: str) -> Value:
        """Return the value of a name of the module."""
        return self._ask("global_value", name)  # type: ignore[return-value]

    def prepare(self, home: ast.ClassDef) -> None:
        """Find the values of a class's attributes."""
        self._ask("prepare", home)

    def attribute(self, home: ast.ClassDef, name: str) -> Value:
        """Return the value of an attribute of a class."""
        return self._ask("attribute", home, name)  # type: ignore[return-value]

    def meetings(self, node: ast.AST) -> tuple[str, ...]:
        """Return the names of the calls in which the ranks wait."""
        return self._ask("meetings", node)  # type: ignore[return-value]

    def met(self, call: ast.Call, callee: Value | None = None) -> tuple[str, ...]:
        """Return the names of the waiting calls that one call leads to."""
        return self._ask("met", call, callee)  # type: ignore[return-value]

    def note(self, call: ast.Call, names: tuple[str, ...]) -> None:
        """Note to which waiting calls the call of a value leads."""
        self._answers.clear()  # other answers may depend on it
        self._ask("note", call, names)

    def method(self, home: ast.ClassDef, name: str) -> Function | None:
        """Return a method that a class itself defines."""
        return self._ask("method", home, name)  # type: ignore[return-value]

    def seeds_by_rank(self) -> bool:
        """True if the program seeds each rank differently."""
        return self._ask("seeds_by_rank")  # type: ignore[return-value]

    def is_unseeded(self) -> bool:
        """True if each rank draws its own numbers."""
        return self._ask("is_unseeded")  # type: ignore[return-value]

    def callees(self, call: ast.Call) -> Iterable[Callee | str]:
        """Return the functions that a call may refer to."""
        return self.home.callees(call)


class Memory:
    """Interpretations of the functions of one version of a program, and those of the version before."""

    def __init__(self, home: Program) -> None:
        self._home, code = home, home.code
        self._known: dict[Hashable, list[Interpretation]] = {}
        self._before: dict[Hashable, list[Interpretation]] = code.kept_before.get("divergence", {})
        code.kept["divergence"] = self._known
        self._waits: dict[ast.AST, set[ast.Call]] = {}
        for call in home.waits:
            for around in code.ancestors(call):
                if around is not code.tree or code.function(call) is None:
                    self._waits.setdefault(around, set()).add(call)

    def interpret(self, node: ast.AST, work: Callable[[Program], Outcome]) -> Outcome:
        """Return the outcome of an interpretation: a kept one, or that of `work`, which asks the program given."""
        key: Hashable = tuple(node.body) if isinstance(node, ast.Module) else node  # a module changes from text to text
        waits = frozenset(self._waits.get(node, ()))
        found = next((i for i in self._candidates(key, waits) if self._holds(i)), None)
        known = self._known.setdefault(key, [])
        if found is None:
            asked: list[tuple[Question, object]] = []
            listener = Listener(self._home, {}, asked)
            outcome, reads = self._home.code.results.record(lambda: work(listener))
            found = Interpretation(outcome, reads, waits, tuple(asked))
        if found not in known:
            known.append(found)
        return found.outcome

    def _candidates(self, key: Hashable, waits: frozenset[ast.Call]) -> Iterator[Interpretation]:
        """Yield the interpretations that the tables of this version do not exclude."""
        yield from self._known.get(key, ())
        for each in self._before.get(key, ()):
            if each.waits == waits and self._home.code.results.hold(each.reads):
                yield each

    def _holds(self, found: Interpretation) -> bool:
        """True if the programs give the same answers now."""
        home = self._home
        return all(getattr(home.of(code), name)(*given) == answer for (code, name, given), answer in found.answers)
