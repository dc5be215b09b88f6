"""The tests and loops around a living stack, with what decides them now: why a rank is where it is.

Nothing of the program is run: calls of its own short functions, properties and `__len__` are read as expressions. A
value that the program may have changed since the test is left out.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType, FunctionType, TracebackType
from typing import Any

from dtdebug.account import evaluate, scopes
from dtdebug.account.changes import LOOPS, NOTHING, Changed, changed_since, loop_changes, reads_changed, stored_names
from dtdebug.account.entering import function_of_code
from dtdebug.account.lengths import length
from dtdebug.account.objects import MISSING, is_exactly, stored_in_class
from dtdebug.account.parts import leaves
from dtdebug.account.places import place
from dtdebug.account.polled_files import writers_of_polled
from dtdebug.account.scopes import Scope
from dtdebug.account.sources import Program, Sources, live_lines
from dtdebug.account.values import named, one_line
from dtdebug.account.way_back import Deadline, WayBack
from dtdebug_taxonomy.model.account import MAX_BRANCHES, Branch, Condition, Link, NamedValue
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS
from dtdebug_taxonomy.stacks.frames import is_library

_SECONDS = 0.3
_FRAMES, _TESTS, _CALLS, _DEEPEST = 8, 12, 12, 3
"""Maximum numbers of frames, of tests of one function, of calls in it that are entered, and of calls in calls."""
_VALUES, _LINKS = 6, 10
_WRAPPERS = frozenset({"enumerate", "tqdm", "trange", "iter", "reversed", "list", "sorted", "tuple"})
_LEAVING = (ast.Return, ast.Raise, ast.Break, ast.Continue)

Test = ast.If | ast.While | ast.For | ast.AsyncFor


def branches_of(frames: Sequence[FrameType], seconds: float = _SECONDS) -> tuple[Branch, ...]:
    """Return the tests and loops of the program's functions on a living stack, the innermost function first."""
    trace: TracebackType | None = None
    for frame in reversed(frames):
        trace = TracebackType(trace, frame, max(frame.f_lasti, 0), frame.f_lineno or 1)
    return branches_at(trace, seconds)


def branches_at(trace: TracebackType | None, seconds: float = _SECONDS) -> tuple[Branch, ...]:
    """Return the same where an exception was raised."""
    sources = Sources(live_lines)
    found: dict[tuple[str, int], Branch] = {}
    own = [s for s in scopes.of_traceback(trace, sources) if s.user and s.program is not None]
    one_line("")  # what is read once does not count
    reader = _Reader(sources, Deadline(seconds))
    for n in range(len(own) - 1, max(-1, len(own) - 1 - _FRAMES), -1):
        if scopes.is_changed(own[n]):
            continue
        outer = tuple(turn for caller in own[:n] for turn in _turn(_statement(caller), caller))
        for each in (*reader.tests(own[n], outer=outer), *reader.tests_of_calls(own[n], outer)):
            found.setdefault((each.place.file, each.place.line), each)
    return tuple(found.values())[:MAX_BRANCHES]


