"""Tracker runs (wandb, TensorBoard, ...) that every rank starts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Fix, Hit
from dtdebug_taxonomy.checks.shared.arguments import add
from dtdebug_taxonomy.checks.shared.everyone import for_all, nearby_guard
from dtdebug_taxonomy.checks.shared.fixing import main_process
from dtdebug_taxonomy.checks.shared.ranks_seen import depends_on_rank, starts_ranks
from dtdebug_taxonomy.checks.shared.wrapping import DDPS, FSDP1
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import Guard

_STARTS = (
    *("wandb.init", "mlflow.start_run", "swanlab.init", "clearml.Task.init", "comet_ml.Experiment", "comet_ml.start"),
    *("neptune.init_run", "aim.Run", "trackio.init"),
    *("torch.utils.tensorboard.SummaryWriter", "tensorboardX.SummaryWriter"),
    "torch.utils.tensorboard.writer.SummaryWriter",
)
_PER_RANK = re.compile(r"rank|process_index|hostname|disabled|offline", re.IGNORECASE)


def check(code: Code) -> Iterator[Hit]:
    """Report the call that starts the run."""
    started = code.calls(*_STARTS)
    if not started or code.role == "test":
        return
    several = starts_ranks(code) or bool(code.calls(*DDPS, *FSDP1))
    for call in started:
        if code.argument(call, "group") is not None or _of_this_rank(code, call):
            continue
        guard = nearby_guard(code, call)
        if guard is not None or (several and code.role == "program" and for_all(code, call)):
            what = code.name(call.func).partition(".")[0]
            yield Hit(
                code.span(call),
                f"Every rank starts this run of {'TensorBoard' if 'Writer' in code.name(call.func) else what}: one "
                "job shows up as many runs, or the ranks write into one another's files.",
                _fix(code, call, guard),
            )


def _of_this_rank(code: Code, call: ast.Call) -> bool:
    """True if its arguments differ between ranks, so that one run per rank is intended."""
    given = [*call.args, *(k.value for k in call.keywords)]
    values = [v for a in given for v in (a, *code.values(a)) if v is not None]
    return any(depends_on_rank(code, a) for a in given) or any(_PER_RANK.search(code.source_of(v)) for v in values)


def _fix(code: Code, call: ast.Call, guard: Guard | None) -> Fix | None:
    """Return a fix that disables wandb on other ranks, so that the rest of the program stays unchanged.

    `mode` is documented at https://docs.wandb.ai/ref/python/init/.
    """
    test, imports = main_process(code, guard, call)
    if code.name(call.func) != "wandb.init" or code.argument(call, "mode", 12) or code.has_unpacking(call) or not test:
        return None
    mode = add(code, call, f'mode=None if {test} else "disabled"')
    return Fix("Start it on rank 0 only", (*imports, mode))
