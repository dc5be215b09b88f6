"""Finds ranks left by kernels without our extension, through the operating system instead of a journal.

A Jupyter server writes its process id and the notebook's path into the environment of a kernel, and ranks inherit both.
It is unknown which cell started them; that no cell runs is known if the kernel is idle or has ended.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil

from dtdebug.live.probe import processes, tcp_peers
from dtdebug.notebook import ipyparallel_engines
from dtdebug.notebook.leftover_ranks import LeftoverRanks, Member, describe_leftovers
from dtdebug.privacy.sanitize import clean
from dtdebug.storage import VARIABLE

_SERVER, _NOTEBOOK = "JPY_PARENT_PID", "JPY_SESSION_NAME"


def find_leftovers(pid: int, *, idle: bool, kernels: Collection[int]) -> list[LeftoverRanks]:
    """Return ranks left by cells of the kernel with that process or of its predecessors; `kernels` are the server's."""
    found = _describe_ranks(processes.find_ranks(pid), pid, [pid]) if idle else []
    notebook = processes.variables(pid).get(_NOTEBOOK, "")
    return found + (_describe_ranks(_orphans(kernels).get(notebook, ()), None, kernels) if notebook else [])


def find_abandoned(kernels: Collection[int]) -> list[LeftoverRanks]:
    """Return the ranks of ended kernels whose notebooks have none of these kernels."""
    served = {processes.variables(pid).get(_NOTEBOOK) for pid in kernels} - {None, ""}
    return [
        msgspec.structs.replace(each, notebook=clean(Path(notebook).name) or "a notebook")
        for notebook, ranks in _orphans(kernels).items()
        if notebook not in served
        for each in _describe_ranks(ranks, None, kernels)
    ]


def _orphans(kernels: Collection[int]) -> dict[str, list[processes.RankProcess]]:
    """Return path of a notebook -> ranks whose kernel has ended."""
    found: dict[str, list[processes.RankProcess]] = {}
    named = (*ipyparallel_engines.without_client(_SERVER), *processes.ranks_with(_SERVER))
    for rank in {rank.pid: rank for rank in named}.values():
        with suppress(psutil.Error):
            variables = processes.variables(rank.pid)
            if VARIABLE not in variables and _is_orphan(rank.pid, variables.get(_SERVER, ""), kernels):
                found.setdefault(variables.get(_NOTEBOOK, ""), []).append(rank)
    return found


def _is_orphan(pid: int, server: str, kernels: Collection[int]) -> bool:
    """True if no kernel is above the process. Direct children of a server are kernels; this server's are all known."""
    above = _family(psutil.Process(pid), server)
    top = above[-1] if above else psutil.Process(pid)
    if any("ipykernel" in word for up in above for word in up.cmdline()[:4]):
        return False
    return top.ppid() != int(server) or (server == str(os.getpid()) and top.pid not in kernels)


def _family(process: psutil.Process, server: str) -> list[psutil.Process]:
    """Return the processes above it that belong to the same kernel, the nearest first."""
    above = []
    for up in process.parents():
        if processes.variables(up.pid).get(_SERVER) != server:
            break
        above.append(up)
    return above


def _describe_ranks(
    ranks: Sequence[processes.RankProcess], kernel: int | None, apart: Collection[int]
) -> list[LeftoverRanks]:
    unnumbered = [rank.pid for rank in ranks if rank.rank is None]
    no_ranks = {*unnumbered} - tcp_peers.among(unnumbered, apart)
    members = [
        Member(rank.pid, rank.rank, tuple(_launchers(rank.pid, kernel)), None)
        for rank in ranks
        if rank.pid != kernel and rank.pid not in no_ranks
    ]
    theirs = {port for pid in apart for port in tcp_peers.sockets(pid).listens}
    return [describe_leftovers(None, members, theirs)] if members else []


def _launchers(pid: int, kernel: int | None) -> Iterable[int]:
    """Yield the processes between a rank and its kernel, or those that remain."""
    with suppress(psutil.Error):
        for up in _family(psutil.Process(pid), processes.variables(pid).get(_SERVER, "")):
            if up.pid == kernel:
                break
            yield up.pid
