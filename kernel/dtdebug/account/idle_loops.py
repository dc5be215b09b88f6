"""Finds the loop that was to change a value and never ran, with what it goes through and why that is empty."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from dtdebug.account.lengths import length
from dtdebug.account.makers import creation
from dtdebug.account.objects import MISSING, attribute, is_kind, loaded
from dtdebug.account.scopes import Scope
from dtdebug.account.sources import Program, Sources
from dtdebug_taxonomy.source.python.names import dotted_name, keyword

_WRAPPERS = frozenset({"enumerate", "tqdm", "iter", "reversed", "list", "zip", "islice"})
_GROWS = frozenset({"append", "extend", "add", "update", "insert"})


class IdleLoop(NamedTuple):
    """A loop that ran no round, or another expression that takes what is not there."""

    at: ast.expr
    """Target of the loop, or the iterator."""
    scope: Scope
    over: ast.expr
    """Expression that it goes through, without `enumerate` and the like."""


def idle_loop(node: ast.expr, scope: Scope) -> IdleLoop | None:
    """Return the only loop in which a value is changed, if that ran no round."""
    found: dict[ast.AST, IdleLoop] = {}
    for program, change in _changes(node, scope):
        for at_program, site in _sites(program, change, scope):
            loops = [up for up in at_program.code.ancestors(site) if isinstance(up, ast.For | ast.AsyncFor)]
            frames = [s for s in (scope, *scope.callers) if s.live and s.program is at_program]
            inside = [(loop, s) for loop in loops for s in frames if s.node is at_program.code.scope(loop)]
            idle = next((each for each in map(_idle, inside) if each is not None), None)
            if idle is None:
                return None  # another line may have changed it, or its length is not known
            found[idle.at] = idle
    return next(iter(found.values())) if len(found) == 1 else None


def _idle(row: tuple[ast.For | ast.AsyncFor, Scope]) -> IdleLoop | None:
    loop, scope = row
    if loop.lineno > scope.reached:
        return None
    over: ast.expr = loop.iter
    while isinstance(over, ast.Call) and dotted_name(over.func).rpartition(".")[2] in _WRAPPERS and over.args:
        over = over.args[0]
    value = scope.value(over)
    size = length(value, lambda _: None)
    if size is None and isinstance(over, ast.Call) and dotted_name(over.func) == "range":
        ends = [scope.value(each) for each in over.args]
        size = len(range(*ends)) if ends and all(type(each) is int for each in ends) else None
    return IdleLoop(loop.target, scope, over) if size == 0 else None


def _changes(node: ast.expr, scope: Scope) -> Iterator[tuple[Program, ast.AST]]:
    """Yield the statements that add to a value: `count += 1`, `losses.append(loss)`."""
    program = scope.program
    if program is None:
        return
    text = ast.unparse(node)
    home = scope.node or program.tree
    for each in (*program.code.nodes(ast.AugAssign), *program.code.nodes(ast.Call)):
        match each:
            case ast.AugAssign(target=target):
                pass
            case ast.Call(func=ast.Attribute(value=target, attr=name)) if name in _GROWS:
                pass
            case _:
                continue
        if ast.unparse(target) != text:
            continue
        where = program.code.scope(each)
        if where is home or (text.startswith("self.") and program.code.class_of(where) is program.code.class_of(home)):
            yield program, each


def _sites(program: Program, change: ast.AST, scope: Scope) -> Iterator[tuple[Program, ast.AST]]:
    """Yield the change itself if a loop of its function holds it, else the calls of its function."""
    where = program.code.scope(change)
    if where is scope.node or any(isinstance(up, ast.For) for up in program.code.ancestors(change)):
        yield program, change
        return
    name = getattr(where, "name", "")
    for each in {s.program.file: s.program for s in (scope, *scope.callers) if s.user and s.program}.values():
        for call in each.code.nodes(ast.Call):
            if dotted_name(call.func).rpartition(".")[2] == name and name:
                yield each, call


def loader_of(idle: IdleLoop, sources: Sources) -> tuple[ast.expr, Scope, str] | None:
    """Return the argument that leaves a loader empty, its scope, and the sizes in words."""
    value = idle.scope.value(idle.over)
    if value is MISSING or not is_kind(value, loaded("torch.utils.data", "DataLoader")):
        return None
    samples = length(attribute(value, "sampler"), lambda _: None)
    size, drops = attribute(value, "batch_size"), attribute(value, "drop_last") is True
    if samples is None or type(size) is not int:
        return None
    made = creation(idle.over, idle.scope, sources)
    if made is None:
        return None
    call, scope = made
    text = f"{samples} samples, batch_size={size}, drop_last={drops}: 0 batches"
    return (keyword(call, "drop_last") if drops and samples else None) or call, scope, text


def rounds_around(call: ast.Call, scope: Scope) -> tuple[ast.For, range] | None:
    """Return the innermost loop around a call of `next`, with the range that it counts through."""
    program = scope.program
    if program is None or dotted_name(call.func) != "next" or call not in program.code.parent:
        return None
    loops = [up for up in program.code.ancestors(call) if isinstance(up, ast.For)]
    loop = next((up for up in loops if program.code.scope(up) is (scope.node or program.tree)), None)
    match loop:
        case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=given)):
            ends = [scope.value(each) for each in given]
            return (loop, range(*ends)) if ends and all(type(each) is int for each in ends) else None
    return None


def held_by(call: ast.Call, scope: Scope, sources: Sources) -> tuple[ast.expr, int] | None:
    """Return what the iterator that `next` takes from goes through, with its length."""
    given = call.args[0] if call.args else None
    made = (given, scope) if isinstance(given, ast.Call) else creation(given, scope, sources) if given else None
    if made is None or made[1].node is not scope.node or dotted_name(made[0].func) != "iter" or not made[0].args:
        return None
    over = made[0].args[0]
    size = length(scope.value(over), lambda _: None)
    return (over, size) if size is not None else None
