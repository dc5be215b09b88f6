"""torchrun starts all ranks anew when one fails: only those of the last attempt can be compared with each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dtdebug.clean import one_line
from dtdebug_taxonomy.ranks import RankState

_COUNT = "TORCHELASTIC_RESTART_COUNT"
_SHOWN = 200
"""Characters of an exception that a note tells."""


class Attempts(NamedTuple):
    """Ranks by whether they are of the last attempt."""

    last: tuple[RankState, ...]
    earlier: tuple[RankState, ...]
    """Those that have ended; one that still runs may hold what the last attempt needs."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What ended each attempt before the last."""
        return tuple(_told(number, self.earlier) for number in sorted({_number(state) for state in self.earlier}))


def attempts(states: Sequence[RankState]) -> Attempts:
    """Where no launcher counts attempts, all are of the last one."""
    newest = max(map(_number, states), default=0)

    def is_left(state: RankState) -> bool:
        return _COUNT in state.environment and _number(state) < newest and state.alive is not True

    return Attempts(tuple(s for s in states if not is_left(s)), tuple(filter(is_left, states)))


def _number(state: RankState) -> int:
    text = state.environment.get(_COUNT, "")
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def _told(number: int, states: Iterable[RankState]) -> str:
    raised = [s for s in states if s.exception and _number(s) == number]
    first = min(raised, key=lambda s: (s.time or 0.0) + s.clock_offset, default=None)
    why = f": rank {first.rank} raised {one_line(first.exception, _SHOWN)}" if first else ""
    return f"attempt {number + 1} ended before and is left out{why}"
