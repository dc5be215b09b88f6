"""What can be told of a kernel and its ranks for next to nothing: no signal, no request, no look into a process.

Only what they have written themselves is read, and what the operating system shows of them.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence

import msgspec
import psutil

from dtdebug.job import movement
from dtdebug.notebook.cells import Here
from dtdebug.notebook.journal import LastCell
from dtdebug.notebook.seen import RanksSeen
from dtdebug.notebook.view import view
from dtdebug.probe.processes import liveness
from dtdebug.probe.watch import Progress, waits
from dtdebug.records.folder import RunFolder
from dtdebug.records.untrusted import tidy
from dtdebug_taxonomy.ranks import Operation, RankState
from dtdebug_taxonomy.view import View

_STANDS = 4.0
"""Seconds that counters may rest in a job that moves: records are written every two."""
_RESTS = 20.0
"""Seconds without use of a processor from which ranks that have no records are said to rest."""
_WAKES, _TICK = 0.005, 0.01
"""Part of a CPU that a main thread takes to poll, and seconds in which its time is counted."""
_APART = 60.0
"""Seconds between two glances from which it is not known what the ranks did meanwhile."""
_KERNELS = 64
"""Kernels of which it is remembered how far they were."""


class _Watched:
    """What the glances at one kernel have seen so far."""

    def __init__(self, begun: float) -> None:
        self.begun = begun
        """When its cell began: another cell is watched anew."""
        self.progress: Progress | None = None
        self.cpu: tuple[float, float] | None = None
        """(when, CPU seconds of the thread that runs cells)."""
        self.used: dict[int, movement.Work] = {}
        """What the kernel and its ranks had used at the last look."""
        self.rests: float | None = None
        """Since when none of them has used a processor."""


_watched: OrderedDict[int, _Watched] = OrderedDict()
_lock = threading.Lock()


def glance(folder: RunFolder | None, entry: LastCell | None, pid: int) -> View:
    """What is known of a kernel without asking it; that something hangs shows from the second glance on."""
    begin, now = time.monotonic(), time.time()
    running = entry if entry is not None and entry.running else None
    records = _records(folder, running.begun if running else now) if folder else ()
    states = tuple(_inside(tidy(record)) for record in records) or _unrecorded(pid)
    with _lock:
        watched = _remembered(pid, running.begun if running else 0.0)
        moved = _moved(watched, records, begin) if running else None
        busy = _busy(watched, pid, begin) if running else None
        rests = not records and (entry is None or running is not None)
        rested = _rested(watched, states, pid) if rests else 0.0
    here, spent = Here(busy=busy), time.monotonic() - begin
    seen = RanksSeen(kind="state", here=here, ranks=states, moved=moved, resting=rested, seconds=spent)
    return view(seen, road="outside", entry=running, taken=now)


def resting(states: Sequence[RankState], entry: LastCell | None, pid: int) -> float:
    """Seconds for which the kernel and its ranks have used no processor, as far as glances tell; 0 below a limit."""
    with _lock:
        return _rested(_remembered(pid, entry.begun if entry is not None and entry.running else 0.0), states, pid)


def _records(folder: RunFolder, since: float) -> tuple[RankState, ...]:
    """The records of the job at hand: what ended before the cell began belongs to another."""
    here, found = socket.gethostname(), []
    for record in folder.records():
        if record.pid and record.host in ("", here) and liveness(record.pid, record.time) == "ended":
            if (record.time or 0.0) < since:
                continue
            record = msgspec.structs.replace(record, alive=False, pending=None, stack=())  # noqa: PLW2901
        found.append(record)
    return tuple(sorted(found, key=lambda s: (s.rank is None, s.rank or 0, s.pid or 0)))


def _inside(record: RankState) -> RankState:
    """A plain record has counters alone: they tell that the rank is in an operation, but not in which."""
    if record.pending is not None or record.alive is False:
        return record
    begun = (
        g for g in record.groups if g.enqueued is not None and g.completed is not None and g.enqueued > g.completed
    )
    group = next(begun, None)
    pending = Operation(op="", group=group.name, seq=group.enqueued) if group else None
    return msgspec.structs.replace(record, pending=pending)


def _unrecorded(pid: int) -> tuple[RankState, ...]:
    """Ranks below a kernel that is not armed: the operating system shows that they are there."""
    from dtdebug.probe.processes import find_ranks

    host = socket.gethostname()
    return tuple(
        RankState(rank=each.rank, world_size=each.world_size, pid=each.pid, host=host, alive=True)
        for each in find_ranks(pid)
        if each.pid != pid
    )


def _remembered(pid: int, begun: float) -> _Watched:
    watched = _watched.get(pid)
    if watched is None or watched.begun != begun:
        watched = _watched[pid] = _Watched(begun)
    _watched.move_to_end(pid)
    while len(_watched) > _KERNELS:
        _watched.popitem(last=False)
    return watched


def _moved(watched: _Watched, records: Sequence[RankState], now: float) -> bool | None:
    """Whether counters have moved since the glance before; None where ranks may just compute, or are new."""
    if watched.progress is None:
        if records:
            watched.progress = Progress(now)
            watched.progress.look(records, 0, now)
        return None
    if watched.progress.look(records, 0, now):
        return True
    stands = any(map(waits, records)) and watched.progress.standing(records) >= _STANDS
    return False if stands else None


def _rested(watched: _Watched, states: Sequence[RankState], pid: int) -> float:
    """As `resting`. The kernel counts: while it computes, its ranks may be those of an earlier cell."""
    kernel = RankState(pid=pid, alive=True)
    now, before = movement.sample((kernel, *states), socket.gethostname()), watched.used
    last = min((work.time for work in before.values()), default=0.0)
    works, _ = movement.workers(before, now)
    works |= {each for each in now.keys() & before.keys() if each != pid and _trains(before[each], now[each])}
    if len(now) < 2 or now.keys() != before.keys() or works or time.monotonic() - last > _APART:
        watched.rests = None
    elif watched.rests is None:
        watched.rests = last
    watched.used = now
    rested = time.monotonic() - watched.rests if watched.rests is not None else 0.0
    return rested if rested >= _RESTS else 0.0


def _trains(before: movement.Work, now: movement.Work) -> bool:
    """The main thread has done something: one that hangs wakes at most to look whether it still has to wait."""
    return now.main - before.main > _WAKES * (now.time - before.time) + _TICK


def _busy(watched: _Watched, pid: int, now: float) -> float | None:
    """Part of a CPU that the kernel's main thread has used since the glance before."""
    try:
        used = next((float(sum(t[1:])) for t in psutil.Process(pid).threads() if t.id == pid), None)
    except (psutil.Error, OSError):
        used = None
    before, watched.cpu = watched.cpu, (now, used) if used is not None else None
    if before is None or used is None or now - before[0] < 1.0:
        return None
    return min(1.0, max(0.0, (used - before[1]) / (now - before[0])))
