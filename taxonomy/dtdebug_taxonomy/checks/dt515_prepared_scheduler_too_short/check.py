"""Learning rate schedules that Accelerate steps once for each process, and that do not count on it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.source.names import dotted
from dtdebug_taxonomy.source.python import Code

_MAKER = re.compile(r"get_(scheduler|\w+_schedule\w*|\w*lr_scheduler)")
_COUNTS = re.compile(r"num_processes|world_size|split_batches|step_scheduler_with_optimizer|epoch", re.IGNORECASE)


def check(code: Code) -> Iterator[Hit]:
    """Reports the number of steps."""
    accelerators = code.calls("accelerate.Accelerator")
    if not accelerators or code.role == "test" or any(_COUNTS.search(code.source_of(a)) for a in accelerators):
        return
    prepared = {dotted(a) for c in code.methods("prepare", "prepare_scheduler") for a in c.args} - {""}
    for call in code.nodes(ast.Call):
        steps = code.argument(call, "num_training_steps")
        if steps is None or not _MAKER.fullmatch(dotted(call.func).rpartition(".")[2]):
            continue
        assign = code.parent.get(call)
        names = {dotted(t) for t in assign.targets} if isinstance(assign, ast.Assign) else set()
        if names & prepared and not _counts(code, steps, 3):
            yield Hit(
                code.span(steps),
                "A prepared scheduler is stepped once for each process: with N processes it is through after 1/N of "
                "these steps. Multiply by accelerator.num_processes.",
            )


def _counts(code: Code, node: ast.expr, left: int) -> bool:
    """Whether the number of processes may be in an expression, or what it is made from."""
    if _COUNTS.search(code.source_of(node)):
        return True
    inner = [n for n in code.inside(node, ast.Name, ast.Attribute) if n is not node or dotted(node)]
    values = [v for n in inner for v in code.values(n) if v is not None and v is not node] if left else []
    return any(_counts(code, v, left - 1) for v in values)
