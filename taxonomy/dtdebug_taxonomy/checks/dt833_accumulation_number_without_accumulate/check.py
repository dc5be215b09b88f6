"""Accelerators with a number of micro-steps in programs that never accumulate."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.accumulating import ACCELERATOR, accumulation_steps, loop_of, steps
from dtdebug_taxonomy.source.python.code import Code

_OTHERWISE = re.compile(r"accumulate\(|deepspeed|no_sync|sync_gradients|gradient_state|megatron", re.IGNORECASE)


def check(code: Code) -> Iterator[Hit]:
    """Report the number."""
    number = accumulation_steps(code)
    if number is None or code.role == "test" or _OTHERWISE.search(code.text):
        return
    backwards = [c for c in code.methods("backward") if c.args and ACCELERATOR in code.made_by(c.func.value)]  # type: ignore[attr-defined]
    loops = [(loop_of(code, c), c) for c in backwards]
    if any(loop is not None and _steps_each_time(code, loop, call) for loop, call in loops):
        yield Hit(
            code.span(number),
            "accelerator.backward() divides each loss by this number, but nothing accumulates: no "
            "`with accelerator.accumulate(model):` is here and the optimizer steps each time, by gradients that are "
            "that many times too small.",
        )


def _steps_each_time(code: Code, loop: ast.For | ast.While, backward: ast.Call) -> bool:
    """True if the optimizer steps unconditionally in the block of the backward pass."""
    block = code.block(code.statement(backward))
    return any(loop_of(code, s) is loop and code.statement(s) in block for s in steps(code))
