"""Separates ranks that failed on their own from ranks that failed as a consequence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from dtdebug.recorded.job_logs.merged_output import MergedOutput
from dtdebug.recorded.job_logs.part import Stream
from dtdebug_taxonomy.knowledge.hardware import Event
from dtdebug_taxonomy.logs.events import PrintedException
from dtdebug_taxonomy.logs.log import Outcome
from dtdebug_taxonomy.model.ranks import Verdict
from dtdebug_taxonomy.stacks.frames import short, shown_frame

_FIRST = 64
_MANY, _FEW = 2, 4
"""Minimum number of ranks, and divisor of all ranks, that must report a lost peer if there is no other evidence."""


class FirstFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Rank that failed on its own."""

    rank: int | None
    host: str
    time: float | None
    line: int
    file: str
    exception: str
    text: str


def first_failures(
    found: Outcome,
    verdict: Verdict | None,
    laid: MergedOutput,
    by_rank: dict[int, Stream],
    hardware: Sequence[Event],
) -> tuple[FirstFailure, ...]:
    """Return the ranks that failed on their own, the earliest first; ranks accused by the verdict precede others."""
    accused = set(verdict.culprits) if verdict is not None else set()
    rows = [_row(r, laid, by_rank) for r in found.own]
    seen = {row.rank for row in rows}
    rows.sort(key=lambda row: row.rank not in accused if accused else False)
    if verdict is None or not accused or accused & seen:
        return tuple(rows[:_FIRST])
    ends = {e.rank: e for e in found.exits}
    told = {e.rank: e for e in reversed(hardware) if e.rank is not None and e.role == "root"}
    said = {c.ranks[0]: c for c in verdict.claims if c.what == "printed" and c.ranks and c.record.path}
    for rank in sorted(accused)[:_FIRST]:
        s = by_rank.get(rank)
        end, event = ends.get(rank), told.get(rank)
        file, line = laid.place(end.line) if end is not None else (s.file, s.line) if s is not None else ("", 0)
        file, line = (s and _last_words(s)) or (file, line)
        time = laid.time(end.line) if end is not None else event.time if event is not None else s.last if s else None
        words = verdict.summary if event is None else f"{event.code}: {event.means}"
        if rank in said and event is None:  # its own words
            file, line, words = said[rank].record.path, said[rank].record.line, said[rank].words
        rows.append(FirstFailure(
            rank=rank, host=s.host if s else event.host if event else "", time=time, line=line, file=file,
            exception="" if end is None else end.signal or f"exit code {end.code}", text=words,
        ))  # fmt: skip
    return tuple(sorted(rows, key=lambda row: row.rank not in accused)[:_FIRST])


def _last_words(s: Stream) -> tuple[str, int] | None:
    """Return the place where the rank itself reports the signal that ends it."""
    return next(((s.file, told.line) for told in s.told if "Fatal Python error: " in told.text), None)


def _row(raised: PrintedException, laid: MergedOutput, by_rank: dict[int, Stream]) -> FirstFailure:
    file, line = laid.place(raised.line)
    frame = shown_frame(raised.frames)
    inside = f" in {frame.function}" if frame is not None and frame.function else ""
    where = f", {short(frame.file)}:{frame.line}{inside}" if frame is not None else ""
    s = by_rank.get(raised.rank) if raised.rank is not None else None
    time = laid.time(raised.line)
    return FirstFailure(
        rank=raised.rank,
        host=s.host if s is not None else "",
        time=time if time is not None else s.last if s is not None else None,
        line=line,
        file=file,
        exception=raised.type.rpartition(".")[2],
        text=f"{raised.text[:300]}{where}",
    )


def followers(
    found: Outcome, verdict: Verdict | None, by_rank: dict[int, Stream], laid: MergedOutput
) -> tuple[tuple[int, ...], str, float | None]:
    """Return the ranks that failed as a consequence, the words that they printed, and when that began."""
    accused = set(verdict.culprits) if verdict is not None else set()
    ranks = set(verdict.waiting) if verdict is not None else set()
    if accused or found.echoes or not found.own:
        ranks |= {rank for rank, s in by_rank.items() if (s.kind if accused else s.end)}
    ranks -= accused
    ranks -= {r.rank for r in found.own if r.rank is not None} - (set(verdict.waiting) if verdict else set())
    words = Counter(r.text[:160] for r in found.echoes if r.rank in ranks or r.rank is None)
    if not accused and not found.echoes and len(ranks) < max(_MANY, len(by_rank) / _FEW):
        ranks = set()
    begin = min((t for r in found.own if (t := laid.time(r.line)) is not None), default=0.0)
    times = [
        time
        for rank, s in by_rank.items()
        if rank in ranks and (time := s.first if s.first is not None and s.first >= begin - 1 else s.last) is not None
    ]
    text = words.most_common(1)[0][0] if words else ""
    if not text and ranks:
        text = next((line for line in _timeout_lines(laid) if line), "")
    return tuple(sorted(ranks)), text, min(times, default=None)


def _timeout_lines(laid: MergedOutput) -> Iterable[str]:
    """Yield the parts of telling lines that name a timeout of a collective."""
    for line in laid.text.split("\n"):
        at = line.find("Watchdog caught collective")
        if at >= 0:
            yield line[at : at + 160]
