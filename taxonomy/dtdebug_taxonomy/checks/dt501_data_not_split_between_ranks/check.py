"""Shuffled data loaders without a sampler in programs that train with DistributedDataParallel."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.arguments import keyword
from dtdebug_taxonomy.checks.shared.fixing import written_name
from dtdebug_taxonomy.checks.shared.names import DDP, FSDP, INIT, LOADER
from dtdebug_taxonomy.checks.shared.ranks_seen import depends_on_rank, is_started_here
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.names import dotted_name

_SPLITTERS = ("accelerate", "pytorch_lightning", "lightning", "lightning_fabric", "ray", "webdataset", "nvidia.dali")
_SAVES = re.compile(r"save|dump|write|to_(csv|parquet|json)")
_WORDS = ("split_dataset_by_node", "distributed_sampler", "IterableDataset", ".shard(")


def check(code: Code) -> Iterator[Hit]:
    """Report the loader."""
    trains = bool(code.calls(DDP, FSDP))
    if (
        not (trains or code.calls(INIT))
        or not is_started_here(code)
        or code.imports_any(*_SPLITTERS)
        or any(w in code.text for w in _WORDS)
        or any("DistributedSampler" in code.source_of(n) for n in (*code.nodes(ast.Name), *code.nodes(ast.Attribute)))
    ):
        return
    for call in code.calls(LOADER):
        if code.has_unpacking(call):
            continue
        if code.constant(code.argument(call, "shuffle", 2)) is not True and (
            trains or not _is_kept_by_each(code, call)
        ):
            continue
        if code.argument(call, "sampler", 3) is not None or code.argument(call, "batch_sampler", 4) is not None:
            continue
        data = code.argument(call, "dataset", 0)
        if data is None or depends_on_rank(code, data) or guards(code).around(call):
            continue
        fix = None
        given = keyword(call, "shuffle")
        if given is not None and trains:
            sampler, edits = written_name(code, "torch.utils.data.DistributedSampler")
            edit = Edit(code.span(given), f"sampler={sampler}({code.source_of(data)})")
            fix = Fix("Give each rank its part", (*edits, edit))
        yield Hit(
            code.span(call),
            "Each rank reads the whole data set here, for the loader has no DistributedSampler: "
            + (
                "an epoch does the same work on every rank instead of dividing it."
                if trains or not _is_kept_by_each(code, call)
                else "each saves all of it once more, under a name of its own."
            ),
            fix,
        )


def _is_kept_by_each(code: Code, call: ast.Call) -> bool:
    """True if each rank saves a loader's output under its own name, so that each was meant to have a part."""
    assign, data = code.parent[call], code.argument(call, "dataset", 0)
    names = {dotted_name(t) for t in assign.targets} if isinstance(assign, ast.Assign) else set()
    made = [v for v in code.values(data) if v is not data]
    if not made or not all(isinstance(v, ast.Call) for v in made) or _picks_by_rank(code):
        return False
    loops = [n for n in code.nodes(ast.For) if code.function(n) is code.function(call)]
    return any(
        _saves_own(code, loop)
        for loop in loops
        if names & {dotted_name(n) for n in code.inside(loop.iter, ast.Name, ast.Attribute)} - {""}
    )


def _saves_own(code: Code, loop: ast.For) -> bool:
    saves = (c for c in code.inside(loop, ast.Call) if _SAVES.search(dotted_name(c.func).rpartition(".")[2]))
    return any(depends_on_rank(code, a) for c in saves for a in (*c.args, *(k.value for k in c.keywords)))


def _picks_by_rank(code: Code) -> bool:
    """True if the program selects samples by the rank anywhere: by a slice or a remainder."""
    parts: list[ast.expr] = [s.slice for s in code.nodes(ast.Subscript) if isinstance(s.slice, ast.Slice)]
    parts += [c for c in code.nodes(ast.Compare) if any(isinstance(b.op, ast.Mod) for b in code.inside(c, ast.BinOp))]
    return any(depends_on_rank(code, p) for p in parts)
