"""Finds ranks that went silent or fell behind, from the times and steps that they print."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from statistics import median

import msgspec

from dtdebug.recorded.job_logs.part import Stream
from dtdebug.recorded.job_logs.timestamps import format_clock
from dtdebug_taxonomy.logs.log import Outcome
from dtdebug_taxonomy.model.claims import Claim, Record, texts
from dtdebug_taxonomy.model.ranks import Verdict, spell

_SILENT, _BEHIND = 30.0, 5.0
"""Seconds between a rank's last line and the others', and factor by which this must exceed their spread."""
_MOST_SILENT = 0.5
"""Share of the ranks from which silent ranks are no longer the exception."""
_SURE, _SURE_STEPS = 20.0, 4
"""Seconds and steps for which others may continue after one has failed."""
_FEW_STEPS = 10
"""Steps by which ranks may differ because not every rank prints every step."""
_MINUTES = 120.0
"""Seconds from which a silence is given in minutes."""
_ENOUGH = 3
"""Minimum number of ranks to compare one with the rest."""


class SilentRank(msgspec.Struct, frozen=True, kw_only=True):
    """Rank that stopped printing while others continued."""

    rank: int
    host: str
    since: float | None
    before: float
    """Seconds before the others' last line."""
    step: int | None = None
    others: int | None = None
    """Last step of the others, if it printed steps as they did and they continued."""

    @property
    def words(self) -> str:
        """Its silence, as a predicate."""
        if self.since is None or self.before < 1:
            return "does not report the failure"
        if self.others is None:
            return f"printed nothing since {format_clock(self.since)}, {self.before:.0f} s before the others"
        long = f"{self.before / 60:.0f} min" if self.before >= _MINUTES else f"{self.before:.0f} s"
        return f"has printed nothing for {long}; the others went on to step {self.others:,}"


def left_behind(by_rank: dict[int, Stream], failed: Collection[int | None]) -> tuple[SilentRank, ...]:
    """Return the ranks that printed steps as the others did, and then nothing while the others continued for long.

    It counts by the last step of the others: what they print later is the end of the job.
    """
    known = {
        rank: (s.last, s.step, s.progress.time)
        for rank, s in by_rank.items()
        if s.last is not None and s.step is not None and s.progress is not None and s.progress.time is not None
    }
    late = {rank for rank, _, _ in behind(by_rank)} & known.keys() - {rank for rank in failed if rank is not None}
    ends = [time for rank, (_, _, time) in known.items() if rank not in late]
    if len(ends) < _ENOUGH:
        return ()
    end, most = median(ends), max(step for rank, (_, step, _) in known.items() if rank not in late)
    rows = []
    for rank in late:
        last, step, _ = known[rank]
        if end - last > max(_SILENT, _BEHIND * _between(by_rank[rank])[1]):
            host = by_rank[rank].host
            rows.append(
                SilentRank(rank=rank, host=host, since=last, before=round(end - last, 3), step=step, others=most)
            )
    return tuple(sorted(rows, key=lambda s: (s.since or 0.0, s.rank)))


def stepped_until(s: Stream, line: int, time: float | None) -> bool:
    """True if a rank printed steps until shortly before a line of its log, and none after it."""
    step = s.progress
    if step is None or step.time is None or time is None or step.line > line:
        return False
    return time - step.time <= max(_SILENT, _BEHIND * (_pace(s) or 0.0))


def _pace(s: Stream) -> float | None:
    """Return the seconds between the first steps that a rank printed."""
    (first, began), (last, ended) = (s.marks[0], s.marks[-1]) if len(s.marks) > 1 else ((0, 0.0), (0, 0.0))
    return (ended - began) / (last - first) if last > first else None


def _between(s: Stream) -> tuple[float, float]:
    """Return the steps and the seconds between two lines with a step, of the first that a rank printed."""
    if len(s.marks) < _ENOUGH:
        return 0.0, 0.0
    (first, began), (last, ended) = s.marks[0], s.marks[-1]
    return (last - first) / (len(s.marks) - 1), (ended - began) / (len(s.marks) - 1)


