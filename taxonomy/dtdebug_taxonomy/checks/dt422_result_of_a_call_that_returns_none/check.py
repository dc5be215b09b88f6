"""Synchronous collectives whose result, which is None, is used as if it were the tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.names import COLLECTIVES, DIST
from dtdebug_taxonomy.facts import torch_distributed
from dtdebug_taxonomy.source.names import dotted
from dtdebug_taxonomy.source.python import Code
from dtdebug_taxonomy.source.text import Span

_USES = (ast.Attribute, ast.BinOp, ast.Subscript, ast.UnaryOp, ast.AugAssign)


def check(code: Code) -> Iterator[Hit]:
    """Reports the call."""
    for call in code.calls(*COLLECTIVES):
        name = code.name(call.func).removeprefix(DIST)
        if code.has_unpacking(call) or _may_be_asynchronous(code, call, name):
            continue
        up = code.parent[call]
        used = isinstance(up, _USES) or (isinstance(up, ast.Assign) and _is_used(code, up))
        if used:
            held = f": its result is in {dotted(call.args[0])}" if call.args and dotted(call.args[0]) else ""
            yield Hit(code.span(call), f"{name}() returns None{held}.", _fix(code, call, up))


def _may_be_asynchronous(code: Code, call: ast.Call, name: str) -> bool:
    function = torch_distributed().functions.get(name)
    takes = list(function.parameters) if function is not None else []
    given = code.argument(call, "async_op", takes.index("async_op") if "async_op" in takes else None)
    return given is not None and code.constant(given) is not False


def _is_used(code: Code, assign: ast.Assign) -> bool:
    """Whether the name that gets the result is read as a value, and surely has nothing else then."""
    target = assign.targets[0]
    if len(assign.targets) != 1 or not isinstance(target, ast.Name):
        return False
    return any(
        isinstance(read.ctx, ast.Load)
        and isinstance(code.parent[read], _USES)
        and [b.node for b in code.bound(read)] == [assign]
        for read in code.nodes(ast.Name)
        if read.id == target.id
    )


def _fix(code: Code, call: ast.Call, up: ast.AST) -> Fix | None:
    """Leaves the name as it is, where it's that of the tensor."""
    if not isinstance(up, ast.Assign) or not call.args or dotted(call.args[0]) != dotted(up.targets[0]):
        return None
    start = code.span(up).start
    return Fix("Keep the tensor", (Edit(Span(start, code.span(call).start), ""),))
