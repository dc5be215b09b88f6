"""Observes the ranks of a run: once, twice to see which move, and as they are left when they end.

The host that reports merges what several hosts observed of their own ranks.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

import msgspec

from dtdebug.live.hosts.presence import HostView, Presence
from dtdebug.live.job import progress as job_progress
from dtdebug.live.probe.liveness import Death, living
from dtdebug.storage.run_folder import RunFolder
from dtdebug.storage.untrusted import tidy
from dtdebug_taxonomy.model.ranks import EXITED, RankState, Verdict
from dtdebug_taxonomy.model.waiting import Waiting
from dtdebug_taxonomy.stacks.frames import own_frame

_INTERRUPTED = "interrupted: what had come by then"
PAUSE = 1.0
"""Seconds between two observations of a rank that seems to hang."""
_AT_END, _AT_HANG = 8.0, 10.0
"""Seconds to wait for the other hosts: they detect a hang at about the same time."""


class LiveRanks(msgspec.Struct, frozen=True, kw_only=True):
    """The living ranks, observed twice."""

    states: tuple[RankState, ...] = ()
    progress: dict[int, str] = {}
    notes: tuple[str, ...] = ()
    verdict: Verdict | None = None
    """Verdict of the records while the ranks still were where they are observed here."""
    measured: bool = False
    """True if that verdict was found after no rank made progress for the user's limit."""
    seconds: float = 0.0
    """Seconds without progress of any rank, if watched."""
    interrupted: bool = False
    """True if the user interrupted the observation (Ctrl-C); it holds the answers that had arrived."""
    printed: str | None = None
    """Output of the job until its user ended it; later output only comes from the interrupt."""


def ask_ranks(
    folder: RunFolder | None,
    pids: Sequence[int] = (),
    *,
    twice: bool = True,
    native: bool = False,
    timeout: float = 3.0,
    pause: float = PAUSE,
    addresses: Callable[[], dict[int, str]] | None = None,
) -> LiveRanks:
    """Ask the living ranks; a second time after a pause, to see which of them move."""
    from dtdebug.live.probe.ask_all_ranks import gather

    here, stop = socket.gethostname(), threading.Event()
    first = _fresh(gather(folder, pids, timeout, native=native, addresses=addresses, stop=stop))
    if stop.is_set():
        return LiveRanks(states=tuple(first), interrupted=True, notes=(_INTERRUPTED,))
    if not twice or not any(state.alive for state in first):
        return LiveRanks(states=tuple(first))
    begun = job_progress.sample(first, here)
    time.sleep(pause)
    works, rests = job_progress.workers(
        begun, job_progress.sample(first, here)
    )  # before asking, as answering takes CPU
    second = _fresh(gather(folder, pids, timeout, dumps=False, addresses=addresses, stop=stop))
    return LiveRanks(
        states=merge_states(first, second),
        progress={} if stop.is_set() else {**job_progress.progress(first, second, works, rests)},
        interrupted=stop.is_set(),
        notes=(_INTERRUPTED,) if stop.is_set() else (),
    )


def _fresh(states: Iterable[RankState]) -> list[RankState]:
    return [mark_ended(state) if state.alive is False else _drop_old_stack(state) for state in states]


def _drop_old_stack(state: RankState) -> RankState:
    """Drop the stack of a remote rank that did not answer: it may have left the place in its record long ago."""
    silent = state.host != socket.gethostname() and state.roads.get("files", "ok") != "ok"
    if not silent or state.roads.get("endpoint") == "ok":
        return state
    return msgspec.structs.replace(state, stack=(), native=(), pending=None)


def alive(folder: RunFolder) -> bool:
    """True if a rank of the run is still running on this host."""
    here = socket.gethostname()
    return bool(living(r.pid for r in folder.records() if r.host == here))


def last(folder: RunFolder) -> LiveRanks:
    """Return the final records of the ranks; those of this host have ended."""
    here = socket.gethostname()
    return LiveRanks(states=tuple(mark_ended(r) if r.host == here else r for r in map(tidy, folder.records())))


def mark_ended(record: RankState) -> RankState:
    """Drop the stack of an ended rank without a final record: it may not be where it died."""
    if record.alive is False and (record.exception or EXITED in record.facts):
        return record
    return msgspec.structs.replace(record, alive=False, stack=(), native=(), pending=None, waiting=None, beside=())


