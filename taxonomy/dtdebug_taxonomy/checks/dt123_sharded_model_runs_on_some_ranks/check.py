"""Forward passes of a sharded model on some ranks only, such as an evaluation by rank 0 alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.diverging import condition
from dtdebug_taxonomy.checks.shared.forwarding import forwards, names_of, results
from dtdebug_taxonomy.checks.shared.names import FULLY_SHARD
from dtdebug_taxonomy.checks.shared.sharding import is_fully_sharded
from dtdebug_taxonomy.checks.shared.wrapping import FSDP1, asks_wrap, wrap_of
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_WHOLE = ("summon_full_params", "unshard", "full_tensor", "full_state_dict")
"""Methods after which the rank may have all parameters."""


def check(code: Code) -> Iterator[Hit]:
    """Report the model where it is called, or passed to a function that calls it."""
    if code.role == "test":
        return
    sharded = {
        dotted_name(model) for c in code.calls(*FULLY_SHARD) if (model := code.argument(c, "module", 0)) is not None
    }
    made = {name for call in code.calls(*FSDP1, *FULLY_SHARD) for name in results(code, call)}
    for call, model, same in forwards(code, names_of(code, (sharded | made) - {""})):
        guard = condition(code, call, same)
        if guard is None or not _is_sharded(code, call, model) or code.methods(*_WHOLE):
            continue
        yield Hit(
            code.span(model),
            f"{dotted_name(model)} runs here {guard.test.words}, but each rank holds a part of its parameters and all"
            " must take part in each forward pass: the run hangs. Run it on every rank, and let one print or write.",
        )


def _is_sharded(code: Code, call: ast.Call, model: ast.expr) -> bool:
    wrap = wrap_of(code, model, FSDP1 | FULLY_SHARD)
    return is_fully_sharded(code, model) if wrap is None else not asks_wrap(code, call, wrap)
