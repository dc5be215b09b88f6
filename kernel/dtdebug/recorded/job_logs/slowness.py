"""Detects slow jobs from the step times that ranks print: a slow rank, steps that grew longer, a step that stalled."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

import msgspec

from dtdebug.recorded.job_logs.part import Gap, Stream
from dtdebug.recorded.job_logs.timestamps import format_clock
from dtdebug_taxonomy.model.ranks import spell
from dtdebug_taxonomy.model.training import Late

_ENOUGH = 3
"""Minimum number of ranks, and of steps of one rank, to compare."""
_LONGER = 1.5
"""Ratio of last to first steps from which a job has become slower."""


class Slowness(msgspec.Struct, frozen=True, kw_only=True):
    """Signs that a job is slow."""

    ranks: tuple[tuple[int, float, float], ...] = ()
    """(rank, seconds per step, the others' seconds per step), the slowest first."""
    longer: tuple[float, float] | None = None
    """Seconds per step at the start and at the end, if most ranks print longer steps at the end."""
    since: float | None = None
    """Time of the first steps."""
    stall: Gap | None = None
    """Step near the end that took far longer than the others."""
    stalled: tuple[int, ...] = ()
    """Ranks that print the stall."""

    @property
    def is_slow(self) -> bool:
        """True if there is any such sign."""
        return bool(self.ranks or self.longer is not None or self.stall is not None)


def slowness(by_rank: dict[int, Stream]) -> Slowness:
    """Return the signs of slowness in the step times of all ranks."""
    stalls = {rank: s.stall for rank, s in by_rank.items() if s.stall is not None}
    return Slowness(
        ranks=slow(by_rank),
        longer=_longer(by_rank.values()),
        since=min((s.marks[0][1] for s in by_rank.values() if s.marks), default=None),
        stall=max(stalls.values(), key=lambda gap: gap.seconds, default=None),
        stalled=tuple(sorted(stalls)),
    )


def slow(by_rank: dict[int, Stream]) -> tuple[tuple[int, float, float], ...]:
    """Return the ranks whose printed steps take at least a fifth longer than the others'."""
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
    """Return the slow ranks as `Late` records, for the diagnosis."""
    rows = [
        Late(
            ranks=(rank,), phase="other", share=own / (own + others),
            means=f"Rank {rank} prints {own:.3g} s a step, the others {others:.3g} s.",
        )
        for rank, own, others in found.ranks
    ]  # fmt: skip
    return (*rows, *(Late(ranks=(), phase="steps", share=1.0, means=f"{words}.") for words in sentences(found)))


def sentences(found: Slowness) -> list[str]:
    """Return sentences on the whole job, each without its full stop."""
    said = []
    if found.longer is not None:
        first, last = found.longer
        since = f" at {format_clock(found.since)}" if found.since is not None else ""
        said.append(f"Steps took {first:.3g} s at the beginning{since} and take {last:.3g} s at the end")
    if found.stall is not None:
        gap = found.stall
        who = spell(found.stalled, 8)
        said.append(f"After step {gap.step}, {format_clock(gap.time)}, the next one took {gap.seconds:.0f} s ({who})")
    return said
