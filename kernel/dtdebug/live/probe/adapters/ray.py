"""Reads Ray workers from outside: directly on this node, and by a task without CPU on each other node."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
import psutil

from dtdebug.live.probe.adapters import Reach
from dtdebug.live.probe.deadline_threads import begin, until
from dtdebug.live.probe.pyspy import observe_pid
from dtdebug.storage.untrusted import tidy
from dtdebug_taxonomy.model.ranks import RankState

_EACH = 2.0
"""Maximum seconds for one worker."""

_NO_WORK = ("ray::IDLE", "ray::DashboardAgent", "ray::RuntimeEnvAgent")


def reach(ray: Any) -> Reach:
    """Return a reader of the workers of the cluster that the module `ray` is connected to."""

    def look(timeout: float) -> Sequence[RankState]:
        deadline = time.monotonic() + timeout
        nodes = [node for node in ray.nodes() if node.get("Alive")]
        answers = until(begin([partial(_node, ray, node, deadline) for node in nodes], deadline), deadline)
        late = [_silent(node, f"no answer in {timeout:g} s") for node in nodes]
        return [state for answer, missed in zip(answers, late, strict=True) for state in (answer or missed)]

    return look


def _node(ray: Any, node: dict[str, Any], deadline: float) -> list[RankState]:
    raylet = _raylet(node)
    if raylet is not None:
        return [tidy(state) for state in msgspec.json.decode(workers(raylet), type=list[RankState])]
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
    task = ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=there)(workers)
    began = time.monotonic()
    answer = task.remote()
    try:
        raw = ray.get(answer, timeout=max(0.1, deadline - began - 0.2))
        states = msgspec.json.decode(raw, type=list[RankState])
    except Exception as error:
        ray.cancel(answer, force=False)
        return _silent(node, f"{str(error) or type(error).__name__} ({time.monotonic() - began:.2f} s)")
    return [tidy(msgspec.structs.replace(state, roads={"ray task": "ok"} | state.roads)) for state in states]


def _silent(node: dict[str, Any], why: str) -> list[RankState]:
    return [RankState(host=str(node.get("NodeManagerHostname", "")), roads={"ray task": why.splitlines()[0][:300]})]


def _raylet(node: dict[str, Any]) -> int | None:
    """Return the raylet of a node, if it runs on this machine."""
    name = str(node.get("RayletSocketName", ""))
    for process in psutil.process_iter(["name", "cmdline"]):
        if process.info["name"] == "raylet" and any(name and name in word for word in process.info["cmdline"] or ()):
            return int(process.pid)
    return None


def workers(raylet: int | None = None) -> bytes:
    """Return the busy workers of a raylet, by default this process's, as JSON; also run on other nodes."""
    states = []
    for process in psutil.Process(raylet or os.getppid()).children():
        try:
            title = " ".join(process.cmdline())[:200].strip()
        except psutil.Error:
            continue
        if process.pid != os.getpid() and title.startswith("ray::") and not title.startswith(_NO_WORK):
            state = observe_pid(process.pid, _EACH)
            states.append(msgspec.structs.replace(state, facts=state.facts | {"worker": title}))
    return msgspec.json.encode(states)
