"""The call that entered a function or made an object which no frame of the stack shows."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator

from dtdebug.account import scopes
from dtdebug.account.scopes import Scope
from dtdebug.account.sources import Program, Sources
from dtdebug_taxonomy.source.python.names import dotted_name, keyword
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS

_LAST = 10**9
Called = tuple[ast.Call, Scope]
"""A call and the scope in which it stands."""


def scope_of_call(call: ast.Call, program: Program, inside: Scope, sources: Sources | None = None) -> Scope:
    """Return the scope in which a call stands: a frame of the stack, or one that is only read."""
    where = program.code.scope(call)
    stack = sources.stack if sources is not None else ()
    around = next((each for each in (inside, *inside.callers, *stack) if each.node is where), None)
    if around is None:
        local = inside.world if inside.live and where is program.tree and inside.program is program else {}
        around = Scope(program.file, call.lineno, getattr(where, "name", ""), program=program, node=where,
                       live=bool(local), local=local, world=local, reached=_LAST)  # fmt: skip
    inner = next((each for each in program.code.ancestors(call) if isinstance(each, scopes.COMPREHENSIONS)), None)
    return dataclasses.replace(around, line=call.lineno, call=call, inner=inner)


def call_into(scope: Scope, sources: Sources) -> Called | None:
    """Return the call that entered a function whose caller no frame shows; None if several may have, or none."""
    node, program = scope.node, scope.program
    if program is None or not isinstance(node, FUNCTIONS):
        return None
    if not any(each.user for each in scope.callers) and (started := _of_thread(node, program, scope)) is not None:
        return started
    if scope.callers:
        return None
    defined = program.code.class_of(node) if node.name == "__init__" else None
    if defined is not None:
        return creation_of(defined, program, scope, sources)
    return _only(calls_of(node, program, sources), scope, sources)


def calls_of(
    function: ast.FunctionDef | ast.AsyncFunctionDef, program: Program, sources: Sources
) -> list[tuple[ast.Call, Program]]:
    """Return the calls of a function, each with its file: those of its own file, else those of others."""
    own = [(call, program) for call in program.code.callers.get(function, [])]
    if own or program.code.class_of(function) is not None:
        return own
    return [*_calls_elsewhere(function.name, program, sources)]


def creation_of(defined: ast.ClassDef, program: Program, inside: Scope, sources: Sources) -> Called | None:
    """Return the only call of a class in the files of the program, also as `cls` in its own methods."""
    found = [(call, program) for call in program.code.calls(defined.name) if isinstance(call.func, ast.Name)]
    found += [(call, program) for call in program.code.calls("cls") if program.code.class_of(call) is defined]
    return _only(found or [*_calls_elsewhere(defined.name, program, sources)], inside, sources)


def _only(found: list[tuple[ast.Call, Program]], inside: Scope, sources: Sources) -> Called | None:
    if len(found) != 1:
        return None
    call, program = found[0]
    return call, scope_of_call(call, program, inside, sources)


def _calls_elsewhere(name: str, program: Program, sources: Sources) -> Iterator[tuple[ast.Call, Program]]:
    """Yield the calls of a function or class in other files, which import it."""
    for other in sources.of_all:
        for called, calls in other.code.calls_by_name.items() if other is not program else ():
            module, _, last = called.rpartition(".")
            if last == name and module and sources.of_module(module, other.file) is program:
                yield from ((call, other) for call in calls)


def loader_joining_by(scope: Scope, sources: Sources) -> Called | None:
    """Return the loader that a function joins the samples of."""
    program, node = scope.program, scope.node
    if program is None or not isinstance(node, FUNCTIONS) or any(s.user for s in scope.callers):
        return None
    for each in dict.fromkeys((program, *sources.of_all)):
        for call in each.code.nodes(ast.Call):
            if dotted_name(keyword(call, "collate_fn")).rpartition(".")[2] == node.name:
                return call, scope_of_call(call, each, scope, sources)
    return None


def _of_thread(node: ast.FunctionDef | ast.AsyncFunctionDef, program: Program, scope: Scope) -> Called | None:
    """Return the call that starts a function in a thread or process, as a call of the function itself."""
    for call in program.code.nodes(ast.Call):
        target = keyword(call, "target") or keyword(call, "fn") or (call.args[0] if call.args else None)
        if dotted_name(target).rpartition(".")[2] != node.name:
            continue
        packed = keyword(call, "args")
        given: list[ast.expr] = (
            list(packed.elts) if isinstance(packed, ast.Tuple | ast.List) else [] if packed else call.args[1:]
        )
        if dotted_name(call.func).rpartition(".")[2] in ("spawn", "start_processes"):
            first = given[0] if given and packed is None else None
            given = list(first.elts) if isinstance(first, ast.Tuple) else given
            given = [ast.Starred(ast.Name("rank")), *given]
        named = keyword(call, "kwargs")
        pairs = zip(named.keys, named.values, strict=True) if isinstance(named, ast.Dict) else ()
        keywords = [ast.keyword(str(k.value), v) for k, v in pairs if isinstance(k, ast.Constant)]
        return ast.Call(ast.Name(node.name), given, keywords), scope_of_call(call, program, scope)
    return None
