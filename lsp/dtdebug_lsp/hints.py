"""Inlay hints for numbers that users otherwise compute by hand, if all their inputs are known."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from dtdebug_lsp.documents import Document
from dtdebug_lsp.positions import Positions
from dtdebug_taxonomy.checks.shared.names import LOADER, SAMPLER
from dtdebug_taxonomy.source.config.document import Config
from dtdebug_taxonomy.source.config.tree import Node, number
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.text import Span

_BATCH, _MICRO, _STEPS = "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"
_SPAWN = {"torch.multiprocessing.spawn": ("nprocs", 2), "accelerate.notebook_launcher": ("num_processes", 2)}


def hints(document: Document, positions: Positions, where: types.Range) -> list[types.InlayHint]:
    """Return the hints in a range."""
    shown = positions.span(document.text, where)
    source = document.source
    if isinstance(source, Config):
        found = _deepspeed_hints(source)
    elif isinstance(source, Code):
        found = _loaders(source)
    else:
        return []
    return [
        types.InlayHint(positions.position(document.text, at.end), label, tooltip=tooltip, padding_left=True)
        for at, label, tooltip in found
        if shown.start <= at.end <= shown.end
    ]


def _deepspeed_hints(config: Config) -> Iterator[tuple[Span, str, str]]:
    """Yield the unknown part of batch = micro batch x accumulation steps x ranks."""
    for root in config.roots:
        batch, micro, steps = (_whole(root, key) for key in (_BATCH, _MICRO, _STEPS))
        if micro is None or steps is None:
            continue
        each = micro * steps
        if batch is None:
            entry = root.entry(_MICRO)
            if entry and steps > 1:
                yield entry.node.span, f"x {steps} = {each} per rank", "samples of one rank for a step of the optimizer"
        elif each and batch % each == 0 and (entry := root.entry(_BATCH)):
            ranks = batch // each
            yield entry.node.span, f"= {micro} x {steps} x {ranks} ranks", "micro batch x accumulation steps x ranks"


def _whole(root: Node, key: str) -> int | None:
    value = number(root.get(key))
    return value if isinstance(value, int) and value > 0 else None


def _loaders(code: Code) -> Iterator[tuple[Span, str, str]]:
    """Yield the batch size over all ranks, if the program itself sets their number."""
    ranks = {
        count
        for name, (keyword, place) in _SPAWN.items()
        for call in code.calls(name)
        for count in [code.constant(code.argument(call, keyword, place))]
    }
    known = ranks.pop() if len(ranks) == 1 else None
    if not isinstance(known, int) or known < 2:
        return
    for loader in code.calls(LOADER):
        size = code.argument(loader, "batch_size", 1)
        each = code.constant(size)
        if size is not None and isinstance(each, int) and code.is_made_by(code.argument(loader, "sampler"), SAMPLER):
            yield code.span(size), f"x {known} ranks = {each * known}", "samples of all ranks for a step"
