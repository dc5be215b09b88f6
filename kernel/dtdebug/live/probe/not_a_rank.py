"""Describes a process that is not a rank: what it is, where it is, and which process to ask instead."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress

import psutil

from dtdebug.live.probe.processes import RankProcess, find_ranks, ranks_with
from dtdebug.live.procfs.reader import command
from dtdebug.privacy.redact import mask
from dtdebug_taxonomy.model.ranks import RankState, spell
from dtdebug_taxonomy.model.waiting import phrase
from dtdebug_taxonomy.stacks.frames import shown_frame

_COMMUNICATES = re.compile(r"[/\\](?:torch[/\\]distributed|horovod|deepspeed|mpi4py|jax|tensorflow)[/\\.]")
_COMMAND, _SHOWN = 80, 8


def stranger(pid: int, states: Sequence[RankState]) -> str:
    """Return a message for a process that is neither rank nor launcher; "" if it might be a rank.

    A rank number in its environment proves nothing if a rank started it, as all children inherit it.
    """
    above, ranks = _above(pid)
    if any(each.pid == pid for each in ranks):  # processes started by multiprocessing have no number
        return ""
    parent = next((each for each in ranks if each.pid in above and _is_copy(pid, each.pid)), None)
    own = [state for state in states if state.pid == pid and state.stack]
    if any(map(_communicates, own)):
        return ""
    if parent is None and (find_ranks(pid) or not own or any(state.rank is not None for state in own)):
        return ""
    called = mask(command(pid))[:_COMMAND].strip()
    said = f"process {pid}{f' ({called})' if called else ''} is no rank"
    if parent is not None:
        number = "a rank" if parent.rank is None else f"rank {parent.rank}"
        said += f": {number}, process {parent.pid}, has started it"
    else:
        said += ": its environment has no number of one, and its stack is in no communication"
    return f"{said}{_place(own)}; {_instead(ranks or ranks_with('RANK'))}"


def _above(pid: int) -> tuple[set[int], list[RankProcess]]:
    """Return this user's processes above one, and the ranks below the nearest of them with several, else with one."""
    above: list[int] = []
    with suppress(psutil.Error):
        above = [up.pid for up in psutil.Process(pid).parents() if up.pid > 1 and up.uids().real == os.getuid()]
    found = [ranks for up in above if (ranks := find_ranks(up))]
    several = (ranks for ranks in found if len({each.rank for each in ranks}) > 1)
    return {*above}, next(several, found[0] if found else [])


def _is_copy(pid: int, parent: int) -> bool:
    """True if it was forked from a rank or spawned by its multiprocessing: another program may be the rank itself."""
    return command(pid) == command(parent) or "multiprocessing" in command(pid)


def _communicates(state: RankState) -> bool:
    known = state.initialized or state.pending is not None
    return known or any(_COMMUNICATES.search(frame.file) for frame in state.stack)


def _place(states: Sequence[RankState]) -> str:
    frame = next((found for state in states if (found := shown_frame(state.stack)) is not None), None)
    if frame is None:
        return ""
    waiting = states[0].waiting
    doing = f", where it waits {phrase(waiting)}" if waiting is not None and waiting.kind == "sleep" else ""
    return f"; it is at {frame.file}:{frame.line} in {frame.function}{doing}"


def _instead(ranks: Sequence[RankProcess]) -> str:
    numbers = sorted({each.rank for each in ranks if each.rank is not None})
    if not numbers:
        return "no rank is seen on this host: `dtdebug run -- COMMAND` starts a job that can be asked"
    first = next(each for each in ranks if each.rank == numbers[0])
    top = first.parent if first.parent and first.parent > 1 and len(numbers) > 1 else first.pid
    return f"on this host {spell(numbers, _SHOWN)} can be asked: `dtdebug attach {top}`"
