"""Places under complementary conditions on the rank: together, every rank reaches one of them."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from dtdebug_taxonomy.source.python.bindings import leaves
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.rank_tests import RankTest
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS

_HALF = re.compile(r"enter|exit|begin|end|start|stop|before|after|acquire|release|wait")


class Condition(Protocol):
    """Condition on the rank that a place depends on, such as `guards.Guard`."""

    @property
    def test(self) -> RankTest: ...  # noqa: D102 - as there
    @property
    def node(self) -> ast.AST: ...  # noqa: D102
    @property
    def early(self) -> bool: ...  # noqa: D102


class Pairs:
    """Places of one kind, grouped by function and condition, so that each lookup takes constant time."""

    def __init__(self, code: Code, around: Callable[[ast.AST], Sequence[Condition]], places: Iterable[ast.AST]) -> None:
        self._code, self._around = code, around
        self._branches: dict[int, set[object]] = defaultdict(set)
        """Condition -> its branches that contain a place."""
        self._tests: dict[ast.AST | None, set[RankTest]] = defaultdict(set)
        """Function, or class of such methods as `__enter__` and `__exit__` -> the conditions on places in it."""
        self._last_free: dict[ast.AST | None, int] = {}
        """Function -> position of its last place without a condition."""
        for place in places:
            self._add(place)

    def _add(self, place: ast.AST) -> None:
        code = self._code
        for key, branch in branches(code.ancestors(place)):
            self._branches[key].add(branch)
        function, around = code.function(place), self._around(place)
        tests = {g.test for g in around}
        self._tests[function] |= tests
        if not around:
            self._last_free[function] = max(code.order[place], self._last_free.get(function, -1))
        if (home := self._home(place)) is not None:
            self._tests[home] |= tests

    def _home(self, place: ast.AST) -> ast.ClassDef | None:
        """Return the class of a method that is one half of a pair, such as begin and end."""
        function = self._code.function(place)
        return self._code.class_of(place) if function and _HALF.search(function.name) else None

    def complete(self, node: ast.AST) -> bool:
        """True if one of the places runs on exactly the ranks that do not reach a node."""
        code, mine = self._code, self._around(node)
        function = code.function(node)
        own = dict(branches((node, *code.ancestors(node))))
        if any(self._is_elsewhere(guard, own) for guard in mine):
            return True
        around = (a for a in code.ancestors(node) if isinstance(a, FUNCTIONS) and a is not function)
        homes: list[ast.AST | None] = [function, *around]  # a closure's counterpart is in the function around it
        if (home := self._home(node)) is not None:
            homes.append(home)
        theirs = [self._tests.get(h, set()) for h in homes]
        if any(complement in tests for g in mine for complement in g.test.complements for tests in theirs):
            return True
        return self._last_free.get(function, -1) > code.order[node] and _leaves_within(mine)

    def _is_elsewhere(self, guard: Condition, own: dict[int, object]) -> bool:
        """True if a place is on another branch of the `if` or `match` that guards a node."""
        key = id(guard.node)
        return bool(self._branches.get(key, set()) - {own.get(key)})


def branches(chain: Iterable[ast.AST]) -> Iterator[tuple[int, object]]:
    """Yield the branches of `if` and `match` statements on a chain of nodes, innermost first."""
    inner: ast.AST | None = None
    for up in chain:
        if isinstance(up, ast.If) and inner is not None and inner is not up.test:
            yield id(up), "orelse" if inner in up.orelse else "body"
        elif isinstance(up, ast.Match) and isinstance(inner, ast.match_case):
            yield id(up), inner
        inner = up


def goes(block: list[ast.stmt]) -> bool:
    """True if a block exits: return, continue, break, or the end of the program."""
    if not block:
        return False
    last = block[-1]
    if isinstance(last, ast.Raise):
        return False  # an error ends the rank, which is a different matter
    if leaves(block):
        return True
    return (
        isinstance(last, ast.Expr)
        and isinstance(last.value, ast.Call)
        and dotted_name(last.value.func) in {"sys.exit", "exit", "quit", "os._exit"}
    )


def _leaves_within(around: Sequence[Condition]) -> bool:
    """True for `if rank == 0: barrier(); return` before an unguarded `barrier()`, which the other ranks reach."""
    for node in (g.node for g in around if not g.early):
        if isinstance(node, ast.If) and goes(node.body):
            return True
        if isinstance(node, ast.Match) and any(goes(c.body) for c in node.cases):
            return True
    return False
