"""Lines off the stack that a message points at: a set-up that did not run, a rank that writes, a graph kept too long.

No frame leads to them, for what is missing has no line: they are looked for in the program's own files.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

from dtdebug.account.makers import scope_of_call
from dtdebug.account.per_rank import is_rank
from dtdebug.account.scopes import Scope
from dtdebug.account.sources import Program
from dtdebug_taxonomy.model.account import How
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS

_NO_GROUP = ("process group has not been initialized", "process group is not initialized")
_NO_FILE = ("No such file or directory", "Not a directory")
_SECOND_BACKWARD = ("backward through the graph a second time",)
_WAITS = frozenset({"barrier", "monitored_barrier", "wait_for_everyone"})
_SET_UP = "init_process_group"
_DEEP = 3


class OffStack(NamedTuple):
    """A line that the stack does not show."""

    how: How
    name: str
    node: ast.AST
    scope: Scope
    asked: ast.expr | None = None
    """Test whose operands lead on."""


def lines_off_stack(scope: Scope, message: str) -> Iterator[OffStack]:
    """Yield the lines that a message points at, the most telling first; `scope`: the user's innermost frame."""
    if any(each in message for each in _NO_GROUP):
        yield from _set_up(scope)
    elif any(each in message for each in _NO_FILE):
        yield from _writer_on_one_rank(scope)
    elif any(each in message for each in _SECOND_BACKWARD):
        yield from _kept_from_last_pass(scope)


def _set_up(scope: Scope) -> Iterator[OffStack]:
    """Yield the test under which the process group is set up, or the function that does it and is never called."""
    programs = dict.fromkeys(s.program for s in (scope, *scope.callers) if s.user and s.program is not None)
    for program in programs:
        for call in program.code.nodes(ast.Call):
            if dotted_name(call.func).rpartition(".")[2] != _SET_UP:
                continue
            home = scope_of_call(call, program, scope)
            inner: ast.AST = call
            for up in program.code.ancestors(call):
                if isinstance(up, ast.If) and inner is not up.test:
                    home = _enter(dataclasses.replace(home, line=up.lineno, call=None), program, scope)
                    yield OffStack("tested", ast.unparse(up.test), up.test, home, up.test)
                    return
                if isinstance(up, FUNCTIONS):
                    if not program.code.callers.get(up) and program.code.class_of(up) is None:
                        yield OffStack("called", up.name, up, home)
                    return
                inner = up


def _enter(home: Scope, program: Program, inside: Scope) -> Scope:
    """Return a function that has returned with its only call, so that its parameters lead to what they were given."""
    calls = program.code.callers.get(home.node, []) if isinstance(home.node, FUNCTIONS) else []
    if len(calls) != 1:
        return home
    return dataclasses.replace(home, bound=(calls[0], scope_of_call(calls[0], program, inside)))


def _writer_on_one_rank(scope: Scope) -> Iterator[OffStack]:
    """Yield the test of the rank, above the line in its block, under which the path is written and not waited for."""
    program, path = scope.program, _path_of(scope)
    if program is None or path is None or scope.node is None:
        return
    statement = program.code.statement(scope.call) if isinstance(scope.call, ast.expr) else None
    if statement is None or any(
        isinstance(up, ast.If) and _asks_rank(up.test) for up in program.code.ancestors(statement)
    ):
        return
    block = program.code.block(statement)
    at = next((n for n, each in enumerate(block) if each is statement), 0)
    for each in reversed(block[:at]):
        if _waits(each, program, _DEEP):
            return
        if isinstance(each, ast.If) and _asks_rank(each.test) and not each.orelse:
            names = {ast.unparse(n) for inner in each.body for n in ast.walk(inner) if isinstance(n, ast.expr)}
            if path in names:
                yield OffStack("tested", ast.unparse(each.test), each.test, scope)
                return


def _path_of(scope: Scope) -> str | None:
    """Return the path of the call that failed, as the program writes it."""
    call = scope.call
    if not isinstance(call, ast.Call) or not call.args or isinstance(call.args[0], ast.Constant | ast.Starred):
        return None
    return ast.unparse(call.args[0])


def _asks_rank(test: ast.expr) -> bool:
    return any(isinstance(node, ast.expr) and is_rank(node) for node in ast.walk(test))


def _waits(node: ast.AST, program: Program, deep: int) -> bool:
    """True if a statement, or a function of the program that it calls, waits for all ranks."""
    for call in (each for each in ast.walk(node) if isinstance(each, ast.Call)):
        if dotted_name(call.func).rpartition(".")[2] in _WAITS:
            return True
        function = program.code.local_function(call) if deep else None
        if function is not None and _waits(ast.Module(function.body, []), program, deep - 1):
            return True
    return False


def _kept_from_last_pass(scope: Scope) -> Iterator[OffStack]:
    """Yield the name that carries a graph from one pass of the loop around `backward` into the next."""
    program, call = scope.program, scope.call
    if program is None or not isinstance(call, ast.Call):
        return
    loop = next((up for up in program.code.ancestors(call) if isinstance(up, ast.For | ast.While)), None)
    if loop is None:
        return
    summed = [n for n in _inside(loop) if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)]
    owner = dotted_name(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    for each in summed:
        if isinstance(each.target, ast.Name) and each.target.id == owner and _is_first_in(owner, loop, each):
            yield OffStack("loop", owner, each, scope)
            return
    fresh = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)} if isinstance(loop, ast.For) else set()
    carried: list[tuple[str, ast.expr]] = []
    for statement in loop.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            bound = {n.id for t in statement.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
            given = [*statement.value.args, *(k.value for k in statement.value.keywords)]
            carried += [(n.id, n) for n in given if isinstance(n, ast.Name) and n.id in bound - fresh]
        fresh |= {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if len(carried) == 1:
        name, node = carried[0]
        yield OffStack("loop", name, node, scope)


def _is_first_in(name: str, loop: ast.For | ast.While, summed: ast.AugAssign) -> bool:
    """True if no statement of the loop binds a name again before it is added to."""
    stored = [
        n
        for each in loop.body
        for n in ast.walk(each)
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) and n is not summed.target
    ]
    return not stored


def _inside(loop: ast.For | ast.While) -> Iterator[ast.AST]:
    for each in loop.body:
        yield from ast.walk(each)
