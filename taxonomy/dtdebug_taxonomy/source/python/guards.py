"""Conditions that let only some ranks pass: `if rank == 0:`, `if not is_main_process(): return`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.pairs import Pairs, goes
from dtdebug_taxonomy.source.python.rank_tests import RankTest, RankTests
from dtdebug_taxonomy.source.python.ranks import may_tell_rank, several
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS, Function

_ONLY_MAIN = re.compile(
    r"(rank_?(zero|0)_?only|only_rank_?(zero|0)|(only_)?on_(local_)?main_process|(main|master)_process(_only)?|master_only|"
    r"only_(main|master)(_process)?|one_rank|zero_rank_only|rank_zero_experiment)"
)


_HOMES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_STATEMENTS = (ast.stmt, ast.Lambda)
_ASKS = (ast.If, ast.IfExp, ast.While)
_ASKED_INSIDE = (ast.If, ast.With, ast.AsyncWith, ast.Try)
"""Statements with a condition that is always evaluated."""
_MOST = 16
"""Maximum number of early exits kept per block: each counts for all that comes after it."""


_LONGEST = 32
"""Maximum length of a variable that holds a rank, in characters."""


class Guard(NamedTuple):
    """Condition on the rank that a piece of code depends on."""

    test: RankTest
    node: ast.AST
    """The `if`, `match`, conditional expression, early return or decorator."""
    early: bool = False
    """True if it exits before that code, and is not around it."""


class Guards:
    """The rank conditions of one program."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self._tests = RankTests(code)
        self._pairs: dict[int, tuple[Sequence[ast.AST], Pairs]] = {}
        """Places of one kind, kept alive with their pairs: callers pass the same list many times."""

    def test(self, node: ast.expr, *, holds: bool = True) -> RankTest | None:
        """Return what is known about the rank if a condition holds, or if it doesn't; None if nothing is."""
        return self._tests.test(node, holds=holds)

    def around(self, node: ast.AST, *, early: bool = True) -> list[Guard]:
        """Return the conditions on the rank under which a node runs within its function, innermost first."""
        if not self._possible:
            return []
        todo = [node]
        while not self.code.results.has(("guards", todo[-1], early)) and (up := self._above(todo[-1])) is not None:
            todo.append(up)
        found: list[Guard] = []
        for each in reversed(todo):  # from outside, since a statement has the conditions of the one around it
            found = self._result(each, early)
        return found

    def _result(self, node: ast.AST, early: bool) -> list[Guard]:
        return self.code.results.get(("guards", node, early), lambda: list(self._around(node, early)))

    @cached_property
    def _possible(self) -> bool:
        """True if any name in the program may be a rank's; otherwise, as in most programs, no condition concerns it."""
        code = self.code
        texts = (n.value for n in code.nodes(ast.Constant) if isinstance(n.value, str) and len(n.value) < _LONGEST)
        places: tuple[Iterable[str], ...] = (  # what most often tells it first
            (n.id for n in code.nodes(ast.Name)),
            (n.attr for n in code.nodes(ast.Attribute)),
            (name.rpartition(".")[2] for name in code.imports.values()),
            texts,
        )
        return any(may_tell_rank(w) or _ONLY_MAIN.fullmatch(w) for words in places for w in set(words))

    def _above(self, node: ast.AST) -> ast.stmt | None:
        """Return the statement around a node within its function."""
        up = next((a for a in self.code.ancestors(node) if isinstance(a, _STATEMENTS)), None)
        return up if isinstance(up, ast.stmt) and not isinstance(up, _HOMES) else None

    def _around(self, node: ast.AST, early: bool) -> Iterator[Guard]:
        inner = node
        if self.code.function(node) is None:
            self.code.results.note_volatile()  # it depends on the statements before it, any of which may change
        for up in self.code.ancestors(node):
            if isinstance(inner, ast.stmt) and early:
                yield from self._left_before(inner)
            yield from self._conditions_before(up, inner)
            if isinstance(up, FUNCTIONS):
                if isinstance(inner, ast.stmt):
                    yield from _decorator_guards(up)
                return
            if isinstance(up, ast.Lambda | ast.ClassDef):
                return
            if isinstance(up, ast.stmt):
                yield from self._result(up, early)
                return
            inner = up

    def _conditions_before(self, up: ast.AST, inner: ast.AST) -> Iterator[Guard]:
        """Yield the conditions that one node evaluates before it reaches a node in it."""
        if isinstance(up, _ASKS) and inner is not up.test:
            body = up.body if isinstance(up.body, list) else [up.body]
            if (test := self.test(up.test, holds=inner in body)) is not None:
                yield Guard(test, up)
        elif isinstance(up, ast.BoolOp) and inner is not up.values[0]:
            for operand in up.values[: up.values.index(inner)]:  # type: ignore[arg-type]
                if (test := self.test(operand, holds=isinstance(up.op, ast.And))) is not None:
                    yield Guard(test, up)
        elif isinstance(up, ast.match_case) and inner in up.body:
            match: ast.Match = self.code.parent[up]  # type: ignore[assignment]
            if (test := self._tests.case(match, up)) is not None:
                yield Guard(test, match)

    def _left_before(self, statement: ast.stmt) -> Iterator[Guard]:
        """Yield early returns: earlier statements of the same block after which only some ranks continue."""
        block = self.code.block(statement)
        leaving = self.code.results.get(("early exits", block[0], None), lambda: self._exits(block))
        here = self.code.order[statement]
        for guard in leaving:
            if self.code.order[guard.node] >= here:
                return
            yield guard

    def _exits(self, block: list[ast.stmt]) -> list[Guard]:
        """Return the first conditions in a block under which some ranks leave it."""
        if self.code.function(block[0]) is None:
            self.code.results.note_volatile()
        asking = [s for s in reversed(block) if isinstance(s, (*_ASKED_INSIDE, ast.Match))]
        found = {guard.test: guard for earlier in asking for guard in self._leaves(earlier)}
        return sorted(found.values(), key=lambda g: self.code.order[g.node])[:_MOST]

    def _leaves(self, earlier: ast.stmt) -> Iterator[Guard]:
        """Yield the conditions in a statement under which some ranks leave the block."""
        if isinstance(earlier, ast.Match) and not all(goes(c.body) for c in earlier.cases):
            for case in earlier.cases:
                test = self._tests.case(earlier, case) if goes(case.body) and case.guard is None else None
                if test is not None:
                    yield Guard(test.opposite, earlier, early=True)
        for condition in self._conditions(earlier):
            if goes(condition.body) and not goes(condition.orelse):
                test = self.test(condition.test, holds=False)
            elif goes(condition.orelse) and not goes(condition.body):
                test = self.test(condition.test)
            else:
                continue
            if test is not None:
                yield Guard(test, condition, early=True)

    def _conditions(self, statement: ast.stmt) -> Iterator[ast.If]:
        """Yield the conditions in a statement that are always evaluated with several processes."""
        if not isinstance(statement, _ASKED_INSIDE):
            return
        inside = [inner for inner in statement.body if isinstance(inner, _ASKED_INSIDE)]
        if isinstance(statement, ast.If):
            yield statement
            if not inside or not several(self.code, statement.test):
                return
        for inner in inside:
            yield from self._conditions(inner)

    def has_counterpart(self, node: ast.AST, same: Sequence[ast.AST]) -> bool:
        """True if one of the other places runs on exactly the ranks that do not reach this one.

        `if rank != 0: barrier()` and later `if rank == 0: barrier()`, or `if`/`else`: every rank
        calls it once. The two may be methods of one class, such as those of a context manager.
        """
        if id(same) not in self._pairs:
            self._pairs[id(same)] = same, Pairs(self.code, self.around, same)
        return self._pairs[id(same)][1].complete(node)


def _decorator_guards(function: Function) -> Iterator[Guard]:
    for decorator in function.decorator_list:
        func = decorator.func if isinstance(decorator, ast.Call) else decorator
        last = dotted_name(func).rsplit(".", 1)[-1]
        if _ONLY_MAIN.fullmatch(last):
            yield Guard(RankTest("local" if "local" in last else "global", "0", equal=True), decorator)


def guards(code: Code) -> Guards:
    """Return the rank conditions of a program, cached on it."""
    found: Guards | None = code.__dict__.get("_guards")
    if found is None:
        found = code.__dict__["_guards"] = Guards(code)
    return found
