"""Reads Dask workers: by their event loop, which answers while a task is stuck in a thread, else by their nanny."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from dtdebug.live.probe.adapters import Reach, inside
from dtdebug.live.probe.deadline_threads import begin, until
from dtdebug.storage.untrusted import tidy
from dtdebug_taxonomy.model.ranks import RankState

_OWN_SHARE = 0.4
"""Share of the time after which the worker counts as silent."""


def reach(client: Any) -> Reach:
    """Return a reader of the workers of a `dask.distributed.Client`, all in parallel."""

    def look(timeout: float) -> Sequence[RankState]:
        began = time.monotonic()
        workers = list(client.scheduler_info(n_workers=-1)["workers"])
        states = until(
            begin([partial(_one, client, at, began, timeout) for at in workers], began + timeout), began + timeout
        )
        return [state or _silent(at, timeout) for at, state in zip(workers, states, strict=True)]

    return look


def _one(client: Any, address: str, began: float, timeout: float) -> RankState:
    roads, facts = {}, {"worker": address}
    ways = (("dask worker", _in_worker, False, _OWN_SHARE), ("dask nanny", _in_nanny, True, 1.0))
    for road, function, nanny, share in ways:
        asked = time.monotonic()
        try:
            left = max(0.1, began + share * timeout - asked)
            answer = client.run(function, workers=[address], nanny=nanny, callback_timeout=left)
            state = msgspec.json.decode(answer[address], type=RankState)
            roads[road] = "ok"
            held = nanny and "GIL" in state.facts
            return tidy(
                msgspec.structs.replace(
                    state, roads=roads | state.roads, facts=state.facts | facts, gil_held=state.gil_held or held
                )
            )
        except Exception as error:
            roads[road] = f"{str(error) or type(error).__name__} ({time.monotonic() - asked:.2f} s)"
    return RankState(roads=roads, facts=facts)


def _silent(address: str, timeout: float) -> RankState:
    return RankState(roads={"dask worker": f"no answer in {timeout:g} s"}, facts={"worker": address})


def _in_worker(dask_worker: Any = None) -> bytes:
    """Return the state from the worker's event loop."""
    return inside(tuple(getattr(dask_worker, "active_threads", ())))


def _in_nanny(dask_worker: Any = None) -> bytes:
    """Return the state from the worker's nanny, a separate process."""
    from dtdebug.live.probe.pyspy import observe_pid

    return msgspec.json.encode(observe_pid(dask_worker.pid, thread="Dask-"))
