"""Names and attributes that a program may have stored since a test, read from its source.

A value that was stored since is not the one that decided.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from dtdebug.account import evaluate, scopes
from dtdebug.account.objects import loaded
from dtdebug.account.scopes import Scope
from dtdebug.account.sources import Program
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS

LOOPS = (ast.For, ast.AsyncFor, ast.While)
_DEEPEST = 3
"""Maximum number of functions that are followed into one another."""


class Changed(NamedTuple):
    """Names and attributes that the program has bound since a test."""

    names: frozenset[str]
    attributes: frozenset[str]


NOTHING = Changed(frozenset(), frozenset())


def changed_since(node: ast.stmt, scope: Scope) -> Changed | None:
    """Return what was bound since a statement ran last; None if it has not run in this call of the function."""
    begin, line = node.lineno, scope.line
    if scope.program is None or scope.node is None:
        return None
    first = (node.test.end_lineno if isinstance(node, ast.If | ast.While) else begin) or begin
    every = [each for each in scopes.statements(scope.node) if each is not node]
    if isinstance(node, (ast.For, ast.AsyncFor)) and node.lineno <= line <= (node.end_lineno or line):
        since = [each for each in every if begin < each.lineno < line]
        return stored_names(since, scope.program, line, heads=True)
    if line > first or (line == begin and not isinstance(node, LOOPS)):
        return stored_names(
            [each for each in every if _is_after(each, node) and each.lineno <= line], scope.program, line, heads=True
        )
    around = [up for up in scope.program.code.ancestors(node) if isinstance(up, LOOPS)]
    loop = next((up for up in around if up.lineno <= line <= (up.end_lineno or line)), None)
    if loop is None:
        return None
    inside = [each for each in scopes.statements(loop) if each is not node]
    since = [each for each in inside if _is_after(each, node) or each.lineno <= line]
    return stored_names([loop, *since], scope.program, line, heads=True)


def _is_after(each: ast.stmt, node: ast.stmt) -> bool:
    return (each.lineno, each.col_offset) > (node.lineno, node.col_offset)


def stored_names(
    statements: Sequence[ast.AST], program: Program | None, line: int = 0, *, heads: bool = False, depth: int = 0
) -> Changed:
    """Return the names and attributes that statements bind, and those that functions called there store.

    `line`: where the program stands; what is assigned there is not yet. `heads`: without the statements in them.
    """
    names: set[str] = set()
    attributes: set[str] = set()
    for statement in statements:
        parts = _heads(statement) if heads else [statement]
        waiting = isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign) and statement.lineno == line
        for node in (n for part in parts for n in ast.walk(part)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and not waiting:
                names.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and not waiting:
                attributes.add(node.attr)
            elif isinstance(node, ast.Call) and program is not None and depth < _DEEPEST:
                last = dotted_name(node.func).rpartition(".")[2]
                for function in program.code.functions.get(last, ()):
                    inner = stored_names(function.body, program, depth=depth + 1)
                    attributes |= inner.attributes
    return Changed(frozenset(names), frozenset(attributes))


def _heads(statement: ast.AST) -> list[ast.AST]:
    """Return the parts of a statement that are no statements."""
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        return []
    kept = (ast.expr, ast.withitem, ast.pattern)
    return [child for child in ast.iter_child_nodes(statement) if isinstance(child, kept)]


def loop_changes(node: ast.stmt, scope: Scope, *, inner: bool) -> Changed:
    """Return what passes of the loops around a test may change; `inner`: its function is called in a loop."""
    program = scope.program
    loops = [up for up in program.code.ancestors(node) if isinstance(up, LOOPS)] if program is not None else []
    found = stored_names(loops, program)
    if not inner:
        return found
    own = stored_names([scope.node], program) if scope.node is not None else found
    every = stored_names([program.tree], program, depth=_DEEPEST) if program is not None else found
    given = {name for name in scope.parameters if not _is_rank(name, scope)}
    return Changed(found.names | own.names | given, found.attributes | every.attributes - _initial(program))


def _is_rank(name: str, scope: Scope) -> bool:
    """True for a parameter that holds the rank itself, which no pass changes."""
    known = loaded("torch.distributed", "get_rank")
    started = loaded("torch.distributed", "is_initialized")
    try:
        return "rank" in name and started is not None and started() and scope.local.get(name) == known()
    except Exception:
        return False


def _initial(program: Program | None) -> frozenset[str]:
    """Return the attributes that only `__init__` stores."""
    if program is None:
        return frozenset()
    inits = program.code.functions.get("__init__", ())
    first = frozenset().union(*(stored_names(each.body, None).attributes for each in inits)) if inits else frozenset()
    inside = {id(n) for each in inits for n in ast.walk(each)}
    later = {
        n.attr
        for n in ast.walk(program.tree)
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and id(n) not in inside
    }
    return first - later


def reads_changed(node: ast.expr, moved: Changed, scope: Scope) -> bool:
    """True if an expression reads what may have been moved, or calls a function whose operands are not seen."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and each.id in moved.names:
            return True
        if isinstance(each, ast.Attribute) and each.attr in moved.attributes:
            return True
        if isinstance(each, ast.Call) and dotted_name(each.func).rpartition(".")[2] not in evaluate.WORLD:
            return True
    return False
