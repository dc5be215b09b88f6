"""Collects what is known of a job apart from the telling lines that were kept of its ranks."""

from __future__ import annotations

from collections import defaultdict

from dtdebug.recorded.job_logs import assign_ranks
from dtdebug.recorded.job_logs.part import Part, Stream, TellingLine
from dtdebug_taxonomy.logs import log_end, prefixes
from dtdebug_taxonomy.logs.tasks import LastLine, Surroundings
from dtdebug_taxonomy.model.ranks import MOST_RANKS
from dtdebug_taxonomy.text.pattern_matcher import plain

_WORDS = 200


def of_ranks(by_rank: dict[int, Stream], world: int) -> Surroundings:
    """Return what is known of the job apart from the telling lines that were kept."""
    kinds: dict[str, list[int]] = defaultdict(list)
    for rank, s in sorted(by_rank.items()):
        if s.kind:
            kinds[s.kind].append(rank)
    first = min((s.first for s in by_rank.values() if s.first is not None), default=None)
    return Surroundings(
        alike={rank: kinds[s.kind] for rank, s in by_rank.items() if s.kind},
        world=world,
        hosts={rank: s.host for rank, s in by_rank.items()},
        printing=frozenset(by_rank),
        endings={
            rank: _last_line(rank, s, last) for rank, s in by_rank.items() if (last := _ending(s, first)) is not None
        },
        labelled=any(s.labelled for rank, s in by_rank.items() if rank),
    )


def _ending(s: Stream, reported: float | None) -> TellingLine | None:
    """Return the last line of a rank before any rank reported a failure: what it printed later is no cause of that."""
    rows = [line for line in (s.ending, s.progress) if line is not None]
    if reported is None or s.ending is None or s.ending.time is None:
        return s.ending
    return next((line for line in rows if line.time is not None and line.time <= reported), None)


def _last_line(rank: int, s: Stream, last: TellingLine) -> LastLine:
    printed = prefixes.without_prefixes(last.text)
    words = plain(" ".join(printed.body.split()), _WORDS)
    return LastLine(rank, words, last.line, log_end.clock_in(printed.time, printed.body), s.file)


def of_part(part: Part) -> Surroundings:
    """Return the same for logs of which an excerpt was read."""
    streams = assign_ranks.resolve_ranks(
        [s for s in part.streams if s.rank is None or 0 <= s.rank < MOST_RANKS], part.nodes
    )
    last = max((s.attempt for s in streams), default=0)
    by_rank = assign_ranks.by_rank([s for s in streams if s.attempt == last or s.rank is None])
    return of_ranks(by_rank, max((s.world for s in streams), default=0))
