"""Gathers that a rank skips when it has nothing to send."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.divergence.decisions import divergences
from dtdebug_taxonomy.checks.shared.diverging import helpers, last_name
from dtdebug_taxonomy.checks.shared.names import DIST
from dtdebug_taxonomy.checks.shared.stepping import is_agreed
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_GATHERS = tuple(
    DIST + name for name in ("all_gather", "all_gather_object", "all_gather_into_tensor", "gather", "gather_object")
)
_SIZES = {"numel", "size", "__len__"}


def check(code: Code) -> Iterator[Hit]:
    """Report the condition by which the rank leaves."""
    gathers = code.calls(*_GATHERS)
    if not gathers or code.role == "test":
        return
    through = helpers(code, gathers)
    calls = [*gathers, *(c for f in through for c in code.callers.get(f, ()))]
    for node in code.nodes(ast.If):
        empty = _empty(code, node.test)
        if empty is None or node.orelse or not isinstance(node.body[-1], ast.Return | ast.Continue):
            continue
        if code.function(node) is None or _is_given(code, empty) or is_agreed(code, [empty], node):
            continue
        call = next((c for c in calls if _sends(code, c, empty, node)), None)
        if call is not None and all(d.node is not node.test for d in divergences(code)):
            yield Hit(
                code.span(node.test),
                f"A rank on which this is empty leaves here, and the others wait for it in {last_name(code, call)}(): "
                "every rank has to come there, with nothing to send as well.",
            )


def _empty(code: Code, test: ast.expr) -> ast.expr | None:
    """Return the name that a condition tests for emptiness: `not x`, `len(x) == 0`, `x.numel() == 0`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = test.operand
        if isinstance(inner, ast.Call) and dotted_name(inner.func) == "len" and len(inner.args) == 1:
            inner = inner.args[0]
        return inner if isinstance(inner, ast.Name) else None
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return None
    left = test.left
    if code.constant(test.comparators[0]) != 0 or not isinstance(left, ast.Call):
        return None
    if dotted_name(left.func) == "len" and len(left.args) == 1:
        return left.args[0] if isinstance(left.args[0], ast.Name) else None
    owner = left.func.value if isinstance(left.func, ast.Attribute) and left.func.attr in _SIZES else None
    return owner if isinstance(owner, ast.Name) else None


def _is_given(code: Code, name: ast.expr) -> bool:
    """True if the caller passes the name: it may be the same on all ranks, like a model's parameters."""
    bound = code.bound(name)
    return not bound or any(b.how != "assign" or b.value is None or isinstance(b.node, ast.arg) for b in bound)


def _sends(code: Code, call: ast.Call, empty: ast.expr, leave: ast.If) -> bool:
    """True if a later call in the same block, nested or not, sends the name that was found empty."""
    if code.order[call] < code.order[leave] or code.function(call) is not code.function(leave):
        return False
    block = code.block(leave)
    if not any(up in block for up in code.ancestors(call)):
        return False
    sent = {n.id for a in (*call.args, *(k.value for k in call.keywords)) for n in code.inside(a, ast.Name)}
    return dotted_name(empty) in sent
