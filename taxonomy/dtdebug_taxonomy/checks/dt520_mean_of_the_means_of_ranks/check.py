"""Masked means that each rank takes over its own tokens before the ranks' gradients are averaged."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.flow import reaches_backward, without_grad
from dtdebug_taxonomy.checks.shared.stepping import in_step, is_agreed
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_MASK = re.compile(r"(^|_)(loss_?|token_?|label_?|attention_?|response_?|action_?)?(mask|masks|valid)$", re.IGNORECASE)
_AWARE = re.compile(
    r"num_items_in_batch|global_(valid_)?(tokens|count)|total_tokens|average_tokens_across_devices|num_tokens"
)


def check(code: Code) -> Iterator[Hit]:
    """Report the quotient."""
    if code.role == "test" or not (in_step(code) and "backward" in code.text) or _AWARE.search(code.text):
        return
    for quotient in code.nodes(ast.BinOp):
        if not isinstance(quotient.op, ast.Div) or without_grad(code, quotient):
            continue
        mask = _summed_mask(code, quotient.right)
        if not mask or not _masks(code, quotient.left, mask) or not _is_loss(code, quotient):
            continue
        if is_agreed(code, [quotient.right]):
            continue
        yield Hit(
            code.span(quotient),
            f"Each rank divides by its own {mask}.sum(), and then the gradients of the ranks are "
            "averaged: where the ranks "
            "have different numbers of tokens, those of the rank with fewer count more.",
        )


def _summed_mask(code: Code, node: ast.expr) -> str:
    """Return the mask whose sum an expression is, possibly with a bound or an epsilon; "" if there is none."""
    if isinstance(node, ast.Name):
        values = code.values(node)
        return _summed_mask(code, values[0]) if len(values) == 1 and isinstance(values[0], ast.BinOp | ast.Call) else ""
    for call in code.inside(node, ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "sum" and not call.args and not call.keywords:
            name = dotted_name(call.func.value)
            if _MASK.search(name.rpartition(".")[2]):
                return name
    return ""


def _masks(code: Code, node: ast.expr, mask: str) -> bool:
    """True if an expression is a sum of the values that the mask keeps."""
    return any(
        isinstance(c.func, ast.Attribute)
        and c.func.attr == "sum"
        and any(
            isinstance(b.op, ast.Mult) and mask in {dotted_name(b.left), dotted_name(b.right)}
            for b in code.inside(c, ast.BinOp)
        )
        for c in code.inside(node, ast.Call)
    )


def _is_loss(code: Code, quotient: ast.BinOp) -> bool:
    """True if a quotient reaches the backward pass, or is returned by a loss function."""
    if reaches_backward(code, quotient):
        return True
    function, statement = code.function(quotient), code.statement(quotient)
    return function is not None and "loss" in function.name and isinstance(statement, ast.Return)
