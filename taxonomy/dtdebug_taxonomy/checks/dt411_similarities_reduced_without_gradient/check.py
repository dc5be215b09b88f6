"""Products of features that `all_reduce` sums in place inside a loss, bypassing autograd."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.flow import without_grad
from dtdebug_taxonomy.checks.shared.names import DIST
from dtdebug_taxonomy.source.python.code import Code

_PRODUCTS = {"torch.mm", "torch.matmul", "torch.bmm", "torch.einsum"}
_METHODS = {"mm", "matmul", "bmm"}


def check(code: Code) -> Iterator[Hit]:
    """Report the call."""
    for call in code.calls(DIST + "all_reduce"):
        given = code.argument(call, "tensor", 0)
        function, home = code.function(call), code.class_of(call)
        if not isinstance(given, ast.Name) or function is None or without_grad(code, call) or code.role == "test":
            continue
        named = f"{home.name if home else ''} {function.name}".lower()
        if "loss" not in named or "backward" in function.name or not _is_product(code, given):
            continue
        yield Hit(
            code.span(call),
            f"all_reduce() changes {given.id} in place and autograd does not see it: with gradients that "
            "DistributedDataParallel averages, the step is that of this loss divided by the number of ranks.",
        )


def _is_product(code: Code, name: ast.Name) -> bool:
    """True if a name holds products of the loss's inputs, possibly scaled, without `detach`."""
    function = code.function(name)
    values = [b.value for b in code.bindings.get((code.scope(name), name.id), ()) if b.value is not None]
    return any(
        (isinstance(n, ast.BinOp) and isinstance(n.op, ast.MatMult)) or _multiplies(code, n)
        for v in values
        for n in code.inside(v, ast.BinOp, ast.Call)
        if code.function(n) is function
    ) and not any(
        isinstance(n.func, ast.Attribute) and n.func.attr == "detach" for v in values for n in code.inside(v, ast.Call)
    )


def _multiplies(code: Code, node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    return code.name(node.func) in _PRODUCTS or getattr(node.func, "attr", "") in _METHODS
