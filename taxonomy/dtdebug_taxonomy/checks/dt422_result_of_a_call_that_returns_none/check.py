"""Synchronous collectives whose result, which is None, is used as if it were the tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.asynchronous import async_op
from dtdebug_taxonomy.checks.shared.names import COLLECTIVES, DIST
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_USES = (ast.Attribute, ast.BinOp, ast.Subscript, ast.UnaryOp, ast.AugAssign)


def check(code: Code) -> Iterator[Hit]:
    """Report the call."""
    calls = code.calls(*COLLECTIVES)
    used = _used_assignments(code) if any(isinstance(code.parent[call], ast.Assign) for call in calls) else set()
    for call in calls:
        name = code.name(call.func).removeprefix(DIST)
        given = async_op(code, call, name)
        if code.has_unpacking(call) or (given is not None and code.constant(given) is not False):
            continue
        up = code.parent[call]
        if isinstance(up, _USES) or up in used:
            held = f": its result is in {dotted_name(call.args[0])}" if call.args and dotted_name(call.args[0]) else ""
            yield Hit(code.span(call), f"{name}() returns None{held}.", _fix(code, call, up))


def _used_assignments(code: Code) -> set[ast.AST]:
    """Return the assignments to one name that are definitely what is read where the name is used as a value."""
    found: set[ast.AST] = set()
    for read in code.nodes(ast.Name):
        if isinstance(read.ctx, ast.Load) and isinstance(code.parent[read], _USES) and len(code.bound(read)) == 1:
            node = code.bound(read)[0].node
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                found.add(node)
    return found


def _fix(code: Code, call: ast.Call, up: ast.AST) -> Fix | None:
    """Return a fix that removes the assignment if its name is that of the tensor, or else names the tensor below."""
    held = dotted_name(call.args[0]) if call.args else ""
    if not isinstance(up, ast.Assign) or not held or len(up.targets) != 1:
        return None
    target = dotted_name(up.targets[0])
    start, at = code.span(up).start, code.span(call)
    removed = Edit(Span(start, at.start), "")
    if target == held:
        return Fix("Keep the tensor", (removed,))
    line = code.text.line(up.lineno)
    alone = line[: up.col_offset].isspace() or not up.col_offset
    second = code.name(call.func).removeprefix(DIST).startswith("gather")  # the result is in its second argument
    if not target or not alone or second:
        return None
    added = Edit(Span(at.end, at.end), f"\n{line[: up.col_offset]}{target} = {held}")
    return Fix("Take the tensor", (removed, added))
