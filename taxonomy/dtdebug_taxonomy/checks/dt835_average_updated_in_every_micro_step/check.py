"""Averages of the weights that are updated in every micro-step of an accumulation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.accumulating import accumulate_blocks, accumulation_steps, counts, loop_of
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_AVERAGE = re.compile(r"(?i)(^|[._])ema(_|$|[._a-z])|moving_average|averaged_model|swa_model")
_MOVES = {"update", "step", "update_parameters", "update_ema"}


def check(code: Code) -> Iterator[Hit]:
    """Report the call that updates the average."""
    if accumulation_steps(code) is None or code.role == "test":
        return
    loops = {loop for block in accumulate_blocks(code) if (loop := loop_of(code, block)) is not None}
    for call in code.nodes(ast.Call) if loops else ():
        owner, _, last = dotted_name(call.func).rpartition(".")
        moves = (last in _MOVES and _AVERAGE.search(owner)) or last in {"update_ema", "ema_update"}
        if moves and loop_of(code, call) in loops and not _tests_step(code, call):
            yield Hit(
                code.span(call),
                "This runs after every micro-step, also after those in which the optimizer did not step: the average "
                "moves on by the same weights several times. Ask for accelerator.sync_gradients first.",
            )


def _tests_step(code: Code, call: ast.Call) -> bool:
    """True if a condition in the loop tests whether the optimizer has stepped."""
    for up in code.ancestors(call):
        if isinstance(up, ast.For | ast.While):
            return False
        if isinstance(up, ast.If) and ("sync_gradients" in code.source_of(up.test) or counts(code, up.test)):
            return True
    return False
