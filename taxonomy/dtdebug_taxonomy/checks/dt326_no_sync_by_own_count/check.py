"""Accumulation in which each rank counts its own samples or tokens to decide whether to reduce gradients."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.accumulating import loop_of
from dtdebug_taxonomy.checks.shared.stepping import is_agreed
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_MEASURES = {"numel", "sum", "item", "size", "count_nonzero"}


def check(code: Code) -> Iterator[Hit]:
    """Report the condition of `no_sync()`."""
    for call in code.methods("no_sync"):
        loop = loop_of(code, call)
        if loop is None:
            continue
        for test in _conditions(code, call, loop):
            asked = [test, *(v for n in code.inside(test, ast.Name) for v in code.values(n) if v is not None)]
            names = {n.id for e in asked for n in code.inside(e, ast.Name)}
            if names & _counted_names(code, loop) and not is_agreed(code, asked, test):
                yield Hit(
                    code.span(test),
                    "Each rank counts its own data here, so in one step some ranks reduce their gradients and others "
                    "do not: those that do wait for the others, or are given gradients of another step.",
                )
                break


def _conditions(code: Code, call: ast.Call, loop: ast.AST) -> Iterator[ast.expr]:
    """Yield the conditions around a call within its loop."""
    inner: ast.AST = call
    for up in code.ancestors(call):
        if up is loop:
            return
        if isinstance(up, ast.If | ast.IfExp) and inner is not up.test:
            yield up.test
        inner = up


def _counted_names(code: Code, loop: ast.AST) -> set[str]:
    """Return the names to which a loop adds a measure of this rank's data: `tokens += mask.sum()`."""
    return {
        dotted_name(a.target)
        for a in code.inside(loop, ast.AugAssign)
        if isinstance(a.op, ast.Add)
        and any(_measures(n) for n in code.inside(a.value, ast.Call))
        and not is_agreed(code, [a.value], a)
    }


def _measures(call: ast.Call) -> bool:
    func = call.func
    return dotted_name(func) == "len" or (isinstance(func, ast.Attribute) and func.attr in _MEASURES)
