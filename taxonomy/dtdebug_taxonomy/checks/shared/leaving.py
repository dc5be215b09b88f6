"""Early exits under a condition on the rank that are taken only in some runs.

`if rank == 0: if done: return`, or `if rank == 0 and done: return`.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from dtdebug_taxonomy.checks.shared.diverging import last_name
from dtdebug_taxonomy.checks.shared.stepping import agrees, synchronising_calls
from dtdebug_taxonomy.checks.shared.wrapping import DDPS
from dtdebug_taxonomy.source.python.bindings import surely_before
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import Guard, guards
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import several

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_LEAVES = (ast.Return, ast.Break, ast.Continue)
_TELLS = re.compile(
    r"(?i)barrier|broadcast|bcast|gather|reduce|scatter|(^|_)send|abort|terminate|destroy|shutdown|notify|signal|"
    r"^(set|put|kill)$|store\b"
)


class Leave(NamedTuple):
    """Statement by which some ranks may leave a function or loop while the others continue."""

    node: ast.stmt
    guard: Guard
    call: ast.Call
    """Call in which the others then wait."""


def leaving(code: Code, *kinds: type[ast.stmt]) -> Iterator[Leave]:
    """Yield the exits of these kinds that only some ranks may take, without notifying the others that wait later."""
    leaves = [n for kind in kinds for n in code.nodes(kind) if guards(code).around(n, early=False)]
    calls = {*synchronising_calls(code), *code.calls(*DDPS)} if leaves else ()
    waits = sorted((c for c in calls if not guards(code).around(c, early=False)), key=code.order.__getitem__)
    asked: dict[ast.AST | None, list[tuple[ast.If, set[str]]]] | None = None
    for node in leaves:
        found = _condition(code, node)
        if found is None:
            continue
        guard, condition = found
        call = _missed_call(code, node, guard, waits)
        if call is None or any(_notifies(code, c) for c in code.inside(guard.node, ast.Call)):
            continue
        if asked is None:
            asked = _leave_conditions(code)
        if condition is guard.node:
            names = _other_names(code, condition)
            others_too = any(o is not condition and names & taken for o, taken in asked.get(code.function(node), ()))
            if not others_too and not _asked_for(code, call, names):
                yield Leave(node, guard, call)
            continue
        names = _names(code, condition)
        others = asked.get(code.function(node), ())
        mine = _branch(code, node, guard.node)
        if not any(names & taken and (mine is None or _branch(code, o, guard.node) != mine) for o, taken in others):
            yield Leave(node, guard, call)


def _notifies(code: Code, call: ast.Call) -> bool:
    return bool(_TELLS.search(last_name(code, call))) or agrees(code, call)


def _condition(code: Code, node: ast.stmt) -> tuple[Guard, ast.If] | None:
    """Return the `if` on the rank around an exit, and the innermost other condition between them."""
    around = [g for g in guards(code).around(node, early=False) if isinstance(g.node, ast.If)]
    if len(around) != 1 or around[0].test.which == "group":
        return None
    nested: ast.If | None = None
    for up in code.ancestors(node):
        if up is around[0].node:
            if nested is None and isinstance(up, ast.If) and node in up.body:
                nested = up if isinstance(node, ast.Break) or _other_names(code, up) else None
            return (around[0], nested) if nested is not None else None
        if isinstance(up, ast.If):
            if several(code, up.test) is not None:
                return None
            nested = nested or up
        elif isinstance(up, _LOOPS) and not isinstance(node, ast.Return):
            return None  # leaves a loop that the other ranks do not run
        elif isinstance(up, ast.ExceptHandler):
            return None
    return None


def _other_names(code: Code, condition: ast.If) -> set[str]:
    """Return the names in the other operands of `if rank != 0 and more:`; empty if there are none."""
    parts, found = [condition.test], set[str]()
    while parts:
        part = parts.pop()
        if isinstance(part, ast.BoolOp) and isinstance(part.op, ast.And):
            parts += part.values
        elif guards(code).test(part) is None and several(code, part) is None:
            found |= {dotted_name(n) for n in code.inside(part, ast.Name, ast.Attribute)} - {"", "self", "args"}
    return found


def _asked_for(code: Code, call: ast.Call, names: set[str]) -> bool:
    """True if some of these names also occur in a condition around a call."""
    return any(
        isinstance(up, ast.If)
        and names & ({dotted_name(n) for n in code.inside(up.test, ast.Name, ast.Attribute)} - {"", "self", "args"})
        for up in code.ancestors(call)
    )


def _branch(code: Code, node: ast.AST, condition: ast.AST) -> str | None:
    """Return the branch of a condition that contains a node."""
    inner = node
    for up in code.ancestors(node):
        if up is condition:
            return "body" if inner in getattr(up, "body", ()) else "orelse"
        inner = up
    return None


def _missed_call(code: Code, node: ast.stmt, guard: Guard, calls: list[ast.Call]) -> ast.Call | None:
    """Return the first of these calls that the remaining ranks reach after an exit, or in a later round of its loop."""
    function = code.function(node)
    loops = [up for up in code.ancestors(node) if isinstance(up, _LOOPS) and code.function(up) is function]
    home, again = (function, loops[-1:]) if isinstance(node, ast.Return) else (loops[0], loops[:1])
    if isinstance(node, ast.Continue):
        if isinstance(home, ast.While) and code.constant(home.test):
            return None  # reaches the call in a later iteration
        again = []
    before = None
    for call in calls:
        around = set(code.ancestors(call))
        if code.function(call) is not function or home not in around or guard.node in around:
            continue
        if code.order[call] > code.order[guard.node]:
            if surely_before(code, guard.node, call) is not None:
                return call
        elif again and again[0] in around and surely_before(code, call, guard.node) is not None:
            before = before or call
    return before


def _leave_conditions(code: Code) -> dict[ast.AST | None, list[tuple[ast.If, set[str]]]]:
    """Return, by function, the conditions under which it is left and the names in them."""
    found: dict[ast.AST | None, list[tuple[ast.If, set[str]]]] = defaultdict(list)
    for condition in code.nodes(ast.If):
        if any(isinstance(s, (*_LEAVES, ast.Raise)) for s in (*condition.body, *condition.orelse)):
            found[code.function(condition)].append((condition, _names(code, condition)))
    return found


def _names(code: Code, condition: ast.If) -> set[str]:
    return {dotted_name(n) for n in code.inside(condition.test, ast.Name, ast.Attribute)} - {"", "self", "args"}
