"""A batch or step that a rank says it left out, before it was in another call than the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, Reason, explanation_for
from dtdebug_taxonomy.logs.lines import Line
from dtdebug_taxonomy.logs.omissions import says_left_out
from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.pattern_matcher import plain

EVIDENCE = "rank-left-a-step-out"
_SYMPTOM = "D.2.1"
_PROBABILITY = 0.65
_APART = frozenset({"skipped", "extra", "replaced", "wrong_size", "not_arrived", "not_understood"})
_NUMBER = lazy_re(r"\d{1,20}(?:\.\d{1,20})?")
_LONGEST = 400
_WHY = "Each step makes the same collectives on every rank. A rank that leaves one out is ahead by a step or its calls."
_FIX = (
    "Let no rank leave a step out alone: filter such data before they are dealt out, or agree on it by an all_reduce "
    "of a flag and skip on all ranks, or take a loss of 0 for that batch."
)


def explain(context: Context) -> Iterator[Explanation]:
    """Yield the last line in which a rank that is elsewhere than the others says that it left something out."""
    verdict = context.incident.snapshot.verdict
    if verdict is None or verdict.kind not in _APART or not verdict.culprits or not context.incident.snapshot.output:
        return
    lines = context.incident.log.lines
    of_local = _ranks_of_local(lines)
    rows = [
        row._replace(rank=of_local.get(row.local) if row.rank is None else row.rank)
        for row in lines
        if says_left_out(row.body)
    ]
    own = [row for row in rows if row.rank in verdict.culprits]
    others = {_shape(row) for row in rows if row.rank not in verdict.culprits}
    last = next((row for row in reversed(own) if _shape(row) not in others), None)
    if last is None:
        return
    said = plain(" ".join(last.body.split()), _LONGEST)
    yield explanation_for(
        _SYMPTOM,
        f'Rank {last.rank} alone says that it left something out, before the ranks part: "{said}"',
        _WHY,
        _FIX,
        _PROBABILITY,
        Reason(
            evidence=EVIDENCE, means="The rank says so before it is in another call.", source="printed", weight=2.0,
            line=last.number, words=said, rank=last.rank,
        ),
    )  # fmt: skip


def _ranks_of_local(lines: Sequence[Line]) -> dict[int | None, int]:
    """Return local rank -> rank, of those that the output shows on one rank only."""
    seen: dict[int | None, set[int]] = {}
    for row in lines:
        if row.local is not None and row.rank is not None:
            seen.setdefault(row.local, set()).add(row.rank)
    return {local: next(iter(ranks)) for local, ranks in seen.items() if len(ranks) == 1}


def _shape(row: Line) -> str:
    """Return a line without its numbers: what all ranks leave out in the same step sets none apart."""
    return _NUMBER.sub("0", row.body[:60])