def merge_states(before: Iterable[RankState], after: Iterable[RankState]) -> tuple[RankState, ...]:
    """Return the later states, completed by earlier ones where a rank gives no new answer."""
    early = {(s.host, s.pid): s for s in before if s.pid}
    result = []
    for state in after:
        old = early.pop((state.host, state.pid or 0), None)
        if old is not None:
            if state.stack and state.stack != old.stack:  # it has moved: drop what it was in
                old = msgspec.structs.replace(
                    old, native=(), pending=None, waiting=None, beside=(), branches=(), system={}
                )
            state = msgspec.structs.replace(  # noqa: PLW2901 - the same rank, completed
                state,
                stack=state.stack or old.stack,
                native=state.native or old.native,
                pending=state.pending or old.pending,
                waiting=_fuller(state.waiting, old.waiting),
                beside=state.beside or old.beside,
                branches=state.branches or old.branches,
                system=state.system or old.system,
                groups=state.groups or old.groups,
                gil_held=state.gil_held or (old.gil_held and not state.stack),
                exception=state.exception or old.exception,
                versions=state.versions or old.versions,
                environment=state.environment or old.environment,
                facts={**old.facts, **state.facts},
                roads={**old.roads, **state.roads},
            )
        result.append(state)
    known = {s.rank for s in result if s.rank is not None}
    return (*result, *(s for s in early.values() if s.rank is None or s.rank not in known))


def before_interrupt(
    now: Iterable[RankState], before: Iterable[RankState], deaths: Iterable[Death] = ()
) -> tuple[tuple[RankState, ...], list[Death]]:
    """Restore ranks that made no progress, and their ends, to their state before the user's interrupt.

    A command-line framework catches the interrupt and exits with a status, which does not show where the rank was.
    """
    stood = {(s.host, s.pid): s for s in before if s.alive and s.pid is not None}
    states, ended = [], set()
    for state in now:
        old = stood.get((state.host, state.pid or 0))
        spoke = state.exception or state.signal or state.exit_code == 0
        if old is None or (state.alive is False and spoke) or (state.alive and _place(state) == _place(old)):
            states.append(state)
        else:
            states.append(old)
            ended.add(state.pid)
    return tuple(states), [d for d in deaths if d.pid not in ended or (d.status or 0) < 0]


def _place(state: RankState) -> object:
    frame = own_frame(state.stack)
    return frame and (frame.file, frame.line)


def _fuller(now: Waiting | None, before: Waiting | None) -> Waiting | None:
    """Return what a rank is in now; of two equal waits, the more detailed one."""
    if now is None or before is None or now.kind != before.kind:
        return now or before
    return (
        before if (before.op and not now.op) or (before.pid and not now.pid) or (before.line and not now.line) else now
    )


class Pool(NamedTuple):
    """Observations of all hosts."""

    look: LiveRanks
    deaths: list[Death]
    starved: set[int]


def exchange_views(
    presence: Presence, look: LiveRanks, deaths: Sequence[Death], starved: Collection[int] = (), *, final: bool
) -> Pool | None:
    """Return the observations of all hosts if this one reports; None if another does, after leaving it ours."""
    presence.contribute(
        HostView(
            final=final, states=look.states, deaths=tuple(deaths), starved=tuple(starved), progress=dict(look.progress)
        )
    )
    if presence.reporter():
        return None
    others = presence.gather(_AT_END if final else _AT_HANG, final=final) if presence.others else {}
    return merge_views(look, deaths, starved, others.values())


def merge_views(look: LiveRanks, deaths: Sequence[Death], starved: Collection[int], others: Iterable[HostView]) -> Pool:
    """Complete an observation by those of other hosts: each host knows its own ranks best."""
    states, progress, ended, killed = look.states, dict(look.progress), list(deaths), set(starved)
    for seen in others:
        theirs = {(s.host, s.pid) for s in seen.states}
        mine = [s for s in states if (s.host, s.pid) in theirs]
        rest = [s for s in states if (s.host, s.pid) not in theirs]
        known = {s.rank for s in seen.states if s.rank is not None}
        rest = [s for s in rest if s.pid is not None or s.rank not in known]
        states = (*rest, *merge_states(mine, seen.states))
        progress |= seen.progress
        ended += seen.deaths
        killed |= set(seen.starved)
    ordered = tuple(sorted(states, key=lambda s: (s.rank is None, s.rank or 0, s.pid or 0)))
    return Pool(
        msgspec.structs.replace(look, states=ordered, progress=progress),
        sorted(ended, key=lambda death: death.time),
        killed,
    )
