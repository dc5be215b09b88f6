"""Looks at all ranks that this kernel has to do with: gathers what is known of each, and compares."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

import msgspec

from dtdebug.job import movement
from dtdebug.notebook.patience import LastSeen, watch
from dtdebug.notebook.running_cell import Here, here
from dtdebug.records.folder import RunFolder
from dtdebug.switch_interval import short_switch_interval
from dtdebug_taxonomy.ranks import Frame, RankState, Verdict
from dtdebug_taxonomy.snapshot import Gpu
from dtdebug_taxonomy.view import Timeline

if TYPE_CHECKING:
    from dtdebug.notebook.armed import Live

Kind = Literal["state", "hang"]
TIMEOUT = 3.0
"""Seconds that ranks have to answer."""
_MOST = 256
"""Child processes that are looked at."""
_BETWEEN = 1.0
"""Seconds between two looks that show who makes progress."""
_APART = 3.0
"""Seconds between two looks at a rank from which it is believed to hang."""
T = TypeVar("T")


class RanksSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of the ranks of a kernel at one moment."""

    kind: Kind
    here: Here = Here()
    ranks: tuple[RankState, ...] = ()
    verdict: Verdict | None = None
    gpus: tuple[Gpu, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    """How long it took to find out."""
    moved: bool | None = None
    """Something moved between two looks at the ranks; None where they were not compared."""
    resting: float = 0.0
    """Seconds for which no rank has used a processor, where nothing else tells of progress."""
    timeline: Timeline | None = None


class Conclusion(NamedTuple):
    """What follows from states that were seen."""

    verdict: Verdict | None = None
    notes: tuple[str, ...] = ()
    timeline: Timeline | None = None
    """The latest collectives, where ranks have left dumps."""


def look_at_ranks(live: Live, kind: Kind, timeout: float = TIMEOUT) -> RanksSeen:
    """The state of all ranks, and for `hang` who waits for whom; from any thread, and it never raises."""
    with short_switch_interval():
        seen = _look(live, kind, timeout)
    if kind == "hang":
        live.seen = seen
    return seen


def _look(live: Live, kind: Kind, timeout: float) -> RanksSeen:
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
    before = part("records", lambda: tuple(live.run.records()) if live.run else none, none)
    states = part("ranks", lambda: _ranks(live, timeout), none)
    watched = LastSeen(states, Conclusion(), part("movement", lambda: moved(before, states), None))
    devices: tuple[Gpu, ...] = ()
    if kind == "hang" and states:

        def again(left: float) -> tuple[RankState, ...]:
            return _ranks(live, left)

        host = socket.gethostname()
        begun = movement.sample(states, host)

        def follows(seen: Sequence[RankState], *, moving: bool | None = None) -> Conclusion:
            worked = movement.workers(begun, movement.sample(seen, host))
            progress = {} if seen is states else movement.progress(states, seen, *worked)
            return conclude(live.run, seen, live.output(), moving=moving, progress=progress)

        def twice() -> LastSeen:
            found = watch(watched, again, follows, begin + timeout)
            if found.states is not states or not _is_open(found.found):
                return found
            time.sleep(max(0.0, begin + _BETWEEN - time.monotonic()))
            later = again(max(1.0, begin + timeout - time.monotonic()))
            return LastSeen(later, follows(later), found.moved)

        watched = part("verdict", twice, watched)
        notes += watched.found.notes
    if kind == "state":
        from dtdebug.probes import gpus

        devices, note = part("devices", gpus.gpus, (devices, ""))
        notes += [note] if note else []
    found = watched.found
    return RanksSeen(
        kind=kind,
        here=now,
        ranks=tuple(part("names of cells", lambda s=s: live.cells.translated(s), s) for s in watched.states),  # type: ignore[misc]
        verdict=live.cells.translated(found.verdict) if found.verdict else None,
        gpus=devices,
        notes=tuple(notes),
        seconds=time.monotonic() - begin,
        moved=watched.moved,
        timeline=live.cells.translated(found.timeline) if found.timeline else None,
    )


def _is_open(found: Conclusion) -> bool:
    """One look does not show who makes progress."""
    return found.verdict is not None and found.verdict.kind == "not_understood"


def conclude(
    run: RunFolder | None,
    states: Sequence[RankState],
    output: str,
    *,
    earlier: Verdict | None = None,
    moving: bool | None = None,
    progress: Mapping[int, str] | None = None,
) -> Conclusion:
    """The verdict on states that were seen, refined by what the ranks have printed; and the time line.

    `earlier` was measured while no rank made progress; `moving`: they were seen to go on; `progress` of each rank
    between two looks.
    """
    from dtdebug.job.judgement import Basis, judge

    known = [s for s in states if s.rank is not None]
    if not known:
        return Conclusion()
    basis = Basis(output=output, earlier=earlier, measured=earlier is not None, moving=moving, progress=progress or {})
    found = judge(run, known, basis, timeline=True)
    return Conclusion(found.verdict, (*found.ended.notes, *found.notes), found.timeline)


def moved(before: Iterable[RankState], after: Iterable[RankState]) -> bool | None:
    """Whether a rank has moved between two looks; None where none was seen twice, some time apart."""
    from dtdebug.probe.stacks import compare

    early, late = ([_plain(state) for state in states] for states in (before, after))
    found = compare(early, late)
    if not {"slow", "busy"}.isdisjoint(found.values()):
        return True
    taken = {s.rank: s.time for s in early if s.time}
    apart = [s.rank for s in late if s.rank in taken and (s.time or 0.0) - (taken[s.rank] or 0.0) >= _APART]
    return False if any(found.get(rank or 0) == "stuck" for rank in apart) else None


def _plain(state: RankState) -> RankState:
    """The state with places alone: some records have no text of their lines."""
    places = tuple(Frame(f.file, f.line, f.function) for f in state.stack)
    return msgspec.structs.replace(state, stack=places)


def _ranks(live: Live, timeout: float) -> tuple[RankState, ...]:
    """The ranks that the run's folder, this process and its children tell of, by rank."""
    from dtdebug.agent import own_state
    from dtdebug.notebook import jobs
    from dtdebug.notebook.engines import elsewhere
    from dtdebug.probe import gather
    from dtdebug.probe.processes import ranks_below

    me = os.getpid()
    pids = ranks_below(me)[:_MOST]
    if live.run is not None:
        jobs.forget_earlier(live.run, pids, live.since)
    own = own_state.observe(detail=True)
    states = {s.pid or s.rank: s for s in gather.gather(live.run, pids=pids, timeout=timeout) if _is_rank(s)}
    if not any(s.alive for s in states.values()):
        states = {s.pid or s.rank: s for s in elsewhere(live.shell.user_ns, timeout)} or states
    if own is not None and _is_rank(own):
        states = {key: s for key, s in states.items() if s.rank != own.rank or s.pid == me} | {me: own}
    return tuple(sorted(states.values(), key=lambda s: (s.rank is None, s.rank or 0, s.pid or 0)))


def _is_rank(state: RankState) -> bool:
    return state.rank is not None or state.initialized
