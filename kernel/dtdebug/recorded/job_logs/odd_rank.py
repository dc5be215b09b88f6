"""Finds the odd rank out when none reports its own failure: the silent one, or the one that ends differently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from statistics import median

from dtdebug.recorded.job_logs.part import Stream
from dtdebug_taxonomy.logs.log import Outcome
from dtdebug_taxonomy.model.claims import Claim, Record, texts
from dtdebug_taxonomy.model.ranks import Verdict, say, spell

_LEAST, _MOST_QUIET, _MOST_ALONE = 4, 8, 16
"""Minimum number of ranks, and divisors that limit how many of them may be quiet or end differently."""
_CROWD = 0.75
"""Share of the ranks that must end alike."""
_EARLIER = 5.0
"""Seconds by which a rank that ends differently may be later than the others."""
_CONFIDENCE = 0.5
_SHOWN = 8


def as_all(culprits: Iterable[int], by_rank: dict[int, Stream]) -> bool:
    """True if these ranks end in the same words as nearly all others."""
    ends = Counter(s.end for s in by_rank.values() if s.end)
    if not ends:
        return False
    crowd, count = ends.most_common(1)[0]
    alike = all(by_rank[rank].end == crowd for rank in culprits if rank in by_rank)
    return alike and count >= _CROWD * sum(ends.values())


def quiet(by_rank: dict[int, Stream], absent: Iterable[int], found: Outcome) -> Verdict | None:
    """Return a verdict on ranks that don't mention a failure that nearly all others report; absent ranks count."""
    speak = [rank for rank, s in by_rank.items() if s.end]
    rest = {*(rank for rank, s in by_rank.items() if not s.end), *absent}
    rest -= {r.rank for r in found.own if r.rank is not None}
    if len(speak) < _LEAST or not rest or len(rest) * _MOST_QUIET > len(speak) + len(rest):
        return None
    culprits = tuple(sorted(rest))
    claims = tuple(_quiet(rank, by_rank.get(rank)) for rank in culprits[:_SHOWN])
    return Verdict(
        kind="not_arrived",
        culprits=culprits,
        waiting=tuple(sorted(speak)),
        confidence=_CONFIDENCE,
        summary=f"{say(culprits, 'are').capitalize()} silent: the other {len(speak):,} ranks report the failure, "
        f"{'it does' if len(culprits) == 1 else 'they do'} not.",
        claims=claims,
        evidence=texts(claims),
    )


def _quiet(rank: int, s: Stream | None) -> Claim:
    if s is None:
        return Claim(what="silent", ranks=(rank,), words="no line at all", record=Record(source="output", rank=rank))
    return Claim(
        what="silent",
        ranks=(rank,),
        hosts=(s.host,) if s.host else (),
        words="its last line reports no failure",
        record=Record(source="output", line=s.line, path=s.file, rank=rank),
    )


def alone(by_rank: dict[int, Stream]) -> Verdict | None:
    """Return a verdict on ranks that end differently from nearly all, and not later: they may have left the others."""
    ends = Counter(s.end for s in by_rank.values() if s.end)
    if not ends:
        return None
    crowd, count = ends.most_common(1)[0]
    total = sum(ends.values())
    culprits = sorted(rank for rank, s in by_rank.items() if s.end and s.end != crowd)
    if total < _LEAST or count < _CROWD * total or not culprits or len(culprits) > max(1, total // _MOST_ALONE):
        return None
    starts = [s.last for s in by_rank.values() if s.end == crowd and s.last is not None]
    own = [by_rank[rank].last or 0.0 for rank in culprits if by_rank[rank].last is not None]
    if starts and own and min(own) > median(starts) + _EARLIER:
        return None
    claims = tuple(_printed_claim(rank, by_rank[rank]) for rank in culprits[:_SHOWN] if by_rank[rank].told)
    if not claims:
        return None
    who = spell(tuple(culprits), 8)
    ahead = (
        f", {median(starts) - min(own):.0f} s before them" if starts and own and median(starts) - min(own) > 1 else ""
    )
    return Verdict(
        kind="not_understood",
        culprits=tuple(culprits),
        waiting=tuple(sorted(set(by_rank) - set(culprits))),
        confidence=_CONFIDENCE,
        summary=f"{who[:1].upper()}{who[1:]} ended differently from {count:,} other ranks{ahead}: "
        f"{claims[0].words[:200]}",
        claims=claims,
        evidence=texts(claims),
    )


def _printed_claim(rank: int, s: Stream) -> Claim:
    told = s.told[-1]
    words = told.text[:200]
    return Claim(
        what="printed",
        ranks=(rank,),
        words=words,
        record=Record(source="output", line=told.line, path=s.file, rank=rank, words=words),
    )
