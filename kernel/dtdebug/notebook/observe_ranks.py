"""Inspects all ranks of this kernel: gathers the state of each, and compares them.

All jobs of a kernel write to one folder; the files of earlier jobs are recognised and removed. If no rank runs below
the kernel, the engines in its variables (ipyparallel, Dask, Ray) are asked; none is imported for that.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from dtdebug.live.job import progress as job_progress
from dtdebug.live.probe import processes
from dtdebug.live.probe.deadline_threads import begin, until
from dtdebug.notebook.cells import RunningCell, here
from dtdebug.notebook.ranks_seen import Conclusion, Kind, RanksSeen
from dtdebug.notebook.second_look import LastSeen, watch
from dtdebug.process.switch_interval import short_switch_interval
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.model.ranks import Frame, RankState, Verdict
from dtdebug_taxonomy.model.snapshot import Gpu

if TYPE_CHECKING:
    from dtdebug.live.probe.adapters import Reach
    from dtdebug.notebook.live_kernel import Live

TIMEOUT = 3.0
"""Seconds that ranks have to answer."""
_MOST = 256
"""Maximum number of child processes inspected."""
_BETWEEN = 1.0
"""Seconds between two looks that show which ranks make progress."""
_APART = 3.0
"""Minimum number of seconds between two looks at a rank before it counts as hung."""
_EARLY = 5.0
"""Seconds by which a rank's end may precede the start of the oldest live rank of the same job."""
_ROUNDED = 2.0
"""Tolerance in seconds of process start times reported by the operating system."""
_CLIENTS = {"ipyparallel": "ipyparallel", "distributed": "dask"}
"""Module of a class `Client` whose instances a notebook may hold -> adapter."""
T = TypeVar("T")


def look_at_ranks(live: Live, kind: Kind, timeout: float = TIMEOUT) -> RanksSeen:
    """Return the state of all ranks, and for `hang` which waits for which; callable from any thread, never raises."""
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
    now = part("the running cell", lambda: here(live.cells, live.thread), RunningCell()) if beside else RunningCell()
    none: tuple[RankState, ...] = ()
    before = part("records", lambda: tuple(live.run.records()) if live.run else none, none)
    states = part("ranks", lambda: _ranks(live, timeout), none)
    watched = LastSeen(states, Conclusion(), part("movement", lambda: has_moved(before, states), None))
    devices: tuple[Gpu, ...] = ()
    if kind == "hang" and states:

        def look_again(left: float) -> tuple[RankState, ...]:
            return _ranks(live, left)

        host = socket.gethostname()
        begun = job_progress.sample(states, host)

        def follows(seen: Sequence[RankState], *, moving: bool | None = None) -> Conclusion:
            worked = job_progress.workers(begun, job_progress.sample(seen, host))
            progress = {} if seen is states else job_progress.progress(states, seen, *worked)
            return conclude(live.run, seen, live.output(), moving=moving, progress=progress)

        def twice() -> LastSeen:
            found = watch(watched, look_again, follows, begin + timeout)
            if found.states is not states or not _is_open(found.found):
                return found
            time.sleep(max(0.0, begin + _BETWEEN - time.monotonic()))
            later = look_again(max(1.0, begin + timeout - time.monotonic()))
            return LastSeen(later, follows(later), found.moved)

        watched = part("verdict", twice, watched)
        notes += watched.found.notes
    if kind == "state":
        from dtdebug.process import gpus

        devices, note = part("devices", gpus.gpus, (devices, ""))
        notes += [note] if note else []
    found = watched.found
    return RanksSeen(
        kind=kind,
        here=now,
        ranks=tuple(part("names of cells", lambda s=s: live.cells.rename_cells(s), s) for s in watched.states),  # type: ignore[misc]
        verdict=live.cells.rename_cells(found.verdict) if found.verdict else None,
        gpus=devices,
        notes=tuple(notes),
        seconds=time.monotonic() - begin,
        moved=watched.moved,
        timeline=live.cells.rename_cells(found.timeline) if found.timeline else None,
    )


def _is_open(found: Conclusion) -> bool:
    """True if one look can't show which ranks make progress."""
    return found.verdict is not None and (found.verdict.open or found.verdict.kind == "not_understood")


def conclude(
    run: RunFolder | None,
    states: Sequence[RankState],
    output: str,
    *,
    earlier: Verdict | None = None,
    moving: bool | None = None,
    progress: Mapping[int, str] | None = None,
) -> Conclusion:
    """Return the verdict on observed states, refined by the ranks' output, and the timeline.

    `earlier` was measured while no rank made progress; `moving` is True if they were seen to continue; `progress` is
    each rank's progress between two looks.
    """
    from dtdebug.live.job.judge import Basis, judge

    known = [s for s in states if s.rank is not None]
    if not known:
        return Conclusion()
    basis = Basis(output=output, earlier=earlier, measured=earlier is not None, moving=moving, progress=progress or {})
    found = judge(run, known, basis, timeline=True)
    return Conclusion(found.verdict, (*found.ended.notes, *found.notes), found.timeline, found.is_earlier)


