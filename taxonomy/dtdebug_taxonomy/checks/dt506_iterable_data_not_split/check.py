"""Iterable data sets that use neither the rank nor the worker, in programs of several ranks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.names import DDP, FSDP
from dtdebug_taxonomy.checks.shared.ranks_seen import depends_on_rank, starts_ranks
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.text import Span

_BASES = {"torch.utils.data.IterableDataset", "torch.utils.data.IterDataPipe"}
_SPLITS = re.compile(r"rank|world|shard|replica|split|islice|partition|num_parts|process_index", re.IGNORECASE)
_BY_RANK = re.compile(r"rank|world|replica|num_parts|process_index|shard_?(?:id|index|idx)", re.IGNORECASE)
"""Words for a split between ranks in a class that divides between loader workers: its shards are theirs."""
_BY_WORKER = re.compile(r"\bnum_workers\b")
_ELSEWHERE = ("split_dataset_by_node", "IterableDatasetShard", "worker_init_fn", "split_by_node", "dispatch_batches")


def check(code: Code) -> Iterator[Hit]:
    """Report the method `__iter__`."""
    if not (starts_ranks(code) or code.calls(DDP, FSDP)) or any(w in code.text for w in _ELSEWHERE):
        return
    if code.imports_any("accelerate", "ray"):
        return
    for home in code.nodes(ast.ClassDef):
        if not any(code.name(b) in _BASES for b in home.bases) or _is_split(code, home):
            continue
        method = next((m for m in home.body if isinstance(m, ast.FunctionDef) and m.name == "__iter__"), None)
        if method is None or _made_by_rank(code, home):
            continue
        text = code.source_of(home)
        if "worker" in text and not re.search(r"get_worker_info|num_workers", text):
            continue
        to = (
            "every rank: it divides them between loader workers only"
            if "worker" in text
            else "every rank and every loader worker"
        )
        start = code.text.index("__iter__", code.span(method).start)
        yield Hit(
            Span(start, start + len("__iter__")),
            f"{home.name} gives all its samples to {to}. Nothing here asks for the rank, and samplers don't apply to "
            "iterable data sets.",
        )


def _is_split(code: Code, home: ast.ClassDef) -> bool:
    """True if a class may divide its samples between ranks, by the words in it."""
    text = code.source_of(home)
    if "get_worker_info" in text and _BY_WORKER.search(text) and code.calls(home.name):
        return bool(_BY_RANK.search(text))
    return bool(_SPLITS.search(text))


def _made_by_rank(code: Code, home: ast.ClassDef) -> bool:
    return any(depends_on_rank(code, a) for call in code.calls(home.name) for a in (*call.args, *call.keywords))
