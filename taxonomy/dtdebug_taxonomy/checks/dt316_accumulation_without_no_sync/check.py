"""Accumulation that averages the gradients in every micro-step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.wrapping import DDPS
from dtdebug_taxonomy.source.names import dotted
from dtdebug_taxonomy.source.python import Code


def check(code: Code) -> Iterator[Hit]:
    """Reports the backward pass."""
    if not code.calls(*DDPS) or any(w in code.text for w in ("no_sync", "require_backward_grad_sync", "accumulate(")):
        return
    for call in code.methods("backward"):
        loop = next((a for a in code.ancestors(call) if isinstance(a, ast.For | ast.While)), None)
        if loop is None or not _steps_rarely(code, loop) or _conditional(code, call, loop):
            continue
        yield Hit(
            code.span(call),
            "The optimizer steps once in several backward passes, yet each of them averages the gradients over all "
            "ranks: all but the last can run in no_sync().",
        )


def _steps_rarely(code: Code, loop: ast.AST) -> bool:
    """Whether the optimizer steps only in some rounds of this loop, by counting them."""
    for step in code.methods("step"):
        if "opt" not in dotted(step.func).lower() and "scaler" not in dotted(step.func).lower():
            continue
        if next((a for a in code.ancestors(step) if isinstance(a, ast.For | ast.While)), None) is not loop:
            continue
        for up in code.ancestors(step):
            if up is loop:
                break
            if isinstance(up, ast.If) and _counts(code, up.test):
                return True
    return False


def _counts(code: Code, test: ast.expr) -> bool:
    """Whether a condition holds in every n-th round."""
    tests = code.values(test) if dotted(test) else [test]
    return any(isinstance(b.op, ast.Mod) for t in tests if t is not None for b in code.inside(t, ast.BinOp))


def _conditional(code: Code, call: ast.Call, loop: ast.AST) -> bool:
    for up in code.ancestors(call):
        if up is loop:
            return False
        if isinstance(up, ast.If) and _counts(code, up.test):
            return True
    return False
