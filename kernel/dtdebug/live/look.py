"""Looks at all ranks that this kernel has to do with: gathers what is known of each, and compares."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

from dtdebug.live.brisk import brisk
from dtdebug.live.here import Here, here
from dtdebug.ranks.folder import RunFolder
from dtdebug_taxonomy.ranks import RankState, Verdict
from dtdebug_taxonomy.snapshot import Gpu

if TYPE_CHECKING:
    from dtdebug.live.armed import Live

Kind = Literal["state", "hang"]
TIMEOUT = 3.0
"""Seconds that ranks have to answer."""
_MOST = 256
"""Child processes that are looked at."""
T = TypeVar("T")


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of the ranks of a kernel at one moment."""

    kind: Kind
    here: Here = Here()
    ranks: tuple[RankState, ...] = ()
    verdict: Verdict | None = None
    gpus: tuple[Gpu, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    """How long it took to find out."""


def look(live: Live, kind: Kind, timeout: float = TIMEOUT) -> Seen:
    """The state of all ranks, and for `hang` who waits for whom; from any thread, and it never raises."""
    with brisk():
        return _look(live, kind, timeout)


def _look(live: Live, kind: Kind, timeout: float) -> Seen:
    begin, notes = time.monotonic(), []

    def part(name: str, read: Callable[[], T], otherwise: T) -> T:
        try:
            return read()
        except Exception as error:
            notes.append(f"{name}: {type(error).__name__}: {error}"[:200])
            return otherwise

    beside = threading.get_ident() != live.thread  # else the running cell is the question itself
    now = part("the running cell", lambda: here(live.cells, live.thread), Here()) if beside else Here()
    none: tuple[RankState, ...] = ()
    states = part("ranks", lambda: _ranks(live, timeout), none)
    verdict: Verdict | None = None
    more: tuple[str, ...] = ()
    devices: tuple[Gpu, ...] = ()
    if kind == "hang" and states:
        verdict, more = part("verdict", lambda: conclude(live.run, states, live.output()), (verdict, more))
        notes += more
    if kind == "state":
        from dtdebug.probes import gpus

        devices, note = part("devices", gpus.gpus, (devices, ""))
        notes += [note] if note else []
    return Seen(
        kind=kind,
        here=now,
        ranks=tuple(part("names of cells", lambda s=s: live.cells.translated(s), s) for s in states),  # type: ignore[misc]
        verdict=live.cells.translated(verdict) if verdict else None,
        gpus=devices,
        notes=tuple(notes),
        seconds=time.monotonic() - begin,
    )


def conclude(run: RunFolder | None, states: Sequence[RankState], output: str) -> tuple[Verdict | None, tuple[str, ...]]:
    """The verdict on states that were seen, refined by what the ranks have printed; and notes."""
    from dtdebug.flight import analyse
    from dtdebug.ranks import ends

    known = [s for s in states if s.rank is not None]
    if run is None or not known:
        return None, ()
    ended = ends.ends(output, known)
    try:
        analysis = analyse(run.flight, states=ended.states)
    except Exception as error:  # a defect there leaves what the ends of the ranks tell
        return ends.settle(None, ended), (
            *ended.notes,
            f"the records can't be compared: {type(error).__name__}: {error}",
        )
    return ends.settle(analysis.verdict, ended), (*ended.notes, *analysis.notes)


def _ranks(live: Live, timeout: float) -> tuple[RankState, ...]:
    """The ranks that the run's folder, this process and its children tell of, by rank."""
    from dtdebug.live import jobs
    from dtdebug.live.engines import elsewhere
    from dtdebug.ranks import gather, observe

    me = os.getpid()
    pids = jobs.ranks_below(me)[:_MOST]
    if live.run is not None:
        jobs.forget_earlier(live.run, pids, live.since)
    own = observe.observe(detail=True)
    states = {s.pid or s.rank: s for s in gather.gather(live.run, pids=pids, timeout=timeout) if _is_rank(s)}
    if not any(s.alive for s in states.values()):
        states = {s.pid or s.rank: s for s in elsewhere(live.shell.user_ns, timeout)} or states
    if own is not None and _is_rank(own):
        states = {key: s for key, s in states.items() if s.rank != own.rank or s.pid == me} | {me: own}
    return tuple(sorted(states.values(), key=lambda s: (s.rank is None, s.rank or 0, s.pid or 0)))


def _is_rank(state: RankState) -> bool:
    return state.rank is not None or state.initialized