def has_moved(before: Iterable[RankState], after: Iterable[RankState]) -> bool | None:
    """True if a rank moved between two looks; None if no rank was observed twice, some time apart."""
    from dtdebug.live.probe.stack_tree import compare

    early, late = ([_plain(state) for state in states] for states in (before, after))
    found = compare(early, late)
    if not {"slow", "busy"}.isdisjoint(found.values()):
        return True
    taken = {s.rank: s.time for s in early if s.time}
    apart = [s.rank for s in late if s.rank in taken and (s.time or 0.0) - (taken[s.rank] or 0.0) >= _APART]
    return False if any(found.get(rank or 0) == "stuck" for rank in apart) else None


def _plain(state: RankState) -> RankState:
    """Return the state with frames reduced to places: some records lack source lines."""
    places = tuple(Frame(f.file, f.line, f.function) for f in state.stack)
    return msgspec.structs.replace(state, stack=places)


def _ranks(live: Live, timeout: float) -> tuple[RankState, ...]:
    """Return the ranks known from the run's folder, this process and its children, sorted by rank."""
    from dtdebug.live.agent import own_state
    from dtdebug.live.probe import ask_all_ranks
    from dtdebug.live.probe.processes import ranks_below

    me = os.getpid()
    pids = ranks_below(me)[:_MOST]
    if live.run is not None:
        forget_earlier(live.run, pids, live.since)
    own = own_state.observe(detail=True)
    states = {s.pid or s.rank: s for s in ask_all_ranks.gather(live.run, pids=pids, timeout=timeout) if _is_rank(s)}
    if not any(s.alive for s in states.values()):
        states = {s.pid or s.rank: s for s in _on_engines(live.shell.user_ns, timeout)} or states
    if own is not None and _is_rank(own):
        states = {key: s for key, s in states.items() if s.rank != own.rank or s.pid == me} | {me: own}
    return tuple(sorted(states.values(), key=lambda s: (s.rank is None, s.rank or 0, s.pid or 0)))


def _is_rank(state: RankState) -> bool:
    return state.rank is not None or state.initialized


def forget_earlier(run: RunFolder, living: Iterable[int], since: float, kernel: int | None = None) -> None:
    """Remove files of jobs before the live ranks' one; if no rank is alive, files older than `since`.

    Records of live processes stay, whatever their age. `since` is the start of the cell, `kernel` the process of the
    kernel if it is not this process.
    """
    recorded = [_pid(path) for path in run.ranks.glob("*.json")]
    keep = {*living, *(pid for pid in recorded if pid and processes.liveness(pid) != "ended")}
    jobs = keep - {kernel or os.getpid()}  # a kernel is older than its jobs
    oldest = min((begin for pid in jobs if (begin := _start_time(pid)) is not None), default=since)
    moment = max(since, oldest - _EARLY) if oldest >= since - _ROUNDED else oldest - _EARLY
    for path in (*run.ranks.glob("*.json"), *run.flight.glob("*"), *run.errors.glob("*.json")):
        if path.parent == run.ranks and _pid(path) in keep:
            continue
        with suppress(OSError):
            if path.stat().st_mtime < moment:
                path.unlink()


def _pid(path: Path) -> int:
    pid = path.stem.partition("-")[0]
    return int(pid) if pid.isdecimal() and len(pid) < 10 else 0


def _start_time(pid: int) -> float | None:
    """Return the start time of a process in seconds since the epoch."""
    import psutil

    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return None


def _on_engines(names: dict[str, Any], timeout: float) -> list[RankState]:
    """Return the states of the workers of all engines found in the notebook's variables."""
    deadline = time.monotonic() + timeout
    tasks = [partial(_reach, adapter, client, timeout) for adapter, client in _engines(names)]
    found = until(begin(tasks, deadline), deadline)
    return [state for states in found if states is not None for state in states]


def _engines(names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield (adapter, client) of each engine."""
    for module, adapter in _CLIENTS.items():
        kind = getattr(sys.modules.get(module), "Client", None)
        clients = {id(v): v for v in list(names.values()) if isinstance(kind, type) and isinstance(v, kind)}
        yield from ((adapter, client) for client in clients.values())
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        yield "ray", ray


def _reach(adapter: str, client: Any, timeout: float) -> list[RankState]:
    reach: Callable[[Any], Reach] = import_module(f"dtdebug.live.probe.adapters.{adapter}").reach
    return list(reach(client)(timeout))
