"""Models whose parameters are sharded over the ranks: FSDP, `fully_shard`."""

from __future__ import annotations

import ast

from dtdebug_taxonomy.checks.shared.names import FSDP, FULLY_SHARD
from dtdebug_taxonomy.checks.shared.wrapping import FSDP1, wrap_of
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.pairs import branches

_TAKE_FSDP = tuple(
    f"{FSDP}.{name}" for name in ("state_dict_type", "set_state_dict_type", "summon_full_params", "optim_state_dict")
)


def is_fsdp(code: Code, node: ast.expr) -> bool:
    """True if a model is wrapped by `FullyShardedDataParallel`, or used as one."""
    if wrap_of(code, node, FSDP1) is not None:
        return True
    written = dotted_name(node)
    return bool(written) and any(
        dotted_name(code.argument(c, "module" if "summon" in code.name(c.func) else "model", 0)) == written
        and code.function(c) is code.function(node)
        and not _are_exclusive(code, c, node)
        and _same_model(code, node, code.argument(c, "module" if "summon" in code.name(c.func) else "model", 0))
        for c in code.calls(*_TAKE_FSDP)
    )


def _are_exclusive(code: Code, one: ast.AST, other: ast.AST) -> bool:
    """True if two places are on different branches of one condition."""
    mine = dict(branches(code.ancestors(one)))
    return any(mine.get(key, branch) != branch for key, branch in branches(code.ancestors(other)))


def _same_model(code: Code, one: ast.expr, other: ast.expr | None) -> bool:
    """True if a name can mean the same model at two places; wrapping it in between makes another one."""
    here, there = ({id(b.node) for b in code.bound(n)} if n is not None else set() for n in (one, other))
    return not here or not there or bool(here & there)


def is_fully_sharded(code: Code, node: ast.expr) -> bool:
    """True if `fully_shard` was called earlier in this file on a model."""
    written = dotted_name(node)
    return bool(written) and any(
        dotted_name(code.argument(c, "module", 0)) == written and code.order[c] < code.order[node]
        for c in code.calls(*FULLY_SHARD)
        if code.scope(c) is code.scope(node) or written.startswith("self.")
    )
