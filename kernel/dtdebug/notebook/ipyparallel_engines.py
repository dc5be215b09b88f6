"""Finds ipyparallel engines whose client has ended; their controller keeps running, and so do they and their ranks.

An engine does not name a rank in its environment; its connections with other engines show that it is one. The
connections of its controller show whether a client can still ask it: every peer that is not part of the cluster is one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any

import msgspec
import psutil

from dtdebug.live.probe import tcp_peers
from dtdebug.live.probe.processes import RankProcess, describe, variables

_ENGINE, _CONTROLLER, _NANNY = (
    ("ipyparallel.engine", "ipengine"),
    ("ipyparallel.controller", "ipcontroller"),
    ("ipyparallel.engine.nanny",),
)

Connection = tuple[tcp_peers.End, tcp_peers.End]


def without_client(variable: str) -> list[RankProcess]:
    """Return the engines with this environment variable, whatever its value, that no client can reach any more."""
    found = [pid for pid in _running(_ENGINE) if variable in variables(pid)]
    asked = with_client(found)
    return [describe(pid) for pid in found if pid not in asked]


def with_client(pids: Iterable[int]) -> set[int]:
    """Return the engines among the processes that a client may still reach, including when this host can't show it."""
    engines = {*pids} & {*(every := _running(_ENGINE))}
    if not engines:
        return set()
    controllers = _running(_CONTROLLER)
    workers = _ends([*every, *controllers, *_running(_NANNY)])
    return {pid for pid in engines if _may_be_asked(pid, controllers, workers)}


def _may_be_asked(engine: int, controllers: Collection[int], workers: Collection[Connection]) -> bool:
    ports = _ports(engine)
    if not ports:
        return True  # it does not name its controller
    links = {(there, here) for here, there in tcp_peers.sockets(engine).ends if there[1] in ports}
    if not links:
        return False  # the controller has ended
    tops = {pid for pid in controllers if _parent(pid) not in controllers}
    families = [[pid for pid in controllers if top in (pid, _parent(pid))] for top in tops]
    own = {end for family in families if links & (ends := _ends(family)) for end in ends}
    return not own or any((there, here) not in workers for here, there in own)


def _ports(engine: int) -> set[int]:
    """Return the ports of an engine's controller, from the engine's environment."""
    with suppress(ValueError):
        told = msgspec.json.decode(variables(engine).get("IPP_CONNECTION_INFO", "{}"), type=dict[str, Any])
        return {port for port in told.values() if isinstance(port, int) and 0 < port < 1 << 16}
    return set()


def _running(names: Collection[str]) -> list[int]:
    """Return the processes that run one of these modules or commands."""
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if any(word in names or word.rpartition("/")[2] in names for word in (process.info["cmdline"] or [])[:4])
    ]


def _parent(pid: int) -> int | None:
    with suppress(psutil.Error):
        return int(psutil.Process(pid).ppid())
    return None


def _ends(pids: Iterable[int]) -> set[Connection]:
    return {end for pid in pids for end in tcp_peers.sockets(pid).ends}
