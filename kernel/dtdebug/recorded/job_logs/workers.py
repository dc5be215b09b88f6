"""Reads logs in local processes, or on a Dask or Ray cluster. Each task makes the part of some logs.

The task of a worker that dies is repeated elsewhere; the logs of a part that is lost for good are listed as not read.
A task returns a part as text, and a log in two parts counts once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module
from typing import Any, TypeVar, cast

from dtdebug.errors import UsageError
from dtdebug.privacy.sanitize import clean
from dtdebug.recorded.job_logs.part import TOO_LONG, Part, decode, encode
from dtdebug.recorded.job_logs.rank_from_path import LogOwner
from dtdebug.recorded.job_logs.reduce import Collector, NoCollector, part_of
from dtdebug.recorded.log_files.sources import LogSource
from dtdebug.storage import budget, command_timer

HERE = "processes"
_BATCH, _FEW = 64, 8 << 20
"""Logs per task, and total bytes below which one process is enough."""
_LOOK, _ALONE = 2.0, 60.0
"""Seconds between checks for workers of a cluster, and seconds without any worker until its tasks are abandoned."""
_TASKS, _RETRIES = 128, 2
"""Maximum number of tasks for a cluster, and number of retries of a failed task."""


C = TypeVar("C", bound=Collector)
Work = Callable[[Sequence[LogSource], Sequence[LogOwner]], bytes]
"""Task: some logs and their owners to a part as text."""


def work(logs: Sequence[LogSource], whose: Sequence[LogOwner]) -> bytes:
    """Return the part of some logs, as text."""
    return encode(part_of(logs, whose, NoCollector()))


def parts(  # noqa: PLR0917
    logs: Sequence[LogSource],
    whose: Sequence[LogOwner],
    engine: str = HERE,
    processes: int = 0,
    task: Work = work,
    collect: Callable[[], C] = NoCollector,  # type: ignore[assignment]
) -> list[tuple[Part, C]]:
    """Return the parts of all logs, each with what was collected while they were read.

    On a cluster nothing else is collected: the collectors only know of the logs.

    Raises:
        UsageError: the engine is unknown, or its cluster cannot be reached.

    """
    kind, _, address = engine.partition("://")
    if engine != HERE and kind not in _ENGINES:
        raise UsageError(f"--engine {clean(engine)[:80]}: processes, dask://HOST:PORT or ray://HOST:PORT")
    if not logs:
        return []
    if engine == HERE:
        return _here(logs, whose, processes, collect)
    size = max(1, min(_BATCH, -(-len(logs) // _TASKS)))
    cuts = [slice(i, i + size) for i in range(0, len(logs), size)]
    done = _ENGINES[kind](address, task, [(logs[cut], whose[cut]) for cut in cuts])
    found = []
    for cut, one in zip(cuts, done, strict=True):
        collector = collect()
        for log, owner in zip(logs[cut], whose[cut], strict=True):
            collector.reader(log, owner)
        part = decode(one, engine) if isinstance(one, bytes) else _lost_part(logs[cut], one)
        found.append((part, collector))
    return found


def _here(
    logs: Sequence[LogSource], whose: Sequence[LogOwner], processes: int, collect: Callable[[], C]
) -> list[tuple[Part, C]]:
    workers = processes or min(len(os.sched_getaffinity(0)), 16)
    size = sum(s.size for s in logs)
    if workers <= 1 or len(logs) <= 1 or (size < _FEW and not processes):
        return [_part_of(logs, whose, collect())]
    batch = max(1, min(_BATCH, -(-len(logs) // (workers * 4))))
    cuts = range(0, len(logs), batch)
    found = []
    with ProcessPoolExecutor(workers, initializer=budget.begin_share, initargs=(workers,)) as pool:
        running = [(i, pool.submit(_timed_part, logs[i : i + batch], whose[i : i + batch], collect())) for i in cuts]
        for i, future in running:
            try:
                found.append(future.result())
            except (BrokenProcessPool, MemoryError, command_timer.OverBudgetError) as error:
                found.append((_lost_part(logs[i : i + batch], error), collect()))
    return found


def _part_of(logs: Sequence[LogSource], whose: Sequence[LogOwner], collector: C) -> tuple[Part, C]:
    return part_of(logs, whose, collector), collector


def _timed_part(logs: Sequence[LogSource], whose: Sequence[LogOwner], collector: C) -> tuple[Part, C]:
    with command_timer.time_limit():
        return _part_of(logs, whose, collector)


_ENDED: dict[type[BaseException], str] = {
    BrokenProcessPool: "what read it was ended from outside",
    MemoryError: "takes too much memory, or one read with it",
    command_timer.OverBudgetError: TOO_LONG,
}


def _lost_part(logs: Sequence[LogSource], why: BaseException) -> Part:
    reason = _ENDED.get(type(why))
    if reason is None:
        first = clean(f"{type(why).__name__}: {why}".split("\n")[0])[:120]
        reason = f"its part was lost on the cluster ({first})"
    return Part(unread=[f"{s.name}: {reason}" for s in logs])


Batches = Sequence[tuple[Sequence[LogSource], Sequence[LogOwner]]]
Done = Iterator[bytes | Exception]


class _WorkerWatch:
    """Detects a cluster that has had no worker for so long that its tasks would wait forever."""

    def __init__(self, workers: Callable[[], int]) -> None:
        self._workers = workers
        self._since: float | None = None
        self.lost = False

    def look(self) -> None:
        """Check once; raises ConnectionError if there was no worker for too long."""
        try:
            there = self._workers()
        except Exception:  # a scheduler that has gone fails in many ways
            there = 0
        now = time.monotonic()
        self._since = None if there else self._since if self._since is not None else now
        self.lost = self.lost or (self._since is not None and now - self._since > _ALONE)
        if self.lost:
            raise ConnectionError(f"no worker for {_ALONE:.0f} s")


def _await_task(take: Callable[[Any], bytes | None], task: Any, alone: _WorkerWatch) -> bytes | Exception:
    """Return the result of a task, or its exception. `take` blocks briefly and returns None until the task is done."""
    try:
        while (done := take(task)) is None:
            alone.look()
    except Exception as error:  # whatever a worker raises: the logs that it would have read are named
        return error
    return done


def _dask(address: str, task: Work, batches: Batches) -> Done:
    """Run the tasks on the Dask cluster with a scheduler at that address.

    Dask moves the task of a dead worker to another one, up to `allowed-failures` times:
    https://raw.githubusercontent.com/dask/dask-examples/gh-pages/resilience.ipynb
    """
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise UsageError("--engine dask://: needs `pip install distributed`") from None
    if not address:
        raise UsageError("--engine dask://: the address of a scheduler is missing, as in dask://10.0.0.1:8786")
    try:
        client = distributed.Client(f"tcp://{address}", timeout="20s")
    except (OSError, TimeoutError, ValueError) as error:
        raise UsageError(f"--engine dask://{clean(address)[:80]}: {clean(str(error))[:120]}") from None
    with client:
        futures = [client.submit(task, *batch, pure=False, retries=_RETRIES) for batch in batches]
        alone = _WorkerWatch(lambda: len(client.nthreads()))

        def take(future: Any) -> bytes | None:
            try:
                done: bytes = future.result(timeout=_LOOK)
            except (distributed.TimeoutError, TimeoutError):
                if future.status == "error":  # the task's own; one that has just finished is asked for again
                    raise future.exception(timeout=_LOOK) from None
                return None
            return done

        for future in futures:
            yield _await_task(take, future, alone)


def _call(task: Work, logs: Sequence[LogSource], whose: Sequence[LogOwner]) -> bytes:
    return task(logs, whose)


def _ray(address: str, task: Work, batches: Batches) -> Done:
    """Run the tasks on the Ray cluster at that address; `ray://auto` is this host's cluster.

    Ray repeats the task of a dead worker: https://docs.ray.io/en/latest/ray-core/fault_tolerance/tasks.html
    """
    try:
        import ray
    except ImportError:
        raise UsageError("--engine ray://: needs `pip install ray`") from None
    if not address:
        raise UsageError(
            "--engine ray://: the address of a cluster is missing, as in ray://10.0.0.1:10001 or ray://auto"
        )
    mine = not ray.is_initialized()
    try:
        if mine:
            ray.init(address="auto" if address == "auto" else f"ray://{address}", log_to_driver=False, logging_level=40)
    except (ConnectionError, OSError, ValueError) as error:
        raise UsageError(f"--engine ray://{clean(address)[:80]}: {clean(str(error))[:120]}") from None
    try:
        remote = ray.remote(max_retries=_RETRIES)(_call)
        refs = [remote.remote(task, *batch) for batch in batches]
        alone = _WorkerWatch(lambda: int(cast("Any", ray).cluster_resources().get("CPU", 0)))

        def take(ref: Any) -> bytes | None:
            ready, _ = ray.wait([ref], timeout=_LOOK)
            done: bytes | None = ray.get(ref) if ready else None
            return done

        for ref in refs:
            yield _await_task(take, ref, alone)
    finally:
        if mine:
            ray.shutdown()


_ENGINES: dict[str, Callable[[str, Any, Batches], Done]] = {"dask": _dask, "ray": _ray}
