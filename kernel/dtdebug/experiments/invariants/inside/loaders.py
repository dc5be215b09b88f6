"""Notes the batches of this process's loaders, their order, and the random state of their data sets."""

from __future__ import annotations

import functools
import random
import sys
import weakref
import zlib
from types import ModuleType
from typing import Any

from dtdebug.experiments.invariants.inside import fingerprints
from dtdebug.experiments.invariants.inside.record_writer import WatchNotes, guard_method
from dtdebug.experiments.invariants.inside.steps import Steps
from dtdebug_taxonomy.stacks.frames import is_library

_EPOCHS, _FETCHES, _BEGUN = 2, 4, 16
"""Epochs, and batches of each, whose random state is noted; epochs whose first batch is noted."""
_ONCE = ("RandomSampler", "SequentialSampler", "DistributedSampler")
"""Samplers that draw each sample once."""


class _Loader:
    def __init__(self, index: int, site: int, made: int, place: tuple[str, int]) -> None:
        self.index, self.site, self.made, self.place = index, site, made, place
        self.epochs = 0
        self.batches = 0
        self.backwards = 0
        self.shuffles = self.whole = False
        self.of = self.workers = 0
        self.data = 0
        """Number of the data set; 0 if it is unknown."""


class Loaders:
    """Observer of this process's loaders and samplers."""

    def __init__(self, notes: WatchNotes, steps: Steps) -> None:
        self.notes, self._steps = notes, steps
        self._loaders: weakref.WeakKeyDictionary[Any, _Loader] = weakref.WeakKeyDictionary()
        self._samplers: weakref.WeakKeyDictionary[Any, list[int]] = weakref.WeakKeyDictionary()
        self._data: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._sets = 0
        self._current: _Loader | None = None
        self._fetches = 0
        self._epochs = 0

    def patch(self, module: ModuleType) -> None:
        """Wrap the loader of `torch.utils.data.dataloader` and its iterators."""
        kind, base = module.DataLoader, module._BaseDataLoaderIter  # noqa: SLF001 - what all iterators are made of
        make, begin, following = kind.__init__, kind.__iter__, base.__next__
        loaders = self

        @functools.wraps(make)
        def making(self: Any, *args: Any, **kwargs: Any) -> None:
            make(self, *args, **kwargs)
            loaders._makes(self, sys._getframe(1))  # noqa: SLF001 - documented

        @functools.wraps(begin)
        def beginning(self: Any) -> Any:
            loaders._begins(self, sys._getframe(1))  # noqa: SLF001 - documented
            found = begin(self)
            loaders._mark_iterator(self, found)
            return found

        @functools.wraps(following)
        def giving(self: Any) -> Any:
            try:
                batch = following(self)
            except StopIteration:
                loaders._ends(self)
                raise
            loaders._gives(self, batch)
            return batch

        kind.__init__, kind.__iter__, base.__next__ = making, beginning, giving
        for fetcher in (module._utils.fetch._MapDatasetFetcher, module._utils.fetch._IterableDatasetFetcher):  # noqa: SLF001
            self._patch_fetch(fetcher)

    def patch_sampler(self, module: ModuleType) -> None:
        """Wrap the sampler that divides data between ranks."""
        kind = module.DistributedSampler
        begin = kind.__iter__

        @functools.wraps(begin)
        def beginning(sampler: Any) -> Any:
            self._orders(sampler)
            return begin(sampler)

        kind.__iter__ = beginning

    @guard_method
    def _orders(self, sampler: Any) -> None:
        begun = self._samplers.setdefault(sampler, [len(self._samplers)])
        if len(begun) > 64:
            return
        begun.append(sampler.epoch)
        self.notes.put(
            "order",
            i=begun[0],
            n=len(begun) - 1,
            epoch=sampler.epoch,
            shuffle=bool(sampler.shuffle),
            seed=getattr(sampler, "seed", 0),
            replicas=sampler.num_replicas,
            rank=sampler.rank,
            samples=len(sampler),
            backwards=self._steps.backwards,
            s=self._steps.now,
            loader=self._current.index if self._current is not None else -1,
            e=self._current.epochs if self._current is not None else 0,
            data=self._current.data if self._current is not None else 0,
            site=self._current.site if self._current is not None else 0,
        )
        self.notes.flush()

    @guard_method
    def _makes(self, loader: Any, frame: Any) -> None:
        while frame is not None and is_library(frame.f_code.co_filename):
            frame = frame.f_back
        place = (frame.f_code.co_filename, frame.f_lineno or 0) if frame is not None else ("", 0)
        self._loaders[loader] = _Loader(len(self._loaders), 0, self.notes.site(frame), place)

    @guard_method
    def _begins(self, loader: Any, frame: Any) -> None:
        known = self._loaders.get(loader)
        if known is None:
            known = self._loaders[loader] = _Loader(len(self._loaders), 0, 0, ("", 0))
        known.site = known.site or self.notes.site(frame)
        known.shuffles = type(getattr(loader, "sampler", None)).__name__ == "RandomSampler"
        known.whole, streams = _gives_once(loader), _streams(loader)
        known.workers = loader.num_workers if streams else 0
        known.of = 0 if streams else _number(loader)  # torch warns if the length of a stream was wrong
        known.epochs += 1
        known.data = self._number_of(loader.dataset)
        known.batches = 0
        known.backwards = self._steps.backwards
        self._current, self._epochs = known, known.epochs

    def _number_of(self, data: Any) -> int:
        """Return a number that no other data set gets, even once this one is gone."""
        try:
            if data not in self._data:
                self._sets += 1
                self._data[data] = self._sets
            return self._data[data]
        except TypeError:  # a list, say
            return 0

    @guard_method
    def _mark_iterator(self, loader: Any, iterator: Any) -> None:
        try:
            iterator._dtdebug = weakref.ref(self._loaders[loader])  # noqa: SLF001 - a mark of ours on it
        except (AttributeError, KeyError):  # an iterator without attributes
            return

    @guard_method
    def _gives(self, iterator: Any, batch: Any) -> None:
        mark = getattr(iterator, "_dtdebug", None)
        known = mark() if mark is not None else None
        if known is None:
            return
        known.batches += 1
        wanted = known.epochs <= (_BEGUN if known.batches == 1 else _EPOCHS)
        if wanted and self.notes.looks(known.batches):
            self.notes.put(
                "batch", i=known.index, e=known.epochs, n=known.batches, h=fingerprints.digest(batch),
                site=known.site, made=known.made, s=self._steps.now, b=self._steps.backwards,
                shuffles=known.shuffles, workers=known.workers, of=known.of,
                rows=fingerprints.rows(batch) if known.whole and known.epochs <= _EPOCHS else [],
            )  # fmt: skip

    @guard_method
    def _ends(self, iterator: Any) -> None:
        mark = getattr(iterator, "_dtdebug", None)
        known = mark() if mark is not None else None
        if known is None or known.epochs > 64:
            return
        trained = self._steps.backwards - known.backwards
        self.notes.put(
            "epoch", i=known.index, e=known.epochs, n=known.batches, trained=trained, s=self._steps.now, site=known.site
        )
        self.notes.flush()

    def _patch_fetch(self, kind: Any) -> None:
        fetch = kind.fetch
        loaders = self

        @functools.wraps(fetch)
        def looking(self: Any, index: Any) -> Any:
            before = loaders._random() if loaders._wants() else None
            batch = fetch(self, index)
            if before is not None:
                loaders._note_fetch(index, before)
            return batch

        kind.fetch = looking

    def _wants(self) -> bool:
        self._fetches += 1
        return not self.notes.dead and self._epochs <= _EPOCHS and self._fetches <= 2 * _FETCHES

    @guard_method
    def _note_fetch(self, index: Any, before: dict[str, str]) -> None:
        after = self._random()
        worker = sys.modules["torch.utils.data._utils.worker"].get_worker_info()
        self.notes.put(
            "fetch",
            w=worker.id if worker is not None else -1,
            e=self._epochs,
            n=self._fetches,
            index=zlib.crc32(repr(index).encode()),
            size=len(index) if isinstance(index, list) and index[:1] != [None] else 0,
            before={name: state for name, state in before.items() if after.get(name) != state},
            file=self._current.place[0] if self._current is not None else "",
            line=self._current.place[1] if self._current is not None else 0,
            s=self._steps.now,
        )
        if worker is not None:  # a worker ends without exit handlers
            self.notes.flush()

    def _random(self) -> dict[str, str]:
        """Return hashes of the states of the generators that a data set may use."""
        torch: Any = sys.modules["torch"]
        found = {
            "torch": f"{zlib.crc32(torch.get_rng_state().numpy().tobytes()):08x}",
            "random": f"{hash(random.getstate()[1]) & 0xFFFFFFFF:08x}",
        }
        numpy: Any = sys.modules.get("numpy")
        if numpy is not None and hasattr(numpy, "random"):
            _, keys, place, *_ = numpy.random.get_state()
            found["numpy"] = f"{zlib.crc32(keys.tobytes(), place):08x}"
        return found


def _streams(loader: Any) -> bool:
    return isinstance(loader.dataset, sys.modules["torch"].utils.data.IterableDataset)


def _number(loader: Any) -> int:
    """Return the batches of an epoch, or 0 if a custom sampler does not define them."""
    try:
        return len(loader)
    except Exception:  # any exception from user code
        return 0


def _gives_once(loader: Any) -> bool:
    """True if the sampler shows that no sample occurs twice in an epoch."""
    if _streams(loader):
        return True
    batches = type(loader.batch_sampler).__name__
    sampler = loader.sampler
    return (
        batches in ("BatchSampler", "BatchSamplerShard", "NoneType")
        and any(kind.__name__ in _ONCE for kind in type(sampler).__mro__)
        and not getattr(sampler, "replacement", False)
    )
