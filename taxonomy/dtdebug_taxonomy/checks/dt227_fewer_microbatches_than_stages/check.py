"""Pipeline schedules with fewer microbatches than stages."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.source.python.code import Code

_PIPE = "torch.distributed.pipelining."
_SCHEDULES = tuple(
    f"{_PIPE}{home}{name}" for home in ("", "schedules.") for name in ("Schedule1F1B", "ScheduleDualPipeV")
)
_STAGES = (f"{_PIPE}PipelineStage", f"{_PIPE}stage.PipelineStage")


def check(code: Code) -> Iterator[Hit]:
    """Report the number of microbatches."""
    for call in code.calls(*_SCHEDULES):
        given = code.argument(call, "n_microbatches", 1)
        number, stages = code.constant(given), _stages(code, code.argument(call, "stage", 0))
        if given is None or not isinstance(number, int) or number >= (stages or 2):
            continue
        many = f"{stages} stages" if stages else "a pipeline's two stages or more"
        yield Hit(
            code.span(given),
            f"{number} microbatch{'es' if number != 1 else ''} for {many}: this schedule wants one for each stage at "
            "least. It ends with an error; older releases hang.",
        )


def _stages(code: Code, stage: ast.expr | None) -> int | None:
    """Return the number of stages passed to a schedule's stage; None if unknown."""
    made = code.values(stage)
    call = made[0] if len(made) == 1 else None
    if not isinstance(call, ast.Call) or code.name(call.func) not in _STAGES:
        return None
    number = code.constant(code.argument(call, "num_stages", 2))
    return number if isinstance(number, int) else None
