"""Engines of ipyparallel whose client has ended: they run on, for their controller does, and so do the ranks in them.

An engine names no rank in its environment; that it is one shows in its connections with other engines. Whether somebody
can still ask it shows in those of its controller: all that are neither engines nor parts of it are clients.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any

import msgspec
import psutil

from dtdebug.probe import connected
from dtdebug.probe.processes import RankProcess, describe, variables

_ENGINE, _CONTROLLER, _NANNY = (
    ("ipyparallel.engine", "ipengine"),
    ("ipyparallel.controller", "ipcontroller"),
    ("ipyparallel.engine.nanny",),
)

Connection = tuple[connected.End, connected.End]


def without_client(variable: str) -> list[RankProcess]:
    """Engines that have this variable in their environment, whatever its value, and that nobody can ask any more."""
    found = [pid for pid in _running(_ENGINE) if variable in variables(pid)]
    asked = with_client(found)
    return [describe(pid) for pid in found if pid not in asked]


def with_client(pids: Iterable[int]) -> set[int]:
    """Those of the processes that are engines which a client may still ask, also where this host does not show it."""
    engines = {*pids} & {*(every := _running(_ENGINE))}
    if not engines:
        return set()
    controllers = _running(_CONTROLLER)
    workers = _ends([*every, *controllers, *_running(_NANNY)])
    return {pid for pid in engines if _may_be_asked(pid, controllers, workers)}


def _may_be_asked(engine: int, controllers: Collection[int], workers: Collection[Connection]) -> bool:
    ports = _ports(engine)
    if not ports:
        return True  # it does not tell where its controller is
    links = {(there, here) for here, there in connected.sockets(engine).ends if there[1] in ports}
    if not links:
        return False  # the controller has ended
    tops = {pid for pid in controllers if _parent(pid) not in controllers}
    families = [[pid for pid in controllers if top in (pid, _parent(pid))] for top in tops]
    own = {end for family in families if links & (ends := _ends(family)) for end in ends}
    return not own or any((there, here) not in workers for here, there in own)


def _ports(engine: int) -> set[int]:
    """Those of its controller, which it was told in its environment."""
    with suppress(ValueError):
        told = msgspec.json.decode(variables(engine).get("IPP_CONNECTION_INFO", "{}"), type=dict[str, Any])
        return {port for port in told.values() if isinstance(port, int) and 0 < port < 1 << 16}
    return set()


def _running(names: Collection[str]) -> list[int]:
    """Processes that run one of these modules or commands."""
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
    return {end for pid in pids for end in connected.sockets(pid).ends}
