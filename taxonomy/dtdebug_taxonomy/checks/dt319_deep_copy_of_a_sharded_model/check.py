"""Copies of models whose parameters are sharded over the ranks."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.sharding import is_fully_sharded
from dtdebug_taxonomy.checks.shared.wrapping import FSDP1, asks_wrap, wrap_of
from dtdebug_taxonomy.source.python.code import Code


def check(code: Code) -> Iterator[Hit]:
    """Report the call."""
    for call in code.calls("copy.deepcopy"):
        model = code.argument(call, "x", 0)
        if model is None:
            continue
        wrap = wrap_of(code, model, FSDP1)
        if (wrap is not None and wrap.always and not asks_wrap(code, call, wrap)) or is_fully_sharded(code, model):
            yield Hit(
                code.span(call),
                "FSDP does not support deepcopy: this fails, or leaves a copy with shards of its own. Copy the model "
                "before it is sharded, and shard both.",
            )
