"""Observes a kernel and its ranks at almost no cost: no signal, no request, no inspection of a process.

It reads only files that they have written themselves, and what the operating system reports about them.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence

import msgspec
import psutil

from dtdebug.live.job import progress
from dtdebug.live.probe.liveness import Progress, waits
from dtdebug.live.probe.processes import liveness
from dtdebug.notebook.cell_journal import LastCell
from dtdebug.notebook.cells import RunningCell
from dtdebug.notebook.panel_view import view
from dtdebug.notebook.ranks_seen import RanksSeen
from dtdebug.storage.run_folder import RunFolder
from dtdebug.storage.untrusted import tidy
from dtdebug_taxonomy.model.ranks import Operation, RankState
from dtdebug_taxonomy.model.ranks_view import View

_STANDS = 4.0
"""Seconds that counters may stay unchanged in a job that moves; records are written every two seconds."""
_RESTS = 20.0
"""Seconds without CPU use from which ranks without records are reported as idle."""
_WAKES, _TICK = 0.005, 0.01
"""Share of a CPU that a polling main thread uses, and resolution of its CPU time in seconds."""
_APART = 60.0
"""Seconds between two glances from which the activity in between is unknown."""
_KERNELS = 64
"""Maximum number of kernels whose progress is remembered."""


class _KernelHistory:
    """Observations of one kernel by earlier glances."""

    def __init__(self, begun: float) -> None:
        self.begun = begun
        """Start time of its cell; another cell resets the observations."""
        self.progress: Progress | None = None
        self.cpu: tuple[float, float] | None = None
        """(time, CPU seconds of the thread that runs cells)."""
        self.used: dict[int, progress.Work] = {}
        """Work that the kernel and its ranks had done at the last look."""
        self.rests: float | None = None
        """Time since which none of them has used a CPU."""


_watched: OrderedDict[int, _KernelHistory] = OrderedDict()
_lock = threading.Lock()


def glance(folder: RunFolder | None, entry: LastCell | None, pid: int) -> View:
    """Return the view of a kernel without asking it; a hang shows from the second glance on."""
    begin, now = time.monotonic(), time.time()
    running = entry if entry is not None and entry.running else None
    records = _records(folder, running.begun if running else now) if folder else ()
    states = tuple(_inside(tidy(record)) for record in records) or _ranks_below(pid)
    with _lock:
        watched = _watched_kernel(pid, running.begun if running else 0.0)
        moved = _has_moved(watched, records, begin) if running else None
        busy = _busy(watched, pid, begin) if running else None
        rests = not records and (entry is None or running is not None)
        rested = _idle_seconds(watched, states, pid) if rests else 0.0
    here, spent = RunningCell(busy=busy), time.monotonic() - begin
    seen = RanksSeen(kind="state", here=here, ranks=states, moved=moved, resting=rested, seconds=spent)
    return view(seen, road="outside", entry=running, taken=now)


def resting(states: Sequence[RankState], entry: LastCell | None, pid: int) -> float:
    """Return for how many seconds kernel and ranks were idle according to glances; 0 below the threshold."""
    with _lock:
        return _idle_seconds(
            _watched_kernel(pid, entry.begun if entry is not None and entry.running else 0.0), states, pid
        )


def _records(folder: RunFolder, since: float) -> tuple[RankState, ...]:
    """Return the records of the current job; ranks that ended before the cell started belong to an earlier one."""
    here, found = socket.gethostname(), []
    for record in folder.records():
        if record.pid and record.host in ("", here) and liveness(record.pid, record.time) == "ended":
            if (record.time or 0.0) < since:
                continue
            record = msgspec.structs.replace(record, alive=False, pending=None, stack=())  # noqa: PLW2901
        found.append(record)
    return tuple(sorted(found, key=lambda s: (s.rank is None, s.rank or 0, s.pid or 0)))


def _inside(record: RankState) -> RankState:
    """Mark a rank as in an operation if its counters say so; a plain record does not name the operation."""
    if record.pending is not None or record.alive is False:
        return record
    begun = (
        g for g in record.groups if g.enqueued is not None and g.completed is not None and g.enqueued > g.completed
    )
    group = next(begun, None)
    pending = Operation(op="", group=group.name, seq=group.enqueued) if group else None
    return msgspec.structs.replace(record, pending=pending)


def _ranks_below(pid: int) -> tuple[RankState, ...]:
    """Return the ranks below a kernel that is not armed, as the operating system shows them."""
    from dtdebug.live.probe.processes import find_ranks

    host = socket.gethostname()
    return tuple(
        RankState(rank=each.rank, world_size=each.world_size, pid=each.pid, host=host, alive=True)
        for each in find_ranks(pid)
        if each.pid != pid
    )


def _watched_kernel(pid: int, begun: float) -> _KernelHistory:
    watched = _watched.get(pid)
    if watched is None or watched.begun != begun:
        watched = _watched[pid] = _KernelHistory(begun)
    _watched.move_to_end(pid)
    while len(_watched) > _KERNELS:
        _watched.popitem(last=False)
    return watched


def _has_moved(watched: _KernelHistory, records: Sequence[RankState], now: float) -> bool | None:
    """True if counters changed since the last glance; None if the ranks may be computing, or are new."""
    if watched.progress is None:
        if records:
            watched.progress = Progress(now)
            watched.progress.look(records, 0, now)
        return None
    if watched.progress.look(records, 0, now):
        return True
    stands = any(map(waits, records)) and watched.progress.standing(records) >= _STANDS
    return False if stands else None


def _idle_seconds(watched: _KernelHistory, states: Sequence[RankState], pid: int) -> float:
    """Return the idle seconds, as `resting`. A kernel that computes counts: its ranks may be of an earlier cell."""
    kernel = RankState(pid=pid, alive=True)
    now, before = progress.sample((kernel, *states), socket.gethostname()), watched.used
    last = min((work.time for work in before.values()), default=0.0)
    works, _ = progress.workers(before, now)
    works |= {each for each in now.keys() & before.keys() if each != pid and _trains(before[each], now[each])}
    if len(now) < 2 or now.keys() != before.keys() or works or time.monotonic() - last > _APART:
        watched.rests = None
    elif watched.rests is None:
        watched.rests = last
    watched.used = now
    rested = time.monotonic() - watched.rests if watched.rests is not None else 0.0
    return rested if rested >= _RESTS else 0.0


def _trains(before: progress.Work, now: progress.Work) -> bool:
    """True if the main thread did real work: a hung one wakes only to check whether it still has to wait."""
    return now.main - before.main > _WAKES * (now.time - before.time) + _TICK


def _busy(watched: _KernelHistory, pid: int, now: float) -> float | None:
    """Return the share of a CPU that the kernel's main thread has used since the last glance."""
    try:
        used = next((float(sum(t[1:])) for t in psutil.Process(pid).threads() if t.id == pid), None)
    except (psutil.Error, OSError):
        used = None
    before, watched.cpu = watched.cpu, (now, used) if used is not None else None
    if before is None or used is None or now - before[0] < 1.0:
        return None
    return min(1.0, max(0.0, (used - before[1]) / (now - before[0])))
