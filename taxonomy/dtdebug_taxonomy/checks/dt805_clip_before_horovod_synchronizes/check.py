"""Gradient clipping with Horovod's optimizer that does not wait for the exchange."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared import horovod
from dtdebug_taxonomy.checks.shared.fixing import indent_of, statement_lines
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_CLIPS = tuple(
    f"torch.nn.utils.{where}{name}"
    for where in ("", "clip_grad.")
    for name in ("clip_grad_norm_", "clip_grad_norm", "clip_grad_value_", "clip_grads_with_norm_")
)


def check(code: Code) -> Iterator[Hit]:
    """Report the clipping."""
    wrapped = horovod.calls(code, "DistributedOptimizer")
    if not any(code.name(c.func).startswith("horovod.torch") for c in wrapped) or _synchronizes(code):
        return
    for call in code.calls(*_CLIPS):
        yield Hit(
            code.span(call),
            "These gradients are still those of the rank alone: Horovod averages them while this clips, and step() "
            "then uses averages that were never clipped.",
            _fix(code, call),
        )


def _synchronizes(code: Code) -> bool:
    return any(not code.name(c.func).startswith("torch.") for c in code.methods("synchronize"))


def _fix(code: Code, call: ast.Call) -> Fix | None:
    """Return a fix if the step is the next statement."""
    statement = code.statement(call)
    block = code.block(statement)
    after = block[block.index(statement) + 1 :][:1]
    step = after[0] if after else None
    if not isinstance(step, ast.Expr) or not isinstance(step.value, ast.Call) or statement_lines(code, step) is None:
        return None
    func = step.value.func
    if not isinstance(func, ast.Attribute) or func.attr != "step" or not dotted_name(func.value):
        return None
    if statement_lines(code, statement) is None:
        return None
    indent, optimizer = indent_of(code, statement), dotted_name(func.value)
    inner = "\t" if "\t" in indent else "    "
    first, second = code.span(statement).start, code.span(step).start
    return Fix(
        "Synchronize first, and step without doing it again",
        (
            Edit(Span(first, first), f"{optimizer}.synchronize()\n{indent}"),
            Edit(Span(second, second), f"with {optimizer}.skip_synchronize():\n{indent}{inner}"),
        ),
    )
