"""Reads ipyparallel engines: a free one reports its own state; a stuck one is inspected from outside.

A stuck engine runs no second task. Its process is known from the free engines' reports, made as early as `reach` is
called, or found by the key of the client's session, which the engines on this machine were given.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import psutil

from dtdebug.live.probe.adapters import Reach, inside
from dtdebug.live.probe.deadline_threads import begin, until
from dtdebug.live.probe.processes import variables
from dtdebug.live.probe.pyspy import observe_pid
from dtdebug.storage.untrusted import tidy
from dtdebug_taxonomy.model.ranks import RankState

_FIRST = 3.0
"""Seconds to ask the engines for their identity."""


def reach(client: Any) -> Reach:
    """Return a reader of an `ipyparallel.Client`'s engines; best called while none is stuck, so that all are known."""
    known: dict[int, RankState] = {}

    def look(timeout: float) -> Sequence[RankState]:
        deadline = time.monotonic() + timeout
        free, stuck = _by_state(client)
        asked = {engine: client[engine].apply_async(inside) for engine in free}
        answers = until(begin([partial(_answer, asked[e], deadline) for e in free], deadline), deadline)
        fresh = {engine: state for engine, state in zip(free, answers, strict=True) if state is not None}
        known.update(fresh)
        silent = [*stuck, *(engine for engine in free if engine not in fresh)]
        pids = {engine: known[engine].pid for engine in silent if engine in known}
        pids |= _rest(client, [e for e in silent if e not in pids], {state.pid for state in known.values()})
        tasks = [partial(_outside, engine, pids.get(engine), known.get(engine)) for engine in silent]
        looks = until(begin(tasks, deadline), deadline)
        states = fresh | {
            e: s or _unseen(e, known.get(e), "no time was left") for e, s in zip(silent, looks, strict=True)
        }
        return [_add_engine(states[engine], engine) for engine in sorted(states)]

    look(_FIRST)
    return look


def _by_state(client: Any) -> tuple[list[int], list[int]]:
    """Return (free, busy) engines: the hub's queues answer whatever the engines do."""
    queues: Mapping[Any, Any] = client.queue_status(verbose=False)
    engines = [engine for engine in queues if isinstance(engine, int)]
    busy = [e for e in engines if queues[e].get("queue", 0) or queues[e].get("tasks", 0)]
    return [e for e in engines if e not in busy], busy


def _answer(result: Any, deadline: float) -> RankState:
    raw = result.get(timeout=max(0.1, min(1.5, deadline - time.monotonic() - 0.5)))
    return msgspec.structs.replace(msgspec.json.decode(raw, type=RankState), roads={"ipyparallel": "ok"})


def _rest(client: Any, engines: Sequence[int], known: set[int | None]) -> dict[int, int | None]:
    """Return the process of the remaining engine, if exactly one engine and one process remain."""
    left = [pid for pid in processes(client) if pid not in known]
    return {engines[0]: left[0]} if len(engines) == len(left) == 1 else {}


def processes(client: Any) -> list[int]:
    """Return the process ids of the client's engines on this machine."""
    key = client.session.key.decode()
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        is_engine = "ipyparallel.engine" in words or any(word.endswith("ipengine") for word in words[:2])
        if is_engine and key and key in variables(process.pid).get("IPP_CONNECTION_INFO", ""):
            found.append(process.pid)
    return found


def _outside(engine: int, pid: int | None, known: RankState | None) -> RankState:
    if pid is None:
        return _unseen(engine, known, "is busy and its process is not known")
    state = observe_pid(pid)
    if known is not None:
        state = msgspec.structs.replace(
            state,
            rank=known.rank,
            world_size=known.world_size,
            local_rank=known.local_rank,
            environment=known.environment,
        )
    return msgspec.structs.replace(state, roads={"ipyparallel": "is busy"} | state.roads)


def _unseen(engine: int, known: RankState | None, why: str) -> RankState:
    return msgspec.structs.replace(known or RankState(), stack=(), pending=None, roads={"ipyparallel": why})


def _add_engine(state: RankState, engine: int) -> RankState:
    return tidy(msgspec.structs.replace(state, facts=state.facts | {"engine": str(engine)}))
