"""Repeats the look within one question, because a wait in a moving job looks like the start of a hang.

Records from before the question don't decide that: the record of an idle rank may be five seconds
old.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import psutil

from dtdebug_taxonomy.model.ranks import RankState

if TYPE_CHECKING:
    from dtdebug.notebook.ranks_seen import Conclusion

_LONG = 3.0
"""Seconds after which a wait is longer than those of a job that moves."""
_PAUSE, _LEAST = 0.1, 1.0
"""Seconds between two looks, and the least time that ranks have to answer the later ones."""
_BUSY = 0.5
"""Share of a CPU from which a rank counts as computing; inspecting it uses some CPU, too."""


class LastSeen(NamedTuple):
    """Last observed states of the ranks, the conclusion, and whether they moved until then."""

    states: tuple[RankState, ...]
    found: Conclusion
    moved: bool | None


def watch(
    seen: LastSeen, again: Callable[[float], tuple[RankState, ...]], follows: Callable[..., Conclusion], until: float
) -> LastSeen:
    """Conclude from the states; while all waits are short, look again until one is long enough or they end.

    A rank that others wait for and that computes meanwhile is not blamed: it may arrive at any time.
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
    """True if one more look may change the conclusion."""
    ages = [_age(s) for s in states if s.pending is not None and s.alive is not False]
    if not ages or found.verdict is None or found.verdict.kind in ("dead", "gil_held"):
        return False
    unsettled = found.verdict.kind in ("none", "not_understood") or not lasts or _sleeps(found, states)
    return max(ages) < _LONG and unsettled


def _sleeps(found: Conclusion, states: Iterable[RankState]) -> bool:
    """True if a rank that others wait for is in a timed sleep, which ends by itself."""
    culprits = found.verdict.culprits if found.verdict is not None else ()
    return any(s.rank in culprits and s.waiting is not None and s.waiting.kind == "sleep" for s in states)


def _age(state: RankState) -> float:
    """Return for how many seconds the rank has waited; 0 if unknown, as for operations missing from the recorder."""
    begun = state.pending.since if state.pending is not None else None
    return state.time - begun if state.time and begun else 0.0


def _waits(states: Iterable[RankState]) -> set[object]:
    """Return each rank's wait and counters; a rank that continues waits in another operation or has counted more."""
    return {
        (s.pid, s.rank, s.step, p.op, p.group, p.seq, p.peer, p.since, tuple((g.name, g.completed) for g in s.groups))
        for s in states
        if (p := s.pending) is not None and s.alive is not False
    }


class _Work:
    """CPU time of the local ranks that do not wait."""

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
        """True if one of them has computed since."""
        enough = _BUSY * (time.monotonic() - self._begun)
        return any(used - self._used.get(pid, used) > enough for pid, used in self._now().items())
