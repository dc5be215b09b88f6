"""Examines many files, on all processors if it is worthwhile."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

from dtdebug.check.examine_file import ExaminedFile, Selection, examine_file, project
from dtdebug.errors import UsageError
from dtdebug.storage import budget, command_timer
from dtdebug_taxonomy.source.python.project import Project

_FEW = 64
"""Maximum number of files for which starting processes is not worthwhile."""
_BATCH = 32
"""Number of files that a process gets at a time."""
_COLLECT = 700_000
"""New objects after which a process collects garbage, between two files: syntax trees are in use while one is read."""


def examine_all(
    paths: Iterable[Path],
    choice: Selection,
    jobs: int = 0,
    progress: Callable[[int], None] = lambda _: None,
    *,
    keep: bool = False,
) -> Iterator[ExaminedFile]:
    """Yield the findings per file, in the order of the paths; `progress` is called with the number of finished files.

    `jobs` is the number of processes, 0 for as many as this process may use. With `keep`, results of unchanged
    files are read from the cache in the state folder, and new results are stored there.
    """
    listed = list(paths)
    if not keep or choice.fix or len(listed) <= _FEW:
        yield from _examine(listed, choice, jobs, progress)
        return
    from dtdebug.check.result_cache import ResultCache

    kept = ResultCache(choice)
    known = [kept.find(path) for path in listed]
    missing = [path for path, found in zip(listed, known, strict=True) if found is None]
    done = len(listed) - len(missing)
    with closing(_examine(missing, choice, jobs, lambda n: progress(done + n))) as fresh:
        for path, found in zip(listed, known, strict=True):
            if found is not None:
                yield found
            else:
                examined = next(fresh)
                kept.add(path, examined)
                yield examined
    kept.write()


def _examine(
    listed: Sequence[Path], choice: Selection, jobs: int, progress: Callable[[int], None]
) -> Generator[ExaminedFile, None, None]:
    jobs = jobs or _processors()
    if len(listed) <= _FEW or jobs == 1:
        around = project()
        for done, path in enumerate(listed, 1):
            yield examine_file(path, choice, around)
            progress(done)
        return
    from dtdebug_taxonomy.checks import load
    from dtdebug_taxonomy.knowledge.loader import load as knowledge

    for check in load().values():  # before the processes are forked, so that they share it
        _ = check.function
    knowledge()
    done = 0
    how = "fork" if sys.platform.startswith("linux") else "spawn"
    with ProcessPoolExecutor(jobs, mp_context=get_context(how), initializer=_begin, initargs=(jobs,)) as pool:
        try:
            for batch in pool.map(_examine_batch, _batches(listed), [choice] * (len(listed) // _BATCH + 1)):
                yield from batch
                done += len(batch)
                progress(done)
        except BrokenProcessPool:
            raise UsageError("check: a process that reads files was ended from outside; try --jobs 1") from None
        except BaseException:  # also of a caller that stops reading: no thread of the pool outlives this call
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _batches(paths: Sequence[Path]) -> Iterator[list[Path]]:
    rest = iter(paths)
    while batch := list(islice(rest, _BATCH)):
        yield batch


_around: Project | None = None
"""Project of this process; each module is parsed once for all files that import it."""


def _begin(jobs: int) -> None:
    global _around
    budget.begin_share(jobs)
    _around = project()
    gc.disable()
    gc.freeze()


def _examine_batch(paths: Sequence[Path], choice: Selection) -> list[ExaminedFile]:
    examined = []
    for path in paths:
        with command_timer.time_limit():
            examined.append(examine_file(path, choice, _around))
        if gc.get_count()[0] > _COLLECT:
            gc.collect()
    return examined
