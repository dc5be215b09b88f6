"""Finds late ranks and their phase by comparing the ranks' shares of phases, since a single stack misleads.

A rank that waits for another shows a long backward pass or a long collective; the rank that it waits for spends more
time than the others in another phase.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from dtdebug.experiments.invariants.judge.common import who
from dtdebug.experiments.invariants.read_records import Rank
from dtdebug.experiments.invariants.record_types import Phases
from dtdebug_taxonomy.model.training import Late, Pace

WAITING = frozenset(("backward", "communication"))
"""Phases that get longer by waiting for another rank."""
_SAMPLES, _MORE, _TIMES, _WINDOWS = 100, 0.2, 1.5, 0.6
"""Minimum samples of a rank; minimum excess and ratio of its share; minimum share of windows that show it."""
_STARVED, _STEPS = 0.4, 10
"""Minimum share of time in the loader that slows down all ranks; minimum steps of a compared training."""


def paces(ranks: Sequence[Rank]) -> tuple[Pace, ...]:
    """Return each rank's speed and shares of phases."""
    found = []
    for rank in ranks:
        rows = rank.of(Phases)
        counts: Counter[str] = Counter()
        for row in rows:
            counts.update(row.counts)
        samples, seconds, steps = sum(counts.values()), sum(r.seconds for r in rows), sum(r.steps for r in rows)
        if samples > 0 and seconds > 0:
            found.append(
                Pace(
                    rank=rank.rank,
                    seconds=round(seconds, 2),
                    samples=samples,
                    step_seconds=round(seconds / steps, 5) if steps > 0 else None,
                    shares={phase: round(n / samples, 3) for phase, n in counts.most_common(8)},
                )
            )
    return tuple(found)


def late(ranks: Sequence[Rank]) -> tuple[Late, ...]:
    """Return the ranks that make others wait, or the phase that slows down all."""
    known = [p for p in paces(ranks) if p.samples >= _SAMPLES and p.seconds and _steps(p) >= _STEPS]
    if len(known) < 2 or len(known) < len(ranks):
        return ()
    by_rank = {r.rank: r for r in ranks}
    found: list[Late] = []
    for pace in known:
        others = [p for p in known if p is not pace]
        for phase, share in pace.shares.items():
            usual = median(p.shares.get(phase, 0.0) for p in others)
            waits = median(_waiting(p) for p in others) - _waiting(pace)
            if phase in WAITING or share - usual < _MORE or share < _TIMES * usual or waits < _MORE / 2:
                continue
            if not _lasting(by_rank, pace.rank, phase, [p.rank for p in others]):
                continue
            file, line = _line(by_rank[pace.rank], phase)
            found.append(
                Late(
                    ranks=(pace.rank,), phase=phase, share=share, others=usual, file=file, line=line,
                    means=f"Rank {pace.rank} spends {share:.0%} of its time in {_NAMES.get(phase, phase)}, the others "
                    f"{usual:.0%}: "
                    f"they wait for it ({median(_waiting(p) for p in others):.0%} of theirs in backward passes and "
                    "collectives, "
                    f"{_waiting(pace):.0%} of its own).",
                )
            )  # fmt: skip
    if not found and all(p.shares.get("loader", 0.0) >= _STARVED for p in known):
        share = median(p.shares["loader"] for p in known)
        file, line = _line(by_rank[known[0].rank], "loader")
        all_ = tuple(p.rank for p in known)
        found.append(
            Late(
                ranks=all_, phase="loader", share=share, file=file, line=line,
                means=f"{who(all_)} wait for their loaders {share:.0%} of the time: loading can't feed the training.",
            )
        )  # fmt: skip
    return tuple(found)


_NAMES = {
    "loader": "the loader", "forward": "the forward pass", "optimizer": "the optimizer", "save": "saving",
    "other": "the program's own code",
}  # fmt: skip


def _steps(pace: Pace) -> float:
    return pace.seconds / pace.step_seconds if pace.step_seconds else 0.0


def _waiting(pace: Pace) -> float:
    return sum(share for phase, share in pace.shares.items() if phase in WAITING)


def _lasting(by_rank: dict[int, Rank], rank: int, phase: str, others: Sequence[int]) -> bool:
    """True if it holds in most windows, not only once, as in an evaluation on one rank."""
    usual = median(
        sum(r.counts.get(phase, 0) for r in by_rank[o].of(Phases))
        / max(1, sum(sum(r.counts.values()) for r in by_rank[o].of(Phases)))
        for o in others
    )
    windows = [r.counts.get(phase, 0) / max(1, sum(r.counts.values())) for r in by_rank[rank].of(Phases)]
    return sum(share - usual >= _MORE / 2 for share in windows) >= _WINDOWS * len(windows)


def _line(rank: Rank, phase: str) -> tuple[str, int]:
    counts: Counter[tuple[str, int]] = Counter()
    for row in rank.of(Phases):
        for name, file, line, number in row.lines:
            if name == phase:
                counts[file, line] += number
    return counts.most_common(1)[0][0] if counts else ("", 0)
