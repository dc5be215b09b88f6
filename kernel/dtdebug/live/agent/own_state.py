"""State of this process as a rank, read from loaded modules.

No collective, no initialised device, no data of a tensor, no code of the user: it may run in any thread while the main
thread hangs.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, TypeVar

import msgspec

from dtdebug.live.agent import membership, recorder_status
from dtdebug.live.agent import own_frames as stack
from dtdebug.live.agent.exit_hooks import primary
from dtdebug.live.agent.own_frames import loader_facts
from dtdebug.live.agent.pending_operation import pending
from dtdebug.live.procfs import reader
from dtdebug.live.procfs.best_explanation import choose_wait, with_store
from dtdebug.live.procfs.syscall_wait import by_system
from dtdebug.privacy.sanitize import allowed_variables
from dtdebug.process.rank_state import rank_state, versions
from dtdebug.process.thread_frames import from_locals
from dtdebug_taxonomy.model.account import Branch
from dtdebug_taxonomy.model.ranks import Frame, Group, RankState, SurvivedException
from dtdebug_taxonomy.model.waiting import Waiting
from dtdebug_taxonomy.stacks.wait_operations import by_stack

T = TypeVar("T")
_numbers: dict[int, str] = {}
"""Number that this process gave a group in the recorder's status -> name of the group, learnt from entries."""
_unknown: frozenset[int] = frozenset()
"""Numbers that the entries did not explain when they were last read."""


def observe(detail: bool = True, known: RankState | None = None, *, memory: bool = False) -> RankState | None:
    """Return the state now, or None if this is not a rank; with `detail`, also code, waits, step and data.

    `known` supplies the identity after the group was destroyed, and the costliest parts. `memory` asks the device's
    allocator, which waits while another thread allocates: only for a process that moves.
    """
    frames = stack.main_thread()
    state = rank_state(memory=memory) or _joining(frames)
    if state is None or state.rank is None:
        state = _as_known(state, known)
    if state is None:
        return None
    initialized = state.initialized
    same = known if known is not None and known.initialized == initialized and not detail else None
    no_groups: tuple[Group, ...] = ()
    no_branches: tuple[Branch, ...] = ()
    nothing: dict[str, str] = {}
    trace = (
        _part(lambda: recorder_status.trace(entries=detail), recorder_status.RecorderTrace())
        if initialized
        else recorder_status.RecorderTrace()
    )
    state = msgspec.structs.replace(
        state,
        parent=os.getppid(),
        groups=_part(lambda: _groups(trace), no_groups) if initialized else (),
        stack=stack.describe_frames(frames, code=detail),
        time=time.time(),
        alive=True,
        versions=_part(versions, nothing),
        environment=same.environment if same else allowed_variables(os.environ),
    )
    if detail:
        state = msgspec.structs.replace(
            state,
            pending=_part(lambda: pending(frames, trace.entries), None) if initialized else None,
            step=_part(lambda: stack.step(frames), None),
            facts=_part(lambda: _facts(frames), nothing),
            handling=_part(_handling, None),
            branches=_part(lambda: _branches(frames), no_branches),
            waiting=_part(lambda: _waiting(state.stack), None),
        )
    return state


def _branches(frames: list[FrameType]) -> tuple[Branch, ...]:
    """Return why the main thread is where it is; the modules for it are imported only where a stop is looked into."""
    from dtdebug.account.branches import branches_of

    return branches_of(frames)


def _waiting(frames: Sequence[Frame]) -> Waiting | None:
    """Return what the main thread is in, by its frames and its own files of /proc: other hosts have no other source."""
    tid = threading.main_thread().native_id
    now = reader.thread(os.getpid(), tid) if tid else reader.ThreadNow()
    found = choose_wait(by_stack(frames), by_system(os.getpid(), now), frames)
    return with_store(found, frames, os.environ.get("MASTER_PORT", ""))


def _handling() -> SurvivedException | None:
    """Return the exception that the main thread still handles: nothing prints it while a `finally` waits for others."""
    found: Any = sys._current_exceptions().get(threading.main_thread().ident or 0)  # noqa: SLF001 - documented
    value = found[1] if isinstance(found, tuple) else found  # a tuple before Python 3.12
    return SurvivedException("", *primary(value)) if isinstance(value, Exception) else None


def _part(read: Callable[[], T], otherwise: T) -> T:
    """Return one part of the state, or `otherwise` if it can't be read, for example after a change in torch."""
    try:
        return read()
    except Exception:
        return otherwise


