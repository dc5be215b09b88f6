"""Observes and changes PyTorch's data loaders."""

from __future__ import annotations

import copy
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

from dtdebug.experiments.isolate.inside.record_writer import LONGER, PartNotes

_DEPTH = 8


def patch(module: ModuleType, notes: PartNotes) -> None:
    """Patch `DataLoader` to observe and change its options."""
    kind: Any = module.DataLoader
    original, iterate = kind.__init__, kind.__iter__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - takes its place
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError:  # the original raises it
            original(self, *args, **kwargs)
            return
        given = bound.arguments
        _change(given, notes)
        original(*bound.args, **bound.kwargs)
        _last_batch(self, given, notes)

    @functools.wraps(iterate)
    def __iter__(self: Any) -> Any:  # noqa: N807 - takes its place
        steps = _length(self)
        if steps > 1:
            notes.note("saw", "data", steps)
            if notes.wants("data.one-batch"):
                return _one_batch(self, iterate, steps, notes)
        return iterate(self)

    kind.__init__, kind.__iter__ = __init__, __iter__
    values(module, notes)


def values(module: ModuleType, notes: PartNotes) -> None:
    """Patch the loaders' iterators: note the shapes of batches, and replace their values by made-up ones if wanted."""
    kind: Any = module._BaseDataLoaderIter  # noqa: SLF001 - the iterators of all loaders
    original = kind.__next__

    @functools.wraps(original)
    def __next__(self: Any) -> Any:  # noqa: N807 - takes its place
        batch = original(self)
        if not (shapes := [f"{tuple(t.shape)} {t.dtype}" for t in _floats(batch)]):
            return batch
        notes.note("saw", "data.values", ", ".join(shapes[:8]))
        if not notes.wants("data.made-up"):
            return batch
        notes.note("set", "data.made-up")
        return _made_up(batch)

    kind.__next__ = __next__


def _floats(batch: Any, depth: int = 0) -> Iterator[Any]:
    """Yield the floating-point tensors of a batch."""
    torch: Any = sys.modules["torch"]
    if isinstance(batch, torch.Tensor) and batch.is_floating_point():
        yield batch
    elif isinstance(batch, Mapping | list | tuple) and depth < _DEPTH:
        for part in batch.values() if isinstance(batch, Mapping) else batch:
            yield from _floats(part, depth + 1)


def _made_up(batch: Any) -> Any:
    """Return a copy of the batch with random values, without consuming the program's own generator."""
    torch: Any = sys.modules["torch"]
    chance = torch.Generator().manual_seed(0)
    batch = copy.deepcopy(batch)
    for tensor in _floats(batch):
        tensor.copy_(torch.rand(tensor.shape, generator=chance))
    return batch


def _change(given: dict[str, Any], notes: PartNotes) -> None:
    if given.get("num_workers"):
        notes.note("saw", "loader.workers", given["num_workers"])
        if given.get("persistent_workers"):
            notes.note("saw", "loader.persistent")
        if given.get("timeout"):
            notes.note("saw", "loader.timeout", given["timeout"])
            if notes.wants("loader.timeout"):
                given["timeout"] *= LONGER
                notes.note("set", "loader.timeout", given["timeout"])
        _start(given, notes)
        if notes.wants("loader.workers"):
            given["num_workers"] = 0
            for name in ("persistent_workers", "prefetch_factor", "timeout", "multiprocessing_context"):
                given.pop(name, None)  # they are rejected without workers
            notes.note("set", "loader.workers", 0)
        elif notes.wants("loader.persistent") and given.pop("persistent_workers", False):
            notes.note("set", "loader.persistent")
    if given.get("pin_memory"):
        notes.note("saw", "loader.pin")
        if notes.wants("loader.pin"):
            given["pin_memory"] = False
            notes.note("set", "loader.pin")


def _start(given: dict[str, Any], notes: PartNotes) -> None:
    """Observe how the workers are started, spawned or forked; fork them if wanted."""
    context: Any = given.get("multiprocessing_context")
    method = context or sys.modules["multiprocessing"].get_start_method(allow_none=True)
    if (method if isinstance(method, str) else method and method.get_start_method()) in ("spawn", "forkserver"):
        notes.note("saw", "loader.spawned")
        if notes.wants("loader.start"):
            given["multiprocessing_context"] = "fork"
            notes.note("set", "loader.start", "fork")


def _last_batch(loader: Any, given: dict[str, Any], notes: PartNotes) -> None:
    """Drop a smaller last batch, unless nothing would be left."""
    batches: Any = getattr(loader, "batch_sampler", None)
    size = getattr(batches, "batch_size", None)
    if type(batches).__name__ != "BatchSampler" or type(size) is not int or size < 2 or batches.drop_last:
        return
    samples = _length(batches.sampler)
    if samples % size == 0:
        return
    notes.note("saw", "loader.last-batch", samples % size)
    if notes.wants("loader.last-batch") and samples > size:
        batches.drop_last = True
        notes.note("set", "loader.last-batch", samples // size)


def _length(value: Any) -> int:
    """Return the length, or 0 if it has none."""
    try:
        return len(value)
    except Exception:
        return 0


def _one_batch(loader: Any, iterate: Callable[[Any], Iterator[Any]], steps: int, notes: PartNotes) -> Iterator[Any]:
    """Yield copies of the first batch for as many steps as usual; copies, since programs change batches in place."""
    first = next(iterate(loader))
    for step in range(steps):
        if step:
            notes.note("set", "data.one-batch")
        yield copy.deepcopy(first)
