"""`WebDataset` without a node splitter, in programs of several ranks."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.ranks_seen import starts_ranks
from dtdebug_taxonomy.checks.shared.stepping import in_step
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.text import Span

_ONE = {None, 1, "1", "auto"}


def check(code: Code) -> Iterator[Hit]:
    """Report the call."""
    calls = code.calls("webdataset.WebDataset")
    if not calls or "split_by_node" in code.text or not (in_step(code) or starts_ranks(code) or _trains_on_many(code)):
        return
    for call in calls:
        given = {k.arg for k in call.keywords}
        if code.has_unpacking(call) or given & {"nodesplitter", "resampled"} or code.role == "test":
            continue
        owner, _, _ = code.source_of(call.func).rpartition(".")
        end = code.span(call).end - 1
        comma = "" if code.text[:end].rstrip().endswith((",", "(")) else ", "
        edit = Edit(Span(end, end), f"{comma}nodesplitter={owner}.split_by_node")
        yield Hit(
            code.span(call),
            "Without nodesplitter this fails where there are several ranks, or gives each of them all shards.",
            Fix("Split the shards between the ranks", (edit,)) if owner else None,
        )


def _trains_on_many(code: Code) -> bool:
    """True if a Lightning Trainer uses several devices."""
    trainers = code.calls("lightning.pytorch.Trainer", "pytorch_lightning.Trainer", "lightning.Trainer")
    return any(code.constant(d) not in _ONE for c in trainers if (d := code.argument(c, "devices")) is not None)
