"""Accumulation that averages the gradients in every micro-step."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.accumulating import (
    ACCELERATOR,
    COUNT,
    is_periodic,
    loop_of,
    rare_step,
    stepped_after,
    steps,
)
from dtdebug_taxonomy.checks.shared.diverging import last_name
from dtdebug_taxonomy.checks.shared.fixing import indent_of, statement_lines
from dtdebug_taxonomy.checks.shared.names import DDP
from dtdebug_taxonomy.checks.shared.wrapping import wrap_of
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_QUIET = ("no_sync", "require_backward_grad_sync", "accumulate(")
_BACKWARD = re.compile(r"(\w+_)?backwards?")


def check(code: Code) -> Iterator[Hit]:
    """Report the backward pass."""
    if not (code.calls(DDP) or _by_hand(code)) or any(w in code.text for w in _QUIET):
        return
    for call in (c for c in code.nodes(ast.Call) if _BACKWARD.fullmatch(last_name(code, c))):
        loop = loop_of(code, call)
        if loop is None or is_periodic(code, call, loop):
            continue
        rare = rare_step(code, loop, call)
        if rare is None and stepped_after(code, loop) is None:
            continue
        yield Hit(
            code.span(call),
            "The optimizer steps once in several backward passes, yet each of them averages the gradients over all "
            "ranks: all but the last can run in no_sync().",
            _fix(code, loop) if rare is not None else None,
        )


def _by_hand(code: Code) -> bool:
    """True if no Accelerator is given the number of micro-steps, which the program counts itself."""
    made = code.calls(ACCELERATOR)
    return bool(made) and all(code.argument(c, COUNT) is None for c in made)


def _fix(code: Code, loop: ast.For | ast.While) -> Fix | None:
    """Return a fix that switches gradient reduction per iteration before the forward pass.

    It sets the attribute that no_sync() sets
    (https://github.com/pytorch/pytorch/blob/main/torch/nn/parallel/distributed.py).
    """
    tests = {code.source_of(up.test): up.test for up in _conditions(code, loop)}
    models = {
        dotted_name(c.func)
        for s in loop.body
        for c in code.inside(s, ast.Call)
        if dotted_name(c.func) and wrap_of(code, c.func, {DDP})
    }
    first = loop.body[0]
    if len(tests) != 1 or len(models) != 1 or statement_lines(code, first) is None:
        return None
    (written, test), model = tests.popitem(), models.pop()
    used = {n.id for n in code.inside(test, ast.Name)}
    changed = {n.id for s in loop.body for n in code.inside(s, ast.Name) if isinstance(n.ctx, ast.Store)}
    if used & changed or "\n" in written or model.split(".")[0] in changed:
        return None
    start = code.text.starts[code.text.place(code.span(first).start).line - 1]
    text = f"{indent_of(code, first)}{model}.require_backward_grad_sync = {written}\n"
    return Fix("Average only in the round that steps", (Edit(Span(start, start), text),), safe=False)


def _conditions(code: Code, loop: ast.AST) -> Iterator[ast.If]:
    """Yield the conditions around the optimizer's steps in a loop."""
    for step in steps(code):
        around = list(code.ancestors(step))
        if loop in around:
            yield from (a for a in around[: around.index(loop)] if isinstance(a, ast.If))