class _Reader:
    def __init__(self, sources: Sources, deadline: Deadline) -> None:
        self.sources = sources
        self.deadline = deadline

    def tests(
        self, scope: Scope, since: Changed = NOTHING, links: int = _LINKS, outer: tuple[NamedValue, ...] = ()
    ) -> Iterator[Branch]:
        """Yield the tests of a function with their outcomes, those near its line first."""
        found = [each for each in scopes.statements(scope.node or ast.Pass()) if isinstance(each, Test)]
        found = [each for each in found if not _asks_name(each)]
        found.sort(key=lambda each: abs(each.lineno - scope.line))
        for each in found[:_TESTS]:
            if self.deadline.is_over:
                return
            changed = changed_since(each, scope)
            if changed is not None:
                both = Changed(changed.names | since.names, changed.attributes | since.attributes)
                yield self._branch(each, scope, both, links, outer)

    def tests_of_calls(
        self, scope: Scope, outer: tuple[NamedValue, ...] = (), depth: int = 1, since: Changed = NOTHING
    ) -> Iterator[Branch]:
        """Yield the tests of the program's functions that a function calls elsewhere than it stands."""
        program = scope.program
        if program is None or scope.node is None:
            return
        calls = [
            (statement, node)
            for statement in scopes.statements(scope.node)
            for part in _own_parts(statement)
            for node in ast.walk(part)
            if isinstance(node, ast.Call) and node is not scope.call
        ]
        for statement, call in calls[:_CALLS]:
            if self.deadline.is_over:
                return
            changed = changed_since(statement, scope)
            if changed is None:
                continue
            changed = Changed(changed.names | since.names, changed.attributes | since.attributes)
            entered = self._enter(call, scope, changed)
            if entered is None:
                continue
            inside, around = Changed(frozenset(), changed.attributes), (*outer, *_turn(statement, scope))
            yield from self.tests(entered, inside, 2, around)
            if depth < _DEEPEST - 1:
                yield from self.tests_of_calls(entered, around, depth + 1, inside)

    def value(self, node: ast.expr | None, scope: Scope, changed: Changed = NOTHING, depth: int = 0) -> Any:
        """Return the value of an expression; calls of the program's own short functions are read."""
        if node is None or depth > _DEEPEST:
            return MISSING
        reduced = _Reduced(self, scope, changed, depth)
        whole = reduced.visit(_copy(node))
        return evaluate.value(whole, {**scope.local, **reduced.found}, scope.world)

    def length(self, value: Any, depth: int = 0) -> int | None:
        """Return the length of a container, data set, sampler or loader."""
        return length(value, lambda each: self._own_length(each, depth + 1))

    def _own_length(self, value: Any, depth: int) -> Any:
        return self.call_of(stored_in_class(value, "__len__"), [value], {}, depth)

    def call_of(self, function: Any, positional: Sequence[Any], named_: Mapping[str, Any], depth: int) -> Any:
        """Return what a function of the program returns, read from its `return`; `MISSING` if it does more."""
        if type(function) is not FunctionType or is_library(function.__code__.co_filename) or depth > _DEEPEST:
            return MISSING
        inside = self._inside(function, positional, named_)
        if inside is None or not isinstance(inside.node, ast.FunctionDef):
            return MISSING
        returns = [each for each in scopes.statements(inside.node) if isinstance(each, ast.Return)]
        body = [each for each in inside.node.body if not _is_text(each)]
        if len(returns) == 1 and body and body[-1] is returns[0]:
            stored = stored_names(inside.node.body[:-1], None)
            return self.value(returns[0].value, inside, Changed(stored.names, frozenset()), depth)
        for each in body:  # nothing but tests, so that their operands are what they were
            if isinstance(each, ast.Return):
                return self.value(each.value, inside, depth=depth) if each.value is not None else None
            if not (isinstance(each, ast.If) and len(each.body) == 1 and not each.orelse):
                return MISSING
            only = each.body[0]
            holds = truth(self.value(each.test, inside, depth=depth))
            if holds is None or not isinstance(only, ast.Return):
                return MISSING
            if holds:
                return self.value(only.value, inside, depth=depth) if only.value is not None else None
        return MISSING

    def _inside(self, function: FunctionType, positional: Sequence[Any], given: Mapping[str, Any]) -> Scope | None:
        """Return the scope of a function with these arguments."""
        found = function_of_code(function.__code__, self.sources)
        if found is None:
            return None
        program, node = found
        a = node.args
        names = [each.arg for each in (*a.posonlyargs, *a.args)]
        local: dict[str, Any] = dict(zip(names, positional, strict=False))
        local |= {name: value for name, value in given.items() if name in {*names, *(k.arg for k in a.kwonlyargs)}}
        for name in (*names, *(each.arg for each in a.kwonlyargs)):
            if name not in local:
                default = scopes.default(Scope(program.file, 0, node.name, node=node), name)
                local[name] = evaluate.value(default, {}, {})
        local = {name: value for name, value in local.items() if value is not MISSING}
        return Scope(
            program.file, (node.end_lineno or node.lineno) + 1, node.name, program=program, node=node, live=True,
            local=local, world=function.__globals__, code=function.__code__,
        )  # fmt: skip

    def _enter(self, call: ast.Call, scope: Scope, changed: Changed) -> Scope | None:
        """Return the scope of a function of the program that a call enters, with the arguments that are still known."""
        function, positional = self.callee(call, scope, changed, 0)
        if type(function) is not FunctionType or is_library(function.__code__.co_filename):
            return None
        positional += [self.value(each, scope, changed) for each in call.args]
        given = {k.arg: self.value(k.value, scope, changed) for k in call.keywords if k.arg}
        return self._inside(function, positional, given)

    def callee(self, call: ast.Call, scope: Scope, changed: Changed, depth: int) -> tuple[Any, list[Any]]:
        """Return the function that a call enters, and the object of a method as its first argument."""
        func = call.func
        if isinstance(func, ast.Attribute):
            owner = self.value(func.value, scope, changed, depth)
            if owner is not MISSING and scopes.is_plain_value(owner):
                return stored_in_class(owner, func.attr), [owner]
        return evaluate.value(func, scope.local, scope.world), []

    def _branch(self, node: Test, scope: Scope, changed: Changed, most: int, outer: tuple[NamedValue, ...]) -> Branch:
        test = node.iter if isinstance(node, (ast.For, ast.AsyncFor)) else node.test
        held, failed, leaving = _spans(node, scope)
        way = WayBack(self.sources, self.deadline)
        links: list[Link] = []
        conditions: tuple[Condition, ...]
        if isinstance(node, (ast.For, ast.AsyncFor)):
            passes = self._passes(test, scope, changed)
            conditions = (Condition(text=one_line(ast.unparse(test)), values=self._operands(test, scope, changed)),)
        else:
            passes = None
            parts = test.values if isinstance(test, ast.BoolOp) else []
            moved = loop_changes(node, scope, inner=bool(outer))
            conditions = tuple(self._condition(each, scope, changed, moved) for each in (test, *parts))
            links = list(self._returns(test, scope, changed))
        known = passes is not None or any(each.result is not None for each in conditions)
        if most and known and not self.deadline.is_over:
            way.follow(test, dataclasses.replace(scope, line=node.lineno, call=None))
            links += way.told()[: most - len(links)]
        if isinstance(node, ast.While):
            links += writers_of_polled(test, scope)
        modules = scope.program.modules if scope.program is not None else ("", "")
        return Branch(
            place=place(scope, test), kind=_kind(node), conditions=conditions, passes=passes, held=held, failed=failed,
            leaves=leaving, turn=(*outer, *_turn(node, scope)), links=tuple(links), modules=modules,
        )  # fmt: skip

    def _condition(self, node: ast.expr, scope: Scope, changed: Changed, moved: Changed) -> Condition:
        return Condition(
            text=one_line(ast.unparse(node)),
            result=truth(self.value(node, scope, changed)),
            values=self._operands(node, scope, changed),
            fixed=not reads_changed(node, moved, scope),
        )

    def _operands(self, node: ast.expr, scope: Scope, changed: Changed) -> tuple[NamedValue, ...]:
        """Return the operands of a test that have a value; of a call of an own function, those of its `return` too."""
        found: dict[str, NamedValue] = {}
        for each in (*_terms(node), *leaves(node, scope)):
            text, value = ast.unparse(each), self.value(each, scope, changed)
            if value is not MISSING and scopes.is_plain_value(value) and not isinstance(each, ast.Constant):
                found.setdefault(text, named(text, value))
            inside = self._single_return(each, scope, changed)
            if inside is not None:
                found |= {v.name: v for v in self._operands(inside[0], inside[1], inside[2]) if v.name not in found}
        return tuple(found.values())[:_VALUES]

    def _single_return(self, node: ast.expr, scope: Scope, changed: Changed) -> tuple[ast.expr, Scope, Changed] | None:
        """Return the expression that a call of an own function, or a property, gives, with its scope."""
        inside: Scope | None = None
        if isinstance(node, ast.Call):
            inside = self._enter(node, scope, changed)
        elif isinstance(node, ast.Attribute):
            owner = self.value(node.value, scope, changed)
            found = stored_in_class(owner, node.attr) if owner is not MISSING else MISSING
            if type(found) is property and type(found.fget) is FunctionType and scopes.is_plain_value(owner):
                inside = self._inside(found.fget, [owner], {})
        if inside is None or not isinstance(inside.node, ast.FunctionDef) or is_library(inside.file):
            return None
        returns = [each for each in scopes.statements(inside.node) if isinstance(each, ast.Return)]
        if len(returns) != 1 or returns[0].value is None:
            return None
        stored = stored_names(inside.node.body, None)
        inside = dataclasses.replace(inside, line=returns[0].lineno)
        return returns[0].value, inside, Changed(stored.names, changed.attributes)

    def _returns(self, test: ast.expr, scope: Scope, changed: Changed) -> Iterator[Link]:
        """Yield the `return` that decides a test which only asks an own function."""
        while isinstance(test, ast.UnaryOp):
            test = test.operand
        inside = self._single_return(test, scope, changed)
        if inside is not None:
            said = named(ast.unparse(test), self.value(test, scope, changed))
            yield Link(value=said, how="returned", place=place(inside[1], inside[0]))

    def _passes(self, node: ast.expr, scope: Scope, changed: Changed) -> int | None:
        """Return the number of passes of a loop over an expression."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute) and node.args:
            last = dotted_name(node.func).rpartition(".")[2]
            if last in _WRAPPERS:
                return self._passes(node.args[0], scope, changed)
            if last == "zip":
                sizes = [self._passes(each, scope, changed) for each in node.args]
                known = [size for size in sizes if size is not None]
                return min(known) if known and len(known) == len(sizes) else None
            if last == "range":
                ends = [self.value(each, scope, changed) for each in node.args]
                return len(range(*ends)) if all(type(each) is int for each in ends) and 0 not in ends[2:] else None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("items", "keys"):
            node = node.func.value
        value = self.value(node, scope, changed)
        return self.length(value) if value is not MISSING else None


class _Reduced(ast.NodeTransformer):
    """Puts names for what an expression asks of the program's own functions, and hides what may have changed."""

    def __init__(self, reader: _Reader, scope: Scope, changed: Changed, depth: int) -> None:
        self.found: dict[str, Any] = {}
        self._reader, self._scope, self._changed, self._depth = reader, scope, changed, depth

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Await(node) if node.id in self._changed.names else node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if node.attr in self._changed.attributes:
            return ast.Await(node)
        self.generic_visit(node)
        owner = self._value(node.value)
        if owner is MISSING or not scopes.is_plain_value(owner):
            return node
        found = stored_in_class(owner, node.attr)
        if type(found) is property:
            return self._put(node, self._reader.call_of(found.fget, [owner], {}, self._depth + 1))
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        positional: list[Any] = []
        function: Any = MISSING
        if isinstance(node.func, ast.Attribute):
            owner = self._value(self.visit(_copy(node.func.value)))
            if owner is not MISSING and scopes.is_plain_value(owner):
                function, positional = stored_in_class(owner, node.func.attr), [owner]
        if function is MISSING:
            function = evaluate.value(node.func, self._scope.local, self._scope.world)
        node.args = [self.visit(each) for each in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        if function is len and len(node.args) == 1:
            size = self._reader.length(self._value(node.args[0]), self._depth)
            return self._put(node, MISSING if size is None else size)
        if type(function) is FunctionType and not is_library(function.__code__.co_filename):
            positional += [self._value(each) for each in node.args]
            given = {k.arg: self._value(k.value) for k in node.keywords if k.arg}
            return self._put(node, self._reader.call_of(function, positional, given, self._depth + 1))
        if isinstance(node.func, ast.Attribute):
            node.func.value = self.visit(node.func.value)
        return node

    def _value(self, node: ast.expr) -> Any:
        return evaluate.value(node, {**self._scope.local, **self.found}, self._scope.world)

    def _put(self, node: ast.expr, value: Any) -> ast.AST:
        if value is MISSING:
            return ast.Await(node)
        name = f" {len(self.found)}"  # no name of a program has a space
        self.found[name] = value
        return ast.Name(name)


def truth(value: Any) -> bool | None:
    """Return whether a test with this value holds; None if that can't be had without running code."""
    number = evaluate.number(value)
    if number is not MISSING:
        return bool(number)
    if value is not MISSING and is_exactly(value, (type(None), str, bytes, list, tuple, dict, set, frozenset, range)):
        return bool(value)
    return None


def _copy(node: ast.expr) -> ast.expr:
    import copy

    return copy.deepcopy(node)


def _kind(node: Test) -> Any:
    return "if" if isinstance(node, ast.If) else "while" if isinstance(node, ast.While) else "for"


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _terms(node: ast.expr) -> list[ast.expr]:
    """Return the sides of comparisons in a test, and what it negates."""
    match node:
        case ast.BoolOp():
            return [term for each in node.values for term in _terms(each)]
        case ast.UnaryOp():
            return _terms(node.operand)
        case ast.Compare():
            return [node.left, *node.comparators]
    return [node] if isinstance(node, ast.Call) else []


def _own_parts(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yield the expressions of a statement itself, without those of statements in it."""
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.expr):
            yield child
        elif isinstance(child, ast.withitem):
            yield child.context_expr


def _spans(node: Test, scope: Scope) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...], str]:
    """Return the ranges of lines that only one outcome of a test leads to, and how its body leaves."""
    held, failed = _span(node.body), _span(node.orelse)
    if scope.program is None:
        return held, failed, ""
    behind = _span(_after(node, scope.program))
    if isinstance(node, ast.While) and not failed and _is_broken(node, scope.program):
        return held, (), ""
    if isinstance(node, LOOPS):
        return held, failed or behind, ""
    leaving = node.body[-1] if isinstance(node.body[-1], _LEAVING) else None
    word = type(leaving).__name__.lower() if leaving is not None else ""
    if leaving is not None:
        failed += behind
        if isinstance(leaving, ast.Break):
            loop = next((up for up in scope.program.code.ancestors(node) if isinstance(up, LOOPS)), None)
            held += _span(_after(loop, scope.program)) if loop is not None else ()
    if node.orelse and isinstance(node.orelse[-1], _LEAVING):
        held += behind
    return held, failed, word


def _is_broken(loop: ast.stmt, program: Program) -> bool:
    """True if a `break` may leave a loop: that a rank is behind it says nothing of the test."""
    breaks = (program.code.ancestors(each) for each in program.code.nodes(ast.Break))
    return any(next((up for up in ancestors if isinstance(up, LOOPS)), None) is loop for ancestors in breaks)


def _after(node: ast.stmt, program: Program) -> Sequence[ast.stmt]:
    block = list(program.code.block(node))
    at = next((n for n, each in enumerate(block) if each is node), len(block))
    return block[at + 1 :]


def _span(block: Sequence[ast.stmt]) -> tuple[tuple[int, int], ...]:
    return ((block[0].lineno, block[-1].end_lineno or block[-1].lineno),) if block else ()


def _statement(scope: Scope) -> ast.stmt | None:
    """Return the statement that a frame is at."""
    found = [each for each in scopes.statements(scope.node or ast.Pass()) if each.lineno <= scope.line]
    within = [each for each in found if scope.line <= (each.end_lineno or each.lineno)]
    return within[-1] if within else None


def _asks_name(test: Test) -> bool:
    """True for `if __name__ == "__main__":`, which goes one way in all ranks."""
    match test:
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return True
    return False


def _turn(node: ast.stmt | None, scope: Scope) -> Iterator[NamedValue]:
    """Yield the variables of the loops around a statement, as they were when it ran last."""
    program, line = scope.program, scope.line
    for up in reversed(list(program.code.ancestors(node))) if program is not None and node is not None else ():
        if isinstance(up, (*FUNCTIONS, ast.ClassDef)) or not isinstance(up, LOOPS):
            continue
        names = [n.id for n in ast.walk(up.target) if isinstance(n, ast.Name)] if not isinstance(up, ast.While) else []
        value = next((v for name in names if type(v := scope.local.get(name)) is int), None)
        inside = up.lineno <= line <= (up.end_lineno or line)
        if value is not None and inside and node is not None and node.lineno > line:
            value = value - 1 if _counts(up) else None  # it ran in the pass before
        yield NamedValue(names[0] if names else "", "" if value is None else str(value))


def _counts(loop: ast.AST) -> bool:
    """True if each pass of a loop adds 1 to its first variable."""
    each = getattr(loop, "iter", None)
    name = dotted_name(each.func).rpartition(".")[2] if isinstance(each, ast.Call) else ""
    return isinstance(each, ast.Call) and name in ("range", "trange", "enumerate") and len(each.args) < 3