def silent(by_rank: dict[int, Stream], found: Outcome, on_until: float | None) -> tuple[SilentRank, ...]:
    """Return the ranks that stopped printing well before the others and did not fail themselves.

    Ranks take their steps together: one that went silent while training continued just prints little, unless the others
    end in a failure that it does not mention and no rank reports a failure of its own.
    """
    ends_badly = any(s.end for s in by_rank.values()) or bool(found.exits or found.own)
    if not ends_badly and on_until is None:
        return ()
    failed = {r.rank for r in found.own} | {e.rank for e in found.exits}
    timed = {rank: s for rank, s in by_rank.items() if s.last is not None}
    if len(timed) < _ENOUGH:
        return ()
    ends = sorted(s.last for s in timed.values() if s.last is not None)
    middle = median(ends)
    spread = median(abs(end - middle) for end in ends)
    bound = max(_SILENT, _BEHIND * spread)
    early = [
        SilentRank(rank=rank, host=s.host, since=s.last, before=round(middle - s.last, 3), step=s.step)
        for rank, s in timed.items()
        if s.last is not None and middle - s.last > bound and rank not in failed and not s.end
        and (on_until is None or s.last >= on_until or (ends_badly and not found.own))
    ]  # fmt: skip
    if len(early) > _MOST_SILENT * len(timed):
        return ()
    return tuple(sorted(early, key=lambda s: (s.since or 0.0, s.rank)))


def quiet(ranks: Sequence[int], by_rank: dict[int, Stream]) -> tuple[SilentRank, ...]:
    """Return the ranks that print, but do not mention the failure that all others report."""
    ends = [s.last for s in by_rank.values() if s.last is not None]
    middle = median(ends) if ends else 0.0
    return tuple(
        SilentRank(
            rank=r, host=s.host, since=s.last, before=round(max(middle - (s.last or middle), 0.0), 3), step=s.step
        )
        for r in ranks
        if (s := by_rank.get(r)) is not None
    )


def of_silent(rows: Sequence[SilentRank], by_rank: dict[int, Stream]) -> Verdict | None:
    """Return a verdict on the ranks that went silent first, if no rank reports a failure and the others wait."""
    if not rows or not any(s.kind for s in by_rank.values()):
        return None
    begin = rows[0].since or 0.0
    culprits = tuple(s.rank for s in rows if (s.since or 0.0) - begin < _SILENT)
    others = tuple(sorted(set(by_rank) - {s.rank for s in rows}))
    if len(culprits) * 4 > len(by_rank):
        return None
    claims = tuple(
        Claim(
            what="silent",
            ranks=(s.rank,),
            hosts=(s.host,) if s.host else (),
            words=f"no line since {format_clock(s.since)}, {s.before:.0f} s before the others",
            record=Record(source="output", line=by_rank[s.rank].line, path=by_rank[s.rank].file, rank=s.rank),
        )
        for s in rows[:16]
    )
    who = spell(culprits, 8)
    return Verdict(
        kind="not_arrived",
        culprits=culprits,
        waiting=others,
        confidence=0.8 if len(culprits) == 1 else 0.6,
        summary=f"{who[:1].upper()}{who[1:]} {rows[0].words}; no rank reports a failure of its own."
        if rows[0].others is not None
        else f"{who[:1].upper()}{who[1:]} printed nothing since {format_clock(rows[0].since)}, "
        f"{rows[0].before:.0f} s before the others; no rank reports a failure of its own.",
        claims=claims,
        evidence=texts(claims),
    )


def notes(rows: Sequence[SilentRank], accused: Collection[int]) -> tuple[str, ...]:
    """Return a sentence on the first silent rank, if the answer blames others."""
    rest = [s for s in rows if s.rank not in accused and s.others is not None]
    if not rest:
        return ()
    more = f" (and {len(rest) - 1} more ranks)" if len(rest) > 1 else ""
    return (f"rank {rest[0].rank} {rest[0].words}{more}",)


def last_step_time(streams: Sequence[Stream]) -> float | None:
    """Return the time of the last step that any rank printed."""
    ends = [s.progress.time for s in streams if s.progress is not None and s.progress.time is not None]
    return max(ends, default=None)


def on_until(streams: Sequence[Stream]) -> float | None:
    """Return the time until which training certainly continued: some steps before the last one printed by any rank.

    Because all ranks take their steps together, a failure before that time did not end the job.
    """
    end = last_step_time(streams)
    if end is None:
        return None
    steps = [pace for s in streams if (pace := _pace(s)) is not None]
    return end - max(_SURE, _SURE_STEPS * (median(steps) if steps else 0.0))


def behind(by_rank: dict[int, Stream], known: Collection[int] = ()) -> tuple[tuple[int, int, int], ...]:
    """Return the ranks whose last step is many steps before the others', except those that are known as silent."""
    steps = {rank: s.step for rank, s in by_rank.items() if s.step is not None}
    if len(steps) < _ENOUGH:
        return ()
    most = int(median(steps.values()))
    spread = median(abs(step - most) for step in steps.values())
    few = max(_FEW_STEPS, 5 * spread)
    late = [(r, step, most) for r, step in steps.items() if step < most - max(few, _between(by_rank[r])[0])]
    late.sort(key=lambda row: row[1])
    return tuple(row for row in late[:16] if row[0] not in known) if len(late) * 4 <= len(steps) else ()
