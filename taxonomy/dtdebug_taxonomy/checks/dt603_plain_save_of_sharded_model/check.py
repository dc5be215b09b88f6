"""Models with parameters sharded over the ranks, saved by `torch.save` as if one rank had them all."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.engines import made_by_deepspeed
from dtdebug_taxonomy.checks.shared.ranks_seen import depends_on_rank
from dtdebug_taxonomy.checks.shared.sharding import is_fully_sharded
from dtdebug_taxonomy.source.python.code import Code

_STAGE_3 = re.compile(r"""["']?(stage|zero_stage)["']?\s*[:=]\s*3\b""")
_GATHERS = re.compile(r"GatheredParameters|summon_full_params|full_tensor")


def check(code: Code) -> Iterator[Hit]:
    """Report the `state_dict()` that is written to the file."""
    for save in code.calls("torch.save"):
        path = code.argument(save, "f", 1)
        if path is None or depends_on_rank(code, path):
            continue
        for state in _states(code, code.argument(save, "obj", 0)):
            model = state.func.value  # type: ignore[attr-defined]
            if _is_gathered(code, state):
                continue
            inner = model.value if isinstance(model, ast.Attribute) and model.attr == "module" else model
            if made_by_deepspeed(code, inner) and _is_stage_3(code):
                yield Hit(
                    code.span(state),
                    "Under ZeRO stage 3 a rank holds only its part of the parameters: what is saved here are "
                    "empty tensors. engine.save_checkpoint() or save_16bit_model() on all ranks gathers them.",
                )
            elif is_fully_sharded(code, model):
                yield Hit(
                    code.span(state),
                    "After fully_shard() this is the state of one rank: the file holds its shards only. "
                    "Gather first, by get_model_state_dict() with full_state_dict=True on all ranks.",
                )


def _states(code: Code, saved: ast.expr | None) -> Iterator[ast.Call]:
    """Yield the calls of `state_dict()` that are saved, directly, in a dictionary, or by a name."""
    todo, depth = [(saved, 3)], 0
    while todo:
        node, depth = todo.pop()
        if isinstance(node, ast.Dict):
            todo += [(v, depth) for v in node.values]
        elif isinstance(node, ast.Call):
            if getattr(node.func, "attr", "") == "state_dict" and not node.args:
                yield node
            elif getattr(node.func, "id", "") == "dict":
                todo += [(k.value, depth) for k in node.keywords]
        elif isinstance(node, ast.Name | ast.Attribute) and depth:
            todo += [(v, depth - 1) for v in code.values(node) if v is not node]


def _is_gathered(code: Code, node: ast.AST) -> bool:
    return any(
        _GATHERS.search(code.source_of(item.context_expr))
        for up in code.ancestors(node)
        if isinstance(up, ast.With)
        for item in up.items
    )


def _is_stage_3(code: Code) -> bool:
    return bool(_STAGE_3.search(code.text) or code.calls("deepspeed.zero.Init"))
