"""Shuffled data loaders without a sampler in programs that train with DistributedDataParallel."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.arguments import keyword
from dtdebug_taxonomy.checks.fixing import written_name
from dtdebug_taxonomy.checks.names import DDP, FSDP, LOADER
from dtdebug_taxonomy.checks.ranks_seen import depends_on_rank, is_started_here
from dtdebug_taxonomy.source.guards import guards
from dtdebug_taxonomy.source.python import Code

_SPLITTERS = ("accelerate", "pytorch_lightning", "lightning", "lightning_fabric", "ray", "webdataset", "nvidia.dali")
_WORDS = ("split_dataset_by_node", "distributed_sampler", "IterableDataset", ".shard(")


def check(code: Code) -> Iterator[Hit]:
    """Reports the loader."""
    if (
        not code.calls(DDP, FSDP)
        or not is_started_here(code)
        or code.imports_any(*_SPLITTERS)
        or any(w in code.text for w in _WORDS)
        or any("DistributedSampler" in code.source_of(n) for n in (*code.nodes(ast.Name), *code.nodes(ast.Attribute)))
    ):
        return
    for call in code.calls(LOADER):
        if code.constant(code.argument(call, "shuffle", 2)) is not True or code.has_unpacking(call):
            continue
        if code.argument(call, "sampler", 3) is not None or code.argument(call, "batch_sampler", 4) is not None:
            continue
        data = code.argument(call, "dataset", 0)
        if data is None or depends_on_rank(code, data) or guards(code).around(call):
            continue
        fix = None
        given = keyword(call, "shuffle")
        if given is not None:
            sampler, edits = written_name(code, "torch.utils.data.DistributedSampler")
            edit = Edit(code.span(given), f"sampler={sampler}({code.source_of(data)})")
            fix = Fix("Give each rank its part", (*edits, edit))
        yield Hit(
            code.span(call),
            "Each rank reads the whole data set here, for the loader has no DistributedSampler: an epoch does the "
            "same work on every rank instead of dividing it.",
            fix,
        )
