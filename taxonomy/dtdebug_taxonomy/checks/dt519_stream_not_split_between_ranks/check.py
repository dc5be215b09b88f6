"""Unsplit `load_dataset(..., streaming=True)` in programs that start their ranks themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.ranks_seen import starts_ranks
from dtdebug_taxonomy.checks.shared.wrapping import DDPS, FSDP1
from dtdebug_taxonomy.source.python.code import Code

_SPLITS = re.compile(
    r"split_dataset_by_node|IterableDatasetShard|\.shard\(|islice|worker_init_fn|dispatch_batches|StatefulDistributed|"
    r"%\s*(self\.)?(world_size|num_replicas|dp_world_size)|split_by_node"
)


def check(code: Code) -> Iterator[Hit]:
    """Report the call."""
    calls = [c for c in code.calls("datasets.load_dataset") if code.constant(code.argument(c, "streaming")) is True]
    if not calls or _SPLITS.search(code.text) or code.role == "test":
        return
    if not (starts_ranks(code) or code.calls(*DDPS, *FSDP1)) or not code.methods("backward"):
        return
    if code.imports_any("accelerate", "transformers.Trainer", "lightning", "pytorch_lightning"):
        return
    for call in calls:
        yield Hit(
            code.span(call),
            "Samplers don't apply to a stream, and nothing here splits it: every rank trains on all samples. "
            "datasets.distributed.split_dataset_by_node() gives each rank its part.",
        )
