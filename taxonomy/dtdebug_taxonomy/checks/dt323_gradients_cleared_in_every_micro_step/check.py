"""Accumulation in which each micro-step clears the gradients of the ones before it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.accumulating import (
    accumulate_blocks,
    accumulation_steps,
    counts,
    is_periodic,
    loop_of,
    optimizer_name,
    rare_step,
)
from dtdebug_taxonomy.checks.shared.fixing import indent_of, own_lines
from dtdebug_taxonomy.checks.shared.stepping import in_step
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span


def check(code: Code) -> Iterator[Hit]:
    """Report the call that clears."""
    clears = code.methods("zero_grad")
    if not clears or not in_step(code) or code.role == "test":
        return
    yield from _by_counter(code, clears)
    if accumulation_steps(code) is not None:
        yield from _by_accelerate(code, clears)


def _by_counter(code: Code, clears: list[ast.Call]) -> Iterator[Hit]:
    """Report a clear in every iteration if the optimizer steps only in some: `if (i + 1) % n == 0:`."""
    for call in clears:
        loop = loop_of(code, call)
        owner = dotted_name(call.func).rpartition(".")[0]
        if loop is None or not owner or not _in_every_round(code, call, loop):
            continue
        for backward in code.methods("backward"):
            step = rare_step(code, loop, backward) if loop_of(code, backward) is loop else None
            if step is not None and optimizer_name(step) == owner and not is_periodic(code, backward, loop):
                yield Hit(
                    code.span(call),
                    "The optimizer steps once in several rounds, but this clears the gradients in each of them: the "
                    "step sees the last micro-batch alone.",
                    _fix(code, call, step),
                )
                break


def _by_accelerate(code: Code, clears: list[ast.Call]) -> Iterator[Hit]:
    """Report `zero_grad()` above the backward pass in `with accelerator.accumulate(model):`."""
    for block in accumulate_blocks(code):
        inside = [c for c in code.methods("backward") if c.args and block in code.ancestors(c)]
        steps = [c for c in code.methods("step") if block in code.ancestors(c)]
        for call in clears:
            owner = dotted_name(call.func).rpartition(".")[0]
            step = next((c for c in steps if owner and optimizer_name(c) == owner), None)
            if step is None or code.statement(call) not in block.body:
                continue
            if any(code.order[call] < code.order[b] < code.order[step] for b in inside):
                yield Hit(
                    code.span(call),
                    "Accelerate lets this through in the micro-step after which the optimizer steps: what the "
                    "micro-steps before it have gathered is cleared, and the step sees the last one alone.",
                    _fix(code, call, step),
                )


def _in_every_round(code: Code, call: ast.Call, loop: ast.AST) -> bool:
    """True if a call is made in each iteration of its loop, whatever the counter."""
    for up in code.ancestors(call):
        if up is loop:
            return True
        if not isinstance(up, ast.stmt) or isinstance(up, ast.Expr | ast.With):
            continue
        return False
    return False


def _fix(code: Code, call: ast.Call, step: ast.Call) -> Fix | None:
    """Return a fix that moves the line after the step, and after the branches that contain it."""
    cleared, after = code.statement(call), code.statement(step)
    while isinstance(up := code.parent[after], ast.If) and not counts(code, up.test):
        after = up
    lines, own = own_lines(code, cleared), own_lines(code, after)
    if lines is None or own is None or len(code.block(cleared)) == 1 or not isinstance(code.parent[call], ast.Expr):
        return None
    start, last = code.text.starts[lines[0] - 1], code.text.end_of_line(lines[-1]) + 1
    end = code.text.end_of_line(own[-1])
    text = f"\n{indent_of(code, after)}{code.source_of(cleared)}"
    return Fix("Clear after the step", (Edit(Span(start, last), ""), Edit(Span(end, end), text)), safe=False)
