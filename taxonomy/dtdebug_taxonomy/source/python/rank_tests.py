"""Constraints of conditions on the rank: `rank == 0`, `not is_main_process()`, `a and rank in (0, 1)`.

A condition is on the rank if it compares a rank with a number, or asks for the
main process. `rank != -1`, `rank is None` and `world_size > 1` ask whether there are several
processes at all, and do not count. In `a or b` both must imply the same: one of them may not let
ranks pass that the other holds back.
"""

from __future__ import annotations

import ast
import re
from functools import cached_property
from typing import NamedTuple

from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import is_main, is_size, rank, several, written_number
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS, Function
from dtdebug_taxonomy.source.python.values import class_behind

_SIZE_NAME = re.compile(r"(?i)(^|[._])(world_?size|nprocs|num_processes)$")
_SIZED = re.compile(r"[<%/]|in ")
_DEEPEST = 3
"""Maximum number of names and functions through which a condition is followed."""


class RankTest(NamedTuple):
    """Constraint of a condition on the rank."""

    which: str
    """`global`, `local`, or the name of another rank (`tp_rank`)."""
    value: str
    """Value that it is compared with, as written: `0`, `< 4`, `% 2 == 0`, `world_size - 1`."""
    equal: bool
    """True if the condition holds for that value, False if it holds for the others."""

    @property
    def opposite(self) -> RankTest:
        """Test that holds if this one does not."""
        return self._replace(equal=not self.equal)

    @property
    def words(self) -> str:
        """Ranks that pass, in words: `only on rank 0`."""
        of = {"global": "rank", "local": "local rank"}.get(self.which, self.which)
        if _SIZED.match(self.value):
            return f"only where {of} {self.value}" if self.equal else f"not where {of} {self.value}"
        return f"only on {of} {self.value}" if self.equal else f"on all ranks but {of} {self.value}"

    @property
    def complements(self) -> tuple[RankTest, ...]:
        """Tests that let exactly those ranks pass that this one holds back.

        A local rank may replace the global one: on one node they are the same.
        """
        others = {"global": ("local",), "local": ("global",)}.get(self.which, ())
        return tuple(self.opposite._replace(which=which) for which in (self.which, *others))

    def completes(self, other: RankTest) -> bool:
        """True if exactly those ranks pass that the other test holds back."""
        return self in other.complements


