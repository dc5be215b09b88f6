"""Training forward passes through a model that `accelerator.unwrap_model()` returned."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.flow import reaches_backward, without_grad
from dtdebug_taxonomy.source.python.bindings import surely_before
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_MOST = 20
"""Maximum number of calls of such models to inspect, each of which scans its whole function."""


def check(code: Code) -> Iterator[Hit]:
    """Report the call of the model."""
    prepared = {dotted_name(a) for c in code.methods("prepare", "prepare_model") for a in c.args} - {""}
    if not prepared or code.role == "test" or code.methods("all_reduce", "reduce_gradients"):
        return
    found = ((call, taken) for call in code.nodes(ast.Call) if (taken := _taken_out(code, call.func, prepared)))
    for call, taken in islice(found, _MOST):
        if without_grad(code, call) or not reaches_backward(code, call):
            continue
        outer = dotted_name(taken.args[0])
        if outer != dotted_name(call.func) and _is_called_too(code, call, outer):
            continue
        yield Hit(
            code.span(call.func),
            "The loss is computed with the model inside the wrapper: with several processes nothing averages its "
            "gradients, and each rank trains a model of its own. Call what prepare() gave.",
        )


def _taken_out(code: Code, called: ast.expr, prepared: set[str]) -> ast.Call | None:
    """Return the call that definitely unwrapped the prepared model that is called here, else None."""
    if isinstance(called, ast.Call):
        return called if _unwraps(called, prepared) else None
    bound = code.bound(called) if isinstance(called, ast.Name) else []
    made = bound[0].value if len(bound) == 1 else None
    if not isinstance(made, ast.Call) or not _unwraps(made, prepared):
        return None
    return made if surely_before(code, bound[0].node, called) else None


def _unwraps(call: ast.Call, prepared: set[str]) -> bool:
    last = dotted_name(call.func).rpartition(".")[2]
    return last == "unwrap_model" and bool(call.args) and dotted_name(call.args[0]) in prepared


def _is_called_too(code: Code, call: ast.Call, outer: str) -> bool:
    """True if the wrapper itself runs forward in the same function."""
    home = code.function(call)
    return any(dotted_name(c.func) == outer and code.function(c) is home for c in code.nodes(ast.Call))
