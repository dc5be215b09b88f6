"""Where logs are read: by processes here, or on a cluster of Dask or Ray. Each task makes the part of some logs.

A worker that dies has its task done again elsewhere; a part that is lost for good is named among what was not read.
What a task gives is a part as text, and a log that two parts hold counts once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from typing import Any, cast

from dtdebug.clean import clean
from dtdebug.errors import UsageError
from dtdebug.logs.opened import LogSource
from dtdebug.triage.names import Whose
from dtdebug.triage.part import Part, decode, encode

HERE = "processes"
_BATCH, _FEW = 64, 8 << 20
"""Logs that one task takes at once, and bytes below which one process is enough."""
_LOOK, _ALONE = 2.0, 60.0
"""Seconds between two looks whether a cluster has workers at all, and without any until its tasks are given up."""
_TASKS, _RETRIES = 128, 2
"""Tasks that a cluster is given at most, and how often one that failed is done again."""

Work = Callable[[Sequence[LogSource], Sequence[Whose]], bytes]
"""The task: some logs, and whose they are, to a part as text."""


def work(logs: Sequence[LogSource], whose: Sequence[Whose]) -> bytes:
    """The part of some logs, as text."""
    from dtdebug.triage.reduce import part_of

    return encode(part_of(logs, whose))


def parts(
    logs: Sequence[LogSource], whose: Sequence[Whose], engine: str = HERE, processes: int = 0, task: Work = work
) -> list[Part]:
    """The parts of all logs.

    Raises:
        UsageError: the engine is none, or its cluster cannot be reached.

    """
    kind, _, address = engine.partition("://")
    if engine != HERE and kind not in _ENGINES:
        raise UsageError(f"--engine {clean(engine)[:80]}: processes, dask://HOST:PORT or ray://HOST:PORT")
    if not logs:
        return []
    if engine == HERE:
        return _here(logs, whose, processes)
    size = max(1, min(_BATCH, -(-len(logs) // _TASKS)))
    cuts = [slice(i, i + size) for i in range(0, len(logs), size)]
    done = _ENGINES[kind](address, task, [(logs[cut], whose[cut]) for cut in cuts])
    return [
        decode(one, engine) if isinstance(one, bytes) else _lost(logs[cut], one)
        for cut, one in zip(cuts, done, strict=True)
    ]


def _here(logs: Sequence[LogSource], whose: Sequence[Whose], processes: int) -> list[Part]:
    from dtdebug.triage.reduce import part_of

    workers = processes or min(len(os.sched_getaffinity(0)), 16)
    size = sum(s.size for s in logs)
    if workers <= 1 or len(logs) <= 1 or (size < _FEW and not processes):
        return [part_of(logs, whose)]
    batch = max(1, min(_BATCH, -(-len(logs) // (workers * 4))))
    cuts = range(0, len(logs), batch)
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(part_of, [logs[i : i + batch] for i in cuts], [whose[i : i + batch] for i in cuts]))


def _lost(logs: Sequence[LogSource], why: Exception) -> Part:
    reason = clean(f"{type(why).__name__}: {why}".split("\n")[0])[:120]
    return Part(unread=[f"{s.name}: its part was lost on the cluster ({reason})" for s in logs])


Batches = Sequence[tuple[Sequence[LogSource], Sequence[Whose]]]
Done = Iterator[bytes | Exception]


class _Alone:
    """Whether a cluster has been without a worker for so long that none will come: it would wait for ever."""

    def __init__(self, workers: Callable[[], int]) -> None:
        self._workers = workers
        self._since: float | None = None
        self.lost = False

    def look(self) -> None:
        """One look; raises ConnectionError where it is so."""
        try:
            there = self._workers()
        except Exception:  # a scheduler that is gone fails in ways of its own
            there = 0
        now = time.monotonic()
        self._since = None if there else self._since if self._since is not None else now
        self.lost = self.lost or (self._since is not None and now - self._since > _ALONE)
        if self.lost:
            raise ConnectionError(f"no worker for {_ALONE:.0f} s")


def _waited(take: Callable[[Any], bytes | None], task: Any, alone: _Alone) -> bytes | Exception:
    """What a task gives, or why it gives nothing. `take` waits a little and gives None while it is not done."""
    try:
        while (done := take(task)) is None:
            alone.look()
    except Exception as error:  # whatever a worker meets: what it would have read is named
        return error
    return done


def _dask(address: str, task: Work, batches: Batches) -> Done:
    """On the cluster of a scheduler at that address.

    Dask gives the task of a worker that died to another one, up to its `allowed-failures`:
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
        alone = _Alone(lambda: len(client.nthreads()))

        def take(future: Any) -> bytes | None:
            try:
                done: bytes = future.result(timeout=_LOOK)
            except (distributed.TimeoutError, TimeoutError):
                if future.status != "pending":  # the task's own
                    raise
                return None
            return done

        for future in futures:
            yield _waited(take, future, alone)


def _call(task: Work, logs: Sequence[LogSource], whose: Sequence[Whose]) -> bytes:
    return task(logs, whose)


def _ray(address: str, task: Work, batches: Batches) -> Done:
    """On the cluster that Ray reaches at that address; `ray://auto` is the one of this host.

    Ray does the task of a worker that died again: https://docs.ray.io/en/latest/ray-core/fault_tolerance/tasks.html
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
        alone = _Alone(lambda: int(cast("Any", ray).cluster_resources().get("CPU", 0)))

        def take(ref: Any) -> bytes | None:
            ready, _ = ray.wait([ref], timeout=_LOOK)
            done: bytes | None = ray.get(ref) if ready else None
            return done

        for ref in refs:
            yield _waited(take, ref, alone)
    finally:
        if mine:
            ray.shutdown()


_ENGINES: dict[str, Callable[[str, Any, Batches], Done]] = {"dask": _dask, "ray": _ray}
