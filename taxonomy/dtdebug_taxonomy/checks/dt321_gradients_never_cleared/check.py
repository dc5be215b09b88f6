"""Training loops of several ranks in which nothing clears the gradients."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.names import OPTIMIZERS
from dtdebug_taxonomy.checks.shared.wrapping import DDPS, FSDP1
from dtdebug_taxonomy.source.python.code import Code

_CLEARS = re.compile(r"zero_grad|\.grad\s*=|\.grad\.zero_|set_to_none|clear_grad|autograd\.grad|foreach_zero")


def check(code: Code) -> Iterator[Hit]:
    """Report the first optimizer step in a loop with a backward pass."""
    if _CLEARS.search(code.text) or not code.calls(*DDPS, *FSDP1) or not code.calls(*OPTIMIZERS):
        return
    for call in code.methods("step"):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if owner is None or not code.made_by(owner) or not code.made_by(owner) <= OPTIMIZERS:
            continue
        loop = next((a for a in code.ancestors(call) if isinstance(a, ast.For | ast.While)), None)
        if loop is None or not any(loop in set(code.ancestors(b)) for b in code.methods("backward")):
            continue
        yield Hit(
            code.span(call),
            "Nothing in this program clears the gradients, so each step applies those of all earlier "
            "steps again. Call zero_grad() in every step.",
        )
        return