def _joining(frames: list[FrameType]) -> RankState | None:
    """Return the state of a process that has begun to set up its group, and so is a rank: some never get further."""
    joining = membership.joining(frames)
    return (
        RankState(rank=joining[0], world_size=joining[1], pid=os.getpid(), host=socket.gethostname())
        if joining
        else None
    )


def _as_known(state: RankState | None, known: RankState | None) -> RankState | None:
    if known is None or (state is not None and state.initialized):
        return state
    base = state or RankState(pid=os.getpid(), host=known.host)
    return msgspec.structs.replace(
        base,
        rank=known.rank,
        world_size=known.world_size,
        local_rank=known.local_rank,
        local_world_size=known.local_world_size,
    )


def _groups(trace: recorder_status.RecorderTrace) -> tuple[Group, ...]:
    """Return all process groups of this rank, with the progress of each."""
    world: Any = getattr(sys.modules.get("torch.distributed.distributed_c10d"), "_world", None)
    if world is None:
        return ()
    groups = {str(name): pg for pg, name in list(world.pg_names.items())}
    status = _by_name(trace, groups)
    return tuple(_group(world, name, pg, status.get(name)) for name, pg in groups.items())


def _group(world: Any, name: str, pg: Any, status: recorder_status.Status | None) -> Group:
    desc = getattr(pg, "group_desc", "")
    enqueued = max(0, status.last_enqueued_collective) if status else _sequence_number(pg)
    return Group(
        name=name,
        desc="" if desc == "undefined" else str(desc),
        ranks=tuple(world.pg_group_ranks.get(pg, ())),
        backend=_backend(str(world.pg_backend_config.get(pg, ""))),
        enqueued=enqueued,
        completed=max(0, status.last_completed_collective) if status else (0 if enqueued == 0 else None),
        timeout=_timeout(pg),
    )


def update_counts(groups: tuple[Group, ...]) -> tuple[Group, ...]:
    """Return groups that may have been destroyed, with their progress: the recorder outlives them."""
    status = _by_name(recorder_status.trace(entries=False), {group.name: group for group in groups})
    return tuple(
        msgspec.structs.replace(
            group,
            enqueued=max(0, status[group.name].last_enqueued_collective),
            completed=max(0, status[group.name].last_completed_collective),
        )
        if group.name in status
        else group
        for group in groups
    )


def _by_name(trace: recorder_status.RecorderTrace, groups: Mapping[str, Any]) -> dict[str, recorder_status.Status]:
    """Return the status of each group; the recorder's numbers of groups are explained by its entries."""
    global _unknown
    status = {int(number): value for number, value in trace.pg_status.items() if number.isdecimal()}
    status = dict(sorted(status.items()))  # of two consecutive groups of one name, the later one counts
    unknown = frozenset(status.keys() - _numbers.keys())
    if unknown and (unknown != _unknown or trace.entries):
        entries = trace.entries or recorder_status.trace(entries=True).entries
        _numbers.update((e.pg_id, e.process_group[0]) for e in entries if e.process_group[0])
        _unknown = frozenset(status.keys() - _numbers.keys())
    return {_numbers[number]: value for number, value in status.items() if _numbers.get(number) in groups}


def _sequence_number(pg: Any) -> int | None:
    try:
        return int(pg._get_sequence_number_for_group())  # noqa: SLF001 - there is no public way
    except Exception:
        return None


def _timeout(pg: Any) -> float | None:
    try:
        return float(pg._get_backend(pg._device_types[0]).options._timeout.total_seconds())  # noqa: SLF001
    except Exception:
        return None


def _backend(config: str) -> str:
    """Return `gloo` for `cpu:gloo,cuda:gloo`; unchanged if devices have different ones."""
    names = {part.rpartition(":")[2] for part in config.split(",")}
    return names.pop() if len(names) == 1 else config


def _facts(frames: list[FrameType]) -> dict[str, str]:
    """Return paths, and properties of the data that are known without calling it."""
    facts = {"executable": sys.executable or "", "directory": _directory()}
    torch = getattr(sys.modules.get("torch"), "__file__", None)
    if torch:
        facts["torch"] = str(torch)
    for frame in stack.innermost_users(frames):
        data = from_locals(frame, loader_facts)
        if data:
            return facts | data
    return facts


def _directory() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - pathlib's is the same
    except OSError:  # it was deleted
        return ""
