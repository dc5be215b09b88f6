"""Looks again within one question: a wait in a job that moves looks like the begin of a hang.

What the ranks wrote before the question tells nothing of that, for the record of a rank that rests may be five seconds
old.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import psutil

from dtdebug_taxonomy.ranks import RankState

if TYPE_CHECKING:
    from dtdebug.notebook.seen import Conclusion

_LONG = 3.0
"""Seconds after which a wait is told from those of a job that moves."""
_PAUSE, _LEAST = 0.1, 1.0
"""Seconds between two looks, and that the ranks have at least to answer the later ones."""
_BUSY = 0.5
"""Part of a CPU from which a rank is believed to compute: looking at it takes some, too."""


class LastSeen(NamedTuple):
    """The ranks as they were seen last, what follows from that, and whether they moved until then."""

    states: tuple[RankState, ...]
    found: Conclusion
    moved: bool | None


def watch(
    seen: LastSeen, again: Callable[[float], tuple[RankState, ...]], follows: Callable[..., Conclusion], until: float
) -> LastSeen:
    """Concludes; where all waits are young, looks again until one is not, or they are over.

    A rank for which others wait and which computes meanwhile is not waited for: it may come at any time.
    """
    states, moves, lasts = seen.states, seen.moved, False
    found, work = follows(states), _Work(states)
    while (left := until - time.monotonic()) > 0 and _is_open(found, states, lasts=lasts):
        time.sleep(_PAUSE)
        later = again(max(left, _LEAST))
        lasts = not _waits(states).isdisjoint(_waits(later))
        states, moves, found = later, None if lasts else True, follows(later, moving=None if lasts else True)
        if not lasts or work.goes_on():
            break
    return LastSeen(states, found, moves)


def _is_open(found: Conclusion, states: Iterable[RankState], *, lasts: bool) -> bool:
    """One more look may change what is concluded."""
    ages = [_age(s) for s in states if s.pending is not None and s.alive is not False]
    if not ages or found.verdict is None or found.verdict.kind in ("dead", "gil_held"):
        return False
    unsettled = found.verdict.kind in ("none", "not_understood") or not lasts or _sleeps(found, states)
    return max(ages) < _LONG and unsettled


def _sleeps(found: Conclusion, states: Iterable[RankState]) -> bool:
    """A rank that is waited for waits for a timer, which ends by itself."""
    culprits = found.verdict.culprits if found.verdict is not None else ()
    return any(s.rank in culprits and s.waiting is not None and s.waiting.kind == "sleep" for s in states)


def _age(state: RankState) -> float:
    """Seconds for which the rank has waited; 0 where nobody knows, as of what the recorder leaves out."""
    begun = state.pending.since if state.pending is not None else None
    return state.time - begun if state.time and begun else 0.0


def _waits(states: Iterable[RankState]) -> set[object]:
    """Who waits in what, and how far it has come: a rank that goes on waits in another or has counted more."""
    return {
        (s.pid, s.rank, s.step, p.op, p.group, p.seq, p.peer, p.since, tuple((g.name, g.completed) for g in s.groups))
        for s in states
        if (p := s.pending) is not None and s.alive is not False
    }


class _Work:
    """The CPU time of those ranks of this host that do not wait."""

    def __init__(self, states: Sequence[RankState]) -> None:
        here = socket.gethostname()
        self._pids = [s.pid for s in states if s.pid and s.host == here and s.pending is None]
        self._begun, self._used = time.monotonic(), self._now()

    def _now(self) -> dict[int, float]:
        used = {}
        for pid in self._pids:
            try:
                times = psutil.Process(pid).cpu_times()
            except psutil.Error:
                continue
            used[pid] = times.user + times.system
        return used

    def goes_on(self) -> bool:
        """One of them has computed since."""
        enough = _BUSY * (time.monotonic() - self._begun)
        return any(used - self._used.get(pid, used) > enough for pid, used in self._now().items())
