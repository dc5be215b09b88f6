"""Finds failures that ranks reported before a scheduler ended their job, unless training continued after them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dtdebug.recorded.job_logs.part import Stream
from dtdebug_taxonomy.knowledge.hardware import Event
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.logs import prefixes
from dtdebug_taxonomy.model.claims import Claim, Record, texts
from dtdebug_taxonomy.model.ranks import Verdict, spell
from dtdebug_taxonomy.text.matchers import lexicon
from dtdebug_taxonomy.text.pattern_matcher import plain

_CONFIDENCE = 0.5
_SHOWN, _WORDS = 8, 200


class FailureReport(NamedTuple):
    """First message of a printer that names a failure."""

    rank: int | None
    file: str
    line: int
    words: str


def failure_reports(end: Event, streams: Sequence[Stream]) -> list[FailureReport]:
    """Return known failures of distributed training above the end of the job and below all progress in their log."""
    progress: dict[str, int] = {}
    for s in streams:
        if s.progress is not None:
            progress[s.file] = max(progress.get(s.file, 0), s.progress.line)
    rows = [
        (s, told)
        for s in streams
        for told in s.told
        if told.line > progress.get(s.file, 0)
        and not (s.file == end.file and told.line >= end.line)
        and not (told.time is not None and end.time is not None and told.time >= end.time)
    ]
    knowledge = load()
    found: dict[tuple[int | None, str, int], FailureReport] = {}
    for hit in lexicon(knowledge).hits("\n".join(told.text for _, told in rows)):
        known = knowledge.evidence.get(hit.key)
        if known is None or known.role != "root" or not known.symptoms or known.generic or known.catch_all:
            continue
        s, told = rows[hit.line - 1]
        words = plain(prefixes.without_prefixes(told.text).body, _WORDS)
        found.setdefault((s.rank, s.file, s.pid), FailureReport(s.rank, s.file, told.line, words))
    return list(found.values())


def verdict(rows: Sequence[FailureReport], end: Event, ranks: int) -> Verdict:
    """Return a verdict on the reporting ranks if they are at most half of all; the end of the job came later."""
    who = tuple(sorted({row.rank for row in rows if row.rank is not None}))
    named = who if len(who) * 2 <= ranks else ()
    claims = tuple(
        Claim(
            what="printed",
            ranks=() if row.rank is None else (row.rank,),
            words=row.words,
            record=Record(source="output", path=row.file, line=row.line, rank=row.rank, words=row.words),
        )
        for row in rows[:_SHOWN]
    )
    name = spell(who, 8) if who else "a process"
    return Verdict(
        kind="not_understood",
        culprits=named,
        confidence=_CONFIDENCE,
        summary=f"{name[:1].upper()}{name[1:]} reported a failure, and no step is printed after it: {rows[0].words}. "
        f"Later {end.means}.",
        claims=claims,
        evidence=texts(claims),
    )
