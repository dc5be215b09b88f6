"""Collects the results of the watch over a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from dtdebug.experiments.invariants.judge import judge
from dtdebug.experiments.invariants.judge.model_state import same_draws
from dtdebug.experiments.invariants.judge.no_exchange import own_beginnings
from dtdebug.experiments.invariants.judge.stragglers import late, paces
from dtdebug.experiments.invariants.read_records import Rank, read_ranks
from dtdebug.experiments.invariants.record_types import Backward, EndOfNotes, NotesFull, Step, WatchOff
from dtdebug.privacy.sanitize import clean, one_line
from dtdebug_taxonomy.model.rank_ranges import spell
from dtdebug_taxonomy.model.training import Late, Pace, Violation

FOLDER = "watch"
"""Folder of all processes' notes, below the run's folder."""
_SHOWN = 8
NOTHING_SEEN = "watch: no rank of a training was seen"


class WatchResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a watch."""

    violations: tuple[Violation, ...] = ()
    pace: tuple[Pace, ...] = ()
    late: tuple[Late, ...] = ()
    notes: tuple[str, ...] = ()
    """Number of inspected steps and their cost; findings that may be intended."""


def watch_result(run: Path) -> WatchResult | None:
    """Return the result from the folder of a run, or None if it was not watched."""
    if not (run / FOLDER).is_dir():
        return None
    ranks = read_ranks(run / FOLDER)
    return WatchResult(
        violations=found_in(ranks),
        pace=paces(ranks),
        late=tuple(msgspec.structs.replace(row, file=clean(row.file)) for row in late(ranks)),
        notes=(_cost(ranks), *same_draws(ranks), *own_beginnings(ranks)),
    )


def found_in(ranks: list[Rank]) -> tuple[Violation, ...]:
    """Return the violations, safe to be shown."""
    return tuple(
        msgspec.structs.replace(v, file=clean(v.file), means=one_line(v.means, 600), fix=one_line(v.fix, 600))
        for v in judge(ranks)
    )


def _cost(ranks: list[Rank]) -> str:
    if not ranks:
        return f"{NOTHING_SEEN}: torch was not imported, no model was trained, or the watch had ended itself"
    looks = sum(len(r.of(Step)) for r in ranks)
    steps = max((s.s for r in ranks for s in r.of(Step)), default=0)
    ends = [e for r in ranks for e in r.of(EndOfNotes)]
    text = f"watch: {spell(tuple(r.rank for r in ranks), 8)}, {steps} steps, {looks} looks at one"
    if ends:
        spent, seconds = max(e.spent for e in ends), max(e.seconds for e in ends)
        text += f", at a cost of {spent:.2f} s of {seconds:.1f} s"
    off = [f"rank {r.rank}: {one_line(row.why, 200)}" for r in ranks for row in r.of(WatchOff)]
    text += f"; off on {'; '.join(off[:4])}" if off else ""
    text += "; the notes of some rank reached their limit" if any(r.of(NotesFull) for r in ranks) else ""
    return text + ("" if any(r.of(Backward) for r in ranks) else "; no backward pass was seen")


def lines(violations: tuple[Violation, ...], slow: tuple[Late, ...]) -> Iterator[str]:
    """Yield the lines for a terminal."""
    for v in violations[:_SHOWN]:
        place = f" at {v.file}:{v.line}" if v.file else ""
        yield f"{v.invariant}: {spell(v.ranks, 8)}, step {v.step}{place}"
        yield from (f"  {text}" for text in (v.cause, v.means, "" if v.cause else v.fix) if text)
    if len(violations) > _SHOWN:
        yield f"... {len(violations) - _SHOWN} more with --format json"
    for row in slow[:_SHOWN]:
        yield f"slow: {row.means}{f' At {row.file}:{row.line}.' if row.file else ''}"
