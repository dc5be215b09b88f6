"""Slow jobs by the step times that ranks print: a slow rank, steps that grew longer, a step that stalled."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

import msgspec

from dtdebug.triage.clock import shown
from dtdebug.triage.part import Gap, Stream
from dtdebug_taxonomy.ranks import spell
from dtdebug_taxonomy.watched import Late

_ENOUGH = 3
"""Ranks, and steps of one, from which on they can be compared."""
_LONGER = 1.5
"""Times the first steps from which on the last ones are longer."""


class Slowness(msgspec.Struct, frozen=True, kw_only=True):
    """What shows that a job is slow."""

    ranks: tuple[tuple[int, float, float], ...] = ()
    """(rank, seconds of its steps, seconds of the others'), the slowest first."""
    longer: tuple[float, float] | None = None
    """Seconds of the first steps and of the last ones, where most ranks print longer ones at the end."""
    since: float | None = None
    """Time of the first steps."""
    stall: Gap | None = None
    """A step near the end that took far longer than the others."""
    stalled: tuple[int, ...] = ()
    """Ranks that print it so."""

    @property
    def is_slow(self) -> bool:
        """Whether anything shows it."""
        return bool(self.ranks or self.longer is not None or self.stall is not None)


def slowness(by_rank: dict[int, Stream]) -> Slowness:
    """What the step times of all ranks show."""
    stalls = {rank: s.stall for rank, s in by_rank.items() if s.stall is not None}
    return Slowness(
        ranks=slow(by_rank),
        longer=_longer(by_rank.values()),
        since=min((s.marks[0][1] for s in by_rank.values() if s.marks), default=None),
        stall=max(stalls.values(), key=lambda gap: gap.seconds, default=None),
        stalled=tuple(sorted(stalls)),
    )


def slow(by_rank: dict[int, Stream]) -> tuple[tuple[int, float, float], ...]:
    """Ranks whose printed steps take at least a fifth longer than those of the others."""
    own = {rank: median(s.paces) for rank, s in by_rank.items() if len(s.paces) >= _ENOUGH}
    if len(own) < _ENOUGH:
        return ()
    middle = median(own.values())
    spread = median(abs(p - middle) for p in own.values())
    rows = [(r, p, middle) for r, p in own.items() if p > 1.2 * middle and p - middle > 5 * spread]
    return tuple(sorted(rows, key=lambda row: -row[1])[:16]) if len(rows) * 4 <= len(own) else ()


def _longer(streams: Iterable[Stream]) -> tuple[float, float] | None:
    known = [s for s in streams if min(len(s.first_paces), len(s.paces)) >= _ENOUGH]
    both = [(median(s.first_paces), median(s.paces)) for s in known]
    if not both or sum(last > _LONGER * first for first, last in both) * 2 <= len(both):
        return None
    return median(first for first, _ in both), median(last for _, last in both)


def late(found: Slowness) -> tuple[Late, ...]:
    """The same as what makes the others wait, for the diagnosis."""
    rows = [
        Late(
            ranks=(rank,), phase="other", share=own / (own + others),
            means=f"Rank {rank} prints {own:.3g} s a step, the others {others:.3g} s.",
        )
        for rank, own, others in found.ranks
    ]  # fmt: skip
    return (*rows, *(Late(ranks=(), phase="steps", share=1.0, means=f"{words}.") for words in sentences(found)))


def sentences(found: Slowness) -> list[str]:
    """What holds for the whole job, a sentence without its full stop each."""
    said = []
    if found.longer is not None:
        first, last = found.longer
        since = f" at {shown(found.since)}" if found.since is not None else ""
        said.append(f"Steps took {first:.3g} s at the beginning{since} and take {last:.3g} s at the end")
    if found.stall is not None:
        gap = found.stall
        who = spell(found.stalled, 8)
        said.append(f"After step {gap.step}, {shown(gap.time)}, the next one took {gap.seconds:.0f} s ({who})")
    return said
