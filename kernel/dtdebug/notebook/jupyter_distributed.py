"""Asks the child kernels of jupyter-distributed through their control channels, or inspects them from outside."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from dtdebug.live.probe.adapters import Reach
from dtdebug.live.probe.deadline_threads import begin, until
from dtdebug.storage.untrusted import tidy
from dtdebug_taxonomy.model.ranks import RankState


def reach(connection_files: Iterable[str | Path]) -> Reach:
    """Return a function that inspects the kernels of the connection files, in the order of their ranks."""
    files = [str(file) for file in connection_files]

    def look(timeout: float) -> Sequence[RankState]:
        deadline = time.monotonic() + timeout
        asked = [partial(_kernel, rank, file, timeout) for rank, file in enumerate(files)]
        states = until(begin(asked, deadline), deadline)
        return [state or _silent(rank, f"no answer in {timeout:g} s") for rank, state in enumerate(states)]

    return look


def _kernel(rank: int, file: str, timeout: float) -> RankState:
    from dtdebug.live.probe.pyspy import observe_pid
    from dtdebug.notebook.attach_client import ask_kernel, connection_file, kernel_pid

    answer = ask_kernel(file, "state", timeout / 2)
    if answer is not None and answer.road == "control channel" and answer.ranks:
        own = next((state for state in answer.ranks if state.rank == rank), answer.ranks[0])
        return tidy(msgspec.structs.replace(own, roads={"control channel": "ok"} | own.roads))
    path = connection_file(file)
    pid = kernel_pid(path) if path is not None else None
    if pid is None:
        return _silent(rank, "no kernel with that connection file runs here")
    state = observe_pid(pid, timeout / 2)
    return tidy(
        msgspec.structs.replace(
            state,
            rank=rank if state.rank is None else state.rank,
            roads={"control channel": "does not answer"} | state.roads,
        )
    )


def _silent(rank: int, why: str) -> RankState:
    return RankState(rank=rank, roads={"control channel": why})
