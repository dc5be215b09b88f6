"""`accelerator.accumulate()` in programs whose Accelerator gets no number of micro-steps."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Fix, Hit
from dtdebug_taxonomy.checks.shared.accumulating import ACCELERATOR, accumulate_blocks
from dtdebug_taxonomy.checks.shared.arguments import add
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_GIVEN = ("gradient_accumulation_steps", "gradient_accumulation_plugin", "deepspeed_plugin", "deepspeed_plugins")
_OF_ACCELERATE = re.compile(r"(^|\.)accelerator$|plugin")
"""The Accelerator and its plug-ins, which have been given their number by the launcher."""
_OPTION = re.compile(r"\w+\.(?:\w+\.)?(?:gradient|grad)_accum\w*", re.IGNORECASE)


def check(code: Code) -> Iterator[Hit]:
    """Report the Accelerator."""
    made = code.calls(ACCELERATOR)
    if len(made) != 1 or code.role == "test" or not any(True for _ in accumulate_blocks(code)):
        return
    call = made[0]
    if code.has_unpacking(call) or any(code.argument(call, name) is not None for name in _GIVEN):
        return
    number = _number(code)
    if number is None:
        return
    written, same = code.source_of(number), code.function(number) is code.function(call)
    yield Hit(
        code.span(call),
        "accumulate() counts by the number that the Accelerator is given, and it is given none: the optimizer steps "
        f"after every micro-batch, whatever {written} says.",
        Fix("Tell the Accelerator", (add(code, call, f"gradient_accumulation_steps={written}"),)) if same else None,
    )


def _number(code: Code) -> ast.expr | None:
    """Return the program's option for the number of micro-steps, at its first use; None if there is none."""
    for node in code.nodes(ast.Attribute):
        if (
            isinstance(node.ctx, ast.Load)
            and _OPTION.fullmatch(dotted_name(node))
            and not _OF_ACCELERATE.search(dotted_name(node.value))
        ):
            return node
    return None