class RankTests:
    """The conditions of one program that concern the rank."""

    def __init__(self, code: Code) -> None:
        self.code = code

    def test(self, node: ast.expr, *, holds: bool = True) -> RankTest | None:
        """Return what is known about the rank if a condition holds, or if it doesn't; None if nothing is."""
        return self.code.results.get(("rank test", node, holds), lambda: self._test(node, holds, _DEEPEST))

    def case(self, match: ast.Match, case: ast.match_case) -> RankTest | None:
        """Return what is known about the rank in a case of a `match`; None if nothing is."""
        if case.guard is not None and (test := self.test(case.guard)) is not None:
            return test
        patterns = _alternatives(case.pattern)
        if patterns:
            return self._pattern_test(match.subject, patterns)
        earlier = match.cases[: match.cases.index(case)]
        refused = [p for c in earlier if c.guard is None for p in _alternatives(c.pattern)]
        return _test_if(self._pattern_test(match.subject, refused), holds=False)

    def _pattern_test(self, subject: ast.expr, patterns: list[ast.pattern]) -> RankTest | None:
        """Return what is known about the rank if one of some patterns matches; None if nothing is."""
        only = patterns[0] if len(patterns) == 1 else None
        if isinstance(only, ast.MatchSingleton) and only.value is not None:
            return self.test(subject, holds=only.value)
        which = rank(self.code, subject)
        values = {written_number(self.code, p.value) if isinstance(p, ast.MatchValue) else "" for p in patterns}
        if not which or "" in values or values <= {"-1"}:
            return None
        return RankTest(which, ",".join(sorted(values - {"-1"})), equal=True)

    def _test(self, node: ast.expr, holds: bool, depth: int) -> RankTest | None:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self._test(node.operand, not holds, depth)
        if isinstance(node, ast.BoolOp):
            return self._operands(node, holds, depth)
        if isinstance(node, ast.IfExp):
            many = several(self.code, node.test)
            return None if many is None else self._test(node.body if many else node.orelse, holds, depth)
        return self._simple(node, holds, depth)

    def _operands(self, node: ast.BoolOp, holds: bool, depth: int) -> RankTest | None:
        all_hold = isinstance(node.op, ast.And) is holds
        alone = [several(self.code, v) is (not holds) for v in node.values]
        if all_hold:
            tests = [self._test(v, holds, depth) for v in node.values]
            return None if any(alone) else next((t for t in tests if t), None)
        tests = [self._test(v, holds, depth) for v, one in zip(node.values, alone, strict=True) if not one]
        if not tests or not all(tests):
            return None
        first: RankTest = tests[0]  # type: ignore[assignment]
        if any(t.which != first.which or t.equal is not first.equal for t in tests if t):
            return None
        return first._replace(value=",".join(sorted({t.value for t in tests if t})))

    def _simple(self, node: ast.expr, holds: bool, depth: int) -> RankTest | None:
        if isinstance(node, ast.Compare):
            return _test_if(self._comparison(node), holds)
        if isinstance(node, ast.BinOp):
            return _test_if(self._arithmetic_test(node, "0"), not holds)
        if isinstance(node, ast.Call):
            return self._call(node, holds, depth)
        name = dotted_name(node) or (node.attr if isinstance(node, ast.Attribute) else "")
        if not name or self._asks_if_given(node):
            return None
        if depth and dotted_name(node):
            values = self.code.values(node)
            tests = [self._test(v, holds, depth - 1) if v is not None and v is not node else None for v in values]
            if tests and tests[0] and all(t == tests[0] for t in tests):
                return tests[0]
        if depth and (flag := self._flag(node, depth)) is not None:
            return _test_if(flag, holds)
        if which := is_main(name):
            return None if self._is_switch(node) else RankTest(which, "0", holds)
        if (function := self._property(node)) is not None:
            return self._return_test(function, holds, depth)
        last = name.rsplit(".", 1)[-1].lower()
        which = rank(self.code, node)
        return RankTest(which, "0", not holds) if which and not last.startswith(("gpu", "device")) else None

    def _asks_if_given(self, node: ast.expr) -> bool:
        """True if a name is an argument that is None unless a caller gives it."""
        bound = self.code.bound(node) if isinstance(node, ast.Name) else []
        return bool(bound) and all(self._is_none_by_default(b.node) for b in bound)

    def _is_none_by_default(self, argument: ast.AST) -> bool:
        a = self.code.parent.get(argument)
        if not isinstance(a, ast.arguments):
            return False
        places = [*a.posonlyargs, *a.args]
        rows = [
            *zip(reversed(places), reversed(a.defaults), strict=False),
            *zip(a.kwonlyargs, a.kw_defaults, strict=True),
        ]
        return any(n is argument and isinstance(d, ast.Constant) and d.value is None for n, d in rows)

    def _is_switch(self, node: ast.expr) -> bool:
        """True if a name only ever has constant values, such as an argument passed as `rank0=True` on every rank."""
        values = self.code.values(node) if isinstance(node, ast.Name) else []
        return len(values) > 1 and all(isinstance(v, ast.Constant) for v in values)

    def _flag(self, node: ast.expr, depth: int) -> RankTest | None:
        """Return what is known if a name is true that is set to True or False, some of it under conditions on the rank.

        `main = False`, then `if rank == 0: main = True`; what is set for a single process is left out.
        """
        bound = self.code.bound(node) if isinstance(node, ast.Name) else []
        values = [b.value.value if isinstance(b.value, ast.Constant) else None for b in bound]
        if set(values) != {True, False}:
            return None
        self.code.results.note_volatile()  # the conditions around each place where it is set
        tests: dict[object, list[RankTest | None]] = {True: [], False: []}
        for binding, value in zip(bound, values, strict=True):
            alone, test = self._set_under(binding.node, depth)
            if not alone:
                tests[value].append(test)
        first = tests[True][0] if tests[True] else None
        if first is not None and all(t == first for t in tests[True]):
            return first
        rest = tests[False][0] if tests[False] else None
        return rest.opposite if rest is not None and all(t == rest for t in tests[False]) else None

    def _set_under(self, node: ast.AST, depth: int) -> tuple[bool, RankTest | None]:
        """Return whether a place is reached by a single process only, and else the condition on the rank around it."""
        inner, found = node, None
        for up in self.code.ancestors(node):
            if isinstance(up, FUNCTIONS):
                break
            if isinstance(up, ast.If) and inner is not up.test:
                if several(self.code, up.test) is (inner not in up.body):
                    return True, None
                found = found or self._test(up.test, inner in up.body, depth - 1)
            inner = up
        return False, found

    def _call(self, call: ast.Call, holds: bool, depth: int) -> RankTest | None:
        func = call.func
        last = func.attr if isinstance(func, ast.Attribute) else dotted_name(func)
        if last == "bool" and len(call.args) == 1:
            return self._test(call.args[0], holds, depth)
        if which := is_main(self.code.name(call.func) or last, called_with=len(call.args)):
            return RankTest(which, "0", holds)
        if which := rank(self.code, call):
            return RankTest(which, "0", not holds)
        function = self.code.local_function(call) or (self._method(func) if isinstance(func, ast.Attribute) else None)
        return None if function is None else self._return_test(function, holds, depth)

    def _property(self, node: ast.expr) -> Function | None:
        """Return the property behind `self.x`, or behind `config.x` of an object created here, or None."""
        function = self._method(node) if isinstance(node, ast.Attribute) else None
        is_property = function and any(dotted_name(d).endswith("property") for d in function.decorator_list)
        return function if is_property else None

    def _method(self, node: ast.Attribute) -> Function | None:
        """Return the method of a class of this file that an attribute of its object refers to, or None."""
        self.code.results.note("functions", node.attr)
        named = self.code.functions.get(node.attr, ())
        home = class_behind(self.code, node.value) if named else None
        found = [f for f in named if home is not None and self.code.parent.get(f) is home]
        return found[0] if found else None

    def _return_test(self, function: Function, holds: bool, depth: int) -> RankTest | None:
        """Return what is known about the rank if a function returns a true, or a false, value; None if nothing is."""
        if not depth:
            return None
        returned = [r.value for r in self.code.inside(function, ast.Return) if r.value is not None]
        tests = [self._test(v, holds, depth - 1) for v in returned if not isinstance(v, ast.Constant)]
        return tests[0] if tests and all(t == tests[0] for t in tests) else None

    def _comparison(self, node: ast.Compare) -> RankTest | None:
        operands = [node.left, *node.comparators]
        tests = [
            self._compare(left, op, right) for left, op, right in zip(operands, node.ops, operands[1:], strict=False)
        ]
        found = [t for t in tests if t]
        return found[0] if len(found) == 1 else None

    def _compare(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> RankTest | None:
        if isinstance(left, ast.BinOp) and isinstance(op, ast.Eq | ast.NotEq):
            return _test_if(self._arithmetic_test(left, self._value(right)), isinstance(op, ast.Eq))
        which = rank(self.code, left)
        if not which:
            which, left, right = rank(self.code, right), right, left
            if isinstance(op, ast.In | ast.NotIn):
                return None  # `"cuda" in str(device)` searches a text
            op = _TURNED.get(type(op), type(op))()
        if not which or isinstance(op, ast.Is | ast.IsNot) or self._is_turn(right):
            return None
        if isinstance(op, ast.In | ast.NotIn):
            return self._among(which, right, isinstance(op, ast.In))
        if isinstance(op, ast.Eq | ast.NotEq):
            value = self._value(right)
            return None if value == "-1" else RankTest(which, value, isinstance(op, ast.Eq))
        if is_size(self.code, right):
            return None
        return _order_test(which, op, self._value(right))

    def _is_turn(self, node: ast.expr) -> bool:
        """True if it is the item of a loop, so that each rank has its turn."""
        return bool(dotted_name(node)) and any(b.how == "loop" for b in self.code.bound(node))

    def _among(self, which: str, row: ast.expr, among: bool) -> RankTest | None:
        if self._is_everyone(row):
            return None
        if isinstance(row, ast.Tuple | ast.List | ast.Set):
            values = sorted({self._value(e) for e in row.elts} - {"-1", ""})
            return RankTest(which, ",".join(values), among) if values else None
        return RankTest(which, f"in {self.code.source_of(row)}", among)

    def _is_everyone(self, row: ast.expr) -> bool:
        """True if it contains every rank: `range(world_size)`, or `[0, 1]` in a program of two processes."""
        return any(self._holds_all(value) for value in self.code.values(row))

    def _holds_all(self, row: ast.expr | None) -> bool:
        if isinstance(row, ast.Tuple | ast.List | ast.Set):
            self.code.results.note_volatile()  # the sizes are of the whole program
            count = len(row.elts)
            return (
                count > 1
                and self._sizes == {count}
                and {self._value(e) for e in row.elts} == set(map(str, range(count)))
            )
        if not isinstance(row, ast.Call) or not row.args:
            return False
        if self.code.name(row.func) == "range":
            return is_size(self.code, row.args[min(len(row.args), 2) - 1])
        return self.code.name(row.func) in {"list", "set", "tuple"} and self._is_everyone(row.args[0])

    @cached_property
    def _sizes(self) -> set[object]:
        """Numbers of processes written in the program: `world_size = 4`, `spawn(f, nprocs=4)`."""
        bound = (b.value for (_, name), rows in self.code.bindings.items() if _SIZE_NAME.search(name) for b in rows)
        given = (k.value for k in self.code.nodes(ast.keyword) if k.arg and _SIZE_NAME.search(k.arg))
        return {self.code.constant(v) for v in (*bound, *given)} - {None}

    def _arithmetic_test(self, node: ast.BinOp, value: str) -> RankTest | None:
        """Return the test for `rank % 2` or `rank // 8`."""
        sign = {ast.Mod: "%", ast.FloorDiv: "//"}.get(type(node.op))
        which = rank(self.code, node.left)
        if sign is None or not which:
            return None
        by = self.code.source_of(node.right)
        if (sign, by, value) == ("%", "2", "1"):
            return RankTest(which, "% 2 == 0", equal=False)  # the odd ranks are those that are not even
        return RankTest(which, f"{sign} {by} == {value}", equal=True)

    def _value(self, node: ast.expr) -> str:
        return written_number(self.code, node) or " ".join(self.code.source_of(node).split())


_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE}


def _test_if(test: RankTest | None, holds: bool) -> RankTest | None:
    return test if test is None or holds else test.opposite


def _alternatives(pattern: ast.pattern | None) -> list[ast.pattern]:
    """Return the patterns, one of which must match; empty if anything does."""
    while isinstance(pattern, ast.MatchAs):
        pattern = pattern.pattern
    return pattern.patterns if isinstance(pattern, ast.MatchOr) else [pattern] if pattern else []


def _order_test(which: str, op: ast.cmpop, value: str) -> RankTest | None:
    """Return the test for `rank < value` and similar; `rank >= 0` and `rank > -1` imply nothing."""
    if isinstance(op, ast.Gt | ast.GtE):
        less = _order_test(which, ast.LtE() if isinstance(op, ast.Gt) else ast.Lt(), value)
        return less.opposite if less else None
    if value.startswith("-") or (value == "0" and isinstance(op, ast.Lt)):
        return None
    if (value == "0" and isinstance(op, ast.LtE)) or (value == "1" and isinstance(op, ast.Lt)):
        return RankTest(which, "0", equal=True)
    return RankTest(which, f"{'<' if isinstance(op, ast.Lt) else '<='} {value}", equal=True)
