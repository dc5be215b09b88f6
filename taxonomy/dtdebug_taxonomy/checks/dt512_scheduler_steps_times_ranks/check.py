"""Learning rate schedules stretched by the number of ranks although each rank steps them once per step."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.ranks_seen import starts_ranks
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_ARGUMENTS = ("num_warmup_steps", "num_training_steps", "T_max", "total_steps", "total_iters", "warmup_steps")
_MAKER = re.compile(r"(get_\w*(scheduler|schedule)\w*|\w*LR|\w*[Ss]cheduler\w*)$")
_SIZE = re.compile(r"(world_?size|num_processes|num_replicas)$", re.IGNORECASE)


def check(code: Code) -> Iterator[Hit]:
    """Report the argument."""
    if code.role == "test" or code.imports_any("accelerate", "horovod"):
        return  # Accelerate steps a prepared scheduler once per process
    for call in code.nodes(ast.Call):
        last = dotted_name(call.func).rsplit(".", 1)[-1]
        if not call.keywords or not _MAKER.fullmatch(last):
            continue
        for keyword in call.keywords:
            if keyword.arg in _ARGUMENTS and _times_ranks(code, keyword.value) and _knows_ranks(code):
                yield Hit(
                    code.span(keyword.value),
                    f"Each rank steps its own scheduler once a step, so {keyword.arg} must not grow with the number of "
                    "ranks: the warm-up and the decay come that much too late.",
                    _fix(code, keyword.value),
                )


def _times_ranks(code: Code, node: ast.expr) -> bool:
    values = [v for v in code.values(node) if v is not None]
    return any(
        isinstance(v, ast.BinOp) and isinstance(v.op, ast.Mult) and any(map(_is_size, (v.left, v.right)))
        for v in values
    )


def _is_size(node: ast.expr) -> bool:
    return bool(_SIZE.search(dotted_name(node.func) if isinstance(node, ast.Call) else dotted_name(node)))


def _fix(code: Code, node: ast.expr) -> Fix | None:
    if not isinstance(node, ast.BinOp):
        return None  # other code may use the product too
    kept = node.left if _is_size(node.right) else node.right
    return Fix("Count the steps of one rank", (Edit(code.span(node), code.source_of(kept)),), safe=False)


def _knows_ranks(code: Code) -> bool:
    return starts_ranks(code) or "distributed" in code.text
