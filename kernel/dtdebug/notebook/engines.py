"""Ranks on an engine that the notebook is connected to: ipyparallel, Dask, Ray. None is imported or started here."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

from dtdebug.probe.adapters import Reach
from dtdebug.probe.in_parallel import begin, until
from dtdebug_taxonomy.ranks import RankState

_CLIENTS = {"ipyparallel": "ipyparallel", "distributed": "dask"}
"""Module of a class `Client` that a notebook may hold an object of -> adapter."""


def elsewhere(names: dict[str, Any], timeout: float) -> list[RankState]:
    """The states of the workers of all engines that variables of the notebook lead to."""
    deadline = time.monotonic() + timeout
    tasks = [partial(_reach, adapter, client, timeout) for adapter, client in _engines(names)]
    found = until(begin(tasks, deadline), deadline)
    return [state for states in found if states is not None for state in states]


def _engines(names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """(adapter, client) of each engine."""
    for module, adapter in _CLIENTS.items():
        kind = getattr(sys.modules.get(module), "Client", None)
        clients = {id(v): v for v in list(names.values()) if isinstance(kind, type) and isinstance(v, kind)}
        yield from ((adapter, client) for client in clients.values())
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        yield "ray", ray


def _reach(adapter: str, client: Any, timeout: float) -> list[RankState]:
    reach: Callable[[Any], Reach] = import_module(f"dtdebug.probe.adapters.{adapter}").reach
    return list(reach(client)(timeout))
