"""Verdicts on ranks that wait for each other, from the wait-for graph alone: a skipped collective or a disagreement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dtdebug.recorded.flight_recorder import source_branches
from dtdebug.recorded.flight_recorder.rank_program import PAIRED
from dtdebug.recorded.flight_recorder.verdict_input import (
    Records,
    by_backward,
    call_of,
    group_ref,
    sites_of,
    sort_sites,
    standing_still,
    waits_of,
)
from dtdebug.recorded.flight_recorder.wait_graph import Wait
from dtdebug_taxonomy.model.claims import Claim, Record, texts
from dtdebug_taxonomy.model.ranks import Alternative, CollectiveRef, Kind, Verdict, ranges, say, spell

_LINKS = 6
"""Maximum number of ranks of a circle whose waits the summary lists."""


def each_other(records: Records, circle: Sequence[int]) -> Verdict:
    """Return the verdict on ranks that wait for each other; if most are in one collective, the others skipped it."""
    mine = [w for w in records.waits.waits if w.rank in circle and w.awaited & set(circle)]
    claims = waits_of(records, mine)
    inside = Counter((w.group, w.op, w.seq) for w in mine if w.op not in PAIRED)
    elsewhere = sorted({w.rank for w in mine} - {w.rank for w in mine if w.op not in PAIRED})
    (group, op, seq), there = inside.most_common(1)[0] if inside else (("", "", None), 0)
    if len(inside) == 1 or (inside and len(elsewhere) == 1):
        ahead = next((pair for rank in elsewhere if (pair := _not_there_yet(records, mine, rank, op))), None)
        if ahead is not None:
            return _out_of_step(records, ahead, claims)
    if elsewhere and len(elsewhere) <= there:
        culprits: tuple[int, ...] = tuple(elsewhere)
        kind: Kind = "skipped"
        call = call_of(records, op, seq, group)
        summary = f"{spell(culprits).capitalize()} passed {call} by, but can't go on without a rank that is in it."
    elif odd := _minority(mine):
        (group, op, seq), culprits = odd
        kind = "replaced"
        theirs = sorted({w.op for w in mine if w.rank in culprits})
        call = call_of(records, op, seq, group)
        summary = f"{say(culprits, 'are').capitalize()} in {' and '.join(theirs)} where the others are in {call}"
        summary += f"{by_backward(records, culprits, op, seq)}."
    elif apart := _disagreement(mine):
        return _disagree(records, apart, claims)
    else:
        group, op, seq = mine[0].group, mine[0].op, mine[0].seq
        culprits, kind = tuple(circle), "not_arrived"
        links = _links(mine, circle)
        summary = f"{say(culprits, 'wait').capitalize()} for each other in a circle{links}: none can go on."
    waiting = standing_still(records, culprits)
    return Verdict(
        kind=kind,
        culprits=culprits,
        waiting=waiting,
        group=group_ref(records, group),
        collective=CollectiveRef(op, seq),
        sites=sort_sites(sites_of(records, culprits, waiting), culprits),
        confidence=_SURE[kind],
        summary=summary,
        claims=tuple(claims),
        evidence=texts(claims),
    )


def _links(waits: Sequence[Wait], circle: Sequence[int]) -> str:
    """Describe who waits for whom in a small circle, and in which operations."""
    if len(circle) > _LINKS:
        return ""
    ops = {w.op for w in waits}
    each = f", each in {min(ops)}" if len(ops) == 1 else ""
    rows = [f"{w.rank}{'' if each else f' in {w.op}'} for {ranges(sorted(w.awaited & {*circle}))}" for w in waits]
    return f" ({', '.join(rows)}{each})"


def _not_there_yet(records: Records, waits: Sequence[Wait], rank: int, op: str) -> tuple[Wait, Wait] | None:
    """Return (its wait, the awaited rank's wait) if the source has the collective after the place of `rank`."""
    mine = next(w for w in waits if w.rank == rank)
    theirs = next((w for w in waits if w.rank in mine.awaited and w.op == op), None)
    if theirs is None:
        return None
    here, there = (records.states[r].stack if r in records.states else () for r in (rank, theirs.rank))
    pair = source_branches.fork(here, there)
    return (mine, theirs) if pair is not None and pair[0].line < pair[1].line else None


def _out_of_step(records: Records, apart: tuple[Wait, Wait], claims: Sequence[Claim]) -> Verdict:
    """Return the verdict if a rank waits for a message of a rank further on in the program; either may be wrong."""
    mine, theirs = apart
    waiting = tuple(sorted({w.rank for w in records.waits.waits}))
    call = call_of(records, theirs.op, theirs.seq, theirs.group)
    return Verdict(
        kind="skipped",
        waiting=waiting,
        group=group_ref(records, theirs.group),
        collective=CollectiveRef(mine.op, mine.seq),
        sites=sort_sites(sites_of(records, (), waiting), ()),
        confidence=0.5,
        summary=f"Rank {mine.rank} waits in {mine.op} for rank {theirs.rank}, which is further on in the source, in "
        f"{call}; which of them is wrong is not known.",
        claims=tuple(claims),
        evidence=texts(claims),
        alternatives=(
            Alternative(
                kind="skipped",
                culprits=(theirs.rank,),
                because=f"it did not make its part of the {mine.op}",
                refute=f"it made as many as rank {mine.rank} waited for",
            ),
            Alternative(
                kind="extra",
                culprits=(mine.rank,),
                because=f"it calls {mine.op} more often than rank {theirs.rank} takes part in it",
                refute="both go through that part of the program equally often",
            ),
        ),
    )


def _disagreement(waits: Sequence[Wait]) -> list[Wait]:
    """Return the waits of ranks in different collectives, or calls of one, of one group; empty otherwise."""
    inside = [w for w in waits if w.op not in PAIRED]
    groups = {w.group for w in inside}
    apart = len({(w.op, w.seq) for w in inside}) > 1
    return inside if len(groups) == 1 and apart and len(inside) == len(waits) else []


def _disagree(records: Records, waits: Sequence[Wait], claims: list[Claim]) -> Verdict:
    """Return the verdict if equally many ranks are in each call: the calls are known, the wrong one is not."""
    parts: dict[tuple[str, int | None], list[int]] = {}
    for w in waits:
        parts.setdefault((w.op, w.seq), []).append(w.rank)
    (one, ranks), *others = sorted(parts.items(), key=lambda row: row[1])
    ops = {op for op, _ in parts}
    rows = [_describe_call(records, waits, call, those) for call, those in [(one, ranks), *others][:4]]
    waiting = tuple(sorted(w.rank for w in waits))
    opposite = tuple(sorted(rank for _, those in others for rank in those))
    words = "which of them is wrong is not known"
    record = Record(source="stack", rank=ranks[0])
    disagree = Claim(what="disagree", ranks=tuple(sorted(ranks)), of=opposite, record=record, words="; ".join(rows))
    return Verdict(
        kind="replaced" if len(ops) > 1 else "skipped",
        waiting=waiting,
        group=group_ref(records, waits[0].group),
        collective=CollectiveRef(*one),
        sites=sort_sites(sites_of(records, (), waiting), ()),
        confidence=0.5,
        summary=f"The ranks disagree: {', '.join(rows)}; {words}.",
        claims=(disagree, *claims),
        evidence=texts((disagree, *claims)),
        alternatives=tuple(
            Alternative(
                kind="replaced" if len(ops) > 1 else "skipped",
                culprits=tuple(sorted(those)),
                because=f"{spell(sorted(those))} called {op}",
                refute="the source says what all of them should call here",
            )
            for (op, _), those in [(one, ranks), *others][:2]
        ),
    )


def _describe_call(records: Records, waits: Sequence[Wait], call: tuple[str, int | None], ranks: Sequence[int]) -> str:
    site = next(iter(sites_of(records, (), ranks[:1]).values()), None)
    where = f" at {site.file}:{site.line}" if site is not None else ""
    return f"{spell(sorted(ranks), 8)} called {call_of(records, *call, waits[0].group)}{where}"


_SURE: dict[Kind, float] = {"not_arrived": 0.8, "skipped": 0.7, "replaced": 0.6}
"""Confidence for a circle: stacks show where ranks are, not what they did before."""


def _minority(waits: Sequence[Wait]) -> tuple[tuple[str, str, int | None], tuple[int, ...]] | None:
    """Return (call of most ranks, ranks in a different collective of the same group), if most agree."""
    inside = {w.rank: (w.group, w.op, w.seq) for w in waits if w.op not in PAIRED}
    (most, count), *_ = Counter(inside.values()).most_common(1) or [(("", "", None), 0)]
    odd = tuple(sorted(rank for rank, call in inside.items() if call[0] == most[0] and call[1] != most[1]))
    return (most, odd) if odd and count > len(odd) else None
