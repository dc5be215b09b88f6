"""`get_train_dataloader()` of a Trainer subclass that returns a loader which Accelerate never prepared."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.names import LOADER
from dtdebug_taxonomy.checks.shared.ranks_seen import depends_on_rank
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_TRAINER = re.compile(r"^(transformers|trl)\.(.*\.)?\w*Trainer$")
_SPLITS = re.compile(
    r"[Dd]istributed|prepare|world_size|num_replicas|process_index|split_dataset_by_node|\.shard\(|rank"
)


def check(code: Code) -> Iterator[Hit]:
    """Report the loader."""
    if code.role == "test":
        return
    for function in code.functions.get("get_train_dataloader", ()):
        home = code.class_of(function)
        if home is None or not any(_TRAINER.match(code.name(b)) for b in home.bases):
            continue
        if _SPLITS.search(code.source_of(function)):
            continue
        for given in code.inside(function, ast.Return):
            made = [v for v in code.values(given.value) if v is not None]
            if len(made) == 1 and isinstance(made[0], ast.Call) and _is_whole(code, made[0]):
                yield Hit(
                    code.span(made[0]),
                    "The Trainer divides the data by preparing the loader that it makes itself; this one is handed on "
                    "as it is, so every rank goes through all of the data, and with the same seed in the same order.",
                    _fix(code, made[0]),
                )


def _is_whole(code: Code, call: ast.Call) -> bool:
    if code.name(call.func) not in {LOADER, "torch.utils.data.dataloader.DataLoader"}:
        return False
    sampler = code.argument(call, "sampler", 3)
    values = code.values(sampler) if sampler is not None else []
    known = all(isinstance(v, ast.Call) and code.name(v.func).startswith("torch.utils.data.") for v in values)
    return known and code.argument(call, "batch_sampler", 4) is None and not depends_on_rank(code, call)


def _fix(code: Code, call: ast.Call) -> Fix | None:
    span = code.span(call)
    edits = (Edit(Span(span.start, span.start), "self.accelerator.prepare("), Edit(Span(span.end, span.end), ")"))
    return Fix("Let Accelerate divide it", edits, safe=False) if dotted_name(call.func) else None
