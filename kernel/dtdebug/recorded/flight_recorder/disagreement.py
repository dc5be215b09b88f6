"""Verdicts on ranks of one group that disagree; without a majority, the wrong side is unknown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from dtdebug.recorded.flight_recorder.argument_diff import arguments
from dtdebug.recorded.flight_recorder.claims import entry, recorded_call_claim
from dtdebug.recorded.flight_recorder.deviation import Deviation
from dtdebug.recorded.flight_recorder.rank_program import P2P, Symbol
from dtdebug.recorded.flight_recorder.verdict_input import Records, group_ref, sites_of, sort_sites, standing_still
from dtdebug_taxonomy.model.claims import Claim, sentence
from dtdebug_taxonomy.model.ranks import Alternative, CollectiveRef, Kind, Verdict, ranges, say, spell

Sides = list[tuple[tuple[int, ...], int]]
"""Ranks that made the same call, and its position in the program of the first of them."""


def of_disagreement(records: Records, d: Deviation) -> Verdict | None:
    """Return the verdict on a divergence that roles do not decide; None if all ranks made the same call at that number.

    The group as a whole may have a majority where the ranks of one role have none.
    """
    sides = _sides(records, d.group, d.seq)
    if len(sides) < 2:
        return None
    fewer = tuple(sorted(r for ranks, _ in sides[1:] for r in ranks))
    most = len(sides[0][0]) > max(len(fewer), 1)
    kind = _kind(records, sides)
    said = [_describe_side(records, ranks, position, sides) for ranks, position in sides]
    everyone = tuple(sorted(r for ranks, _ in sides for r in ranks))
    (one, here), (other, _), *_ = sides
    claims = [
        Claim(
            what="disagree",
            ranks=one,
            of=other,
            record=entry(records, one[0], here),
            op=records.programs[one[0]].symbol(here).op,
            seq=d.seq,
            group=records.layout.name(d.group),
            words="; ".join(said),
        ),
        *(recorded_call_claim(records, r, at) for ranks, at in sides[:4] for r in ranks[:1]),
    ]
    alternatives = (
        []
        if most
        else [
            Alternative(
                kind=kind,
                culprits=ranks,
                because="as many ranks called the one as the other, and no earlier step says which is right",
                refute=f"the source shows that {say(ranks, 'have')} to call this here",
            )
            for ranks, _ in sides[:4]
        ]
    )
    culprits = fewer if most else ()
    waiting = standing_still(records, culprits)
    why = f"{say(fewer, 'are')} in the minority" if most else "which is wrong is not known"
    return Verdict(
        kind=kind,
        culprits=culprits,
        waiting=waiting,
        group=group_ref(records, d.group),
        collective=CollectiveRef(d.op, d.seq),
        sites=sort_sites(sites_of(records, everyone, waiting), culprits or everyone),
        confidence=0.8 if most else 0.45,
        summary=f"{spell(everyone).capitalize()} disagree: {'; '.join(said)}; {why}.",
        claims=tuple(claims),
        alternatives=tuple(alternatives),
    )


def _sides(records: Records, group: str, seq: int) -> Sides:
    """Group the members by their call at one sequence number; the largest side first."""
    calls: dict[Symbol, list[int]] = defaultdict(list)
    places: dict[int, int] = {}
    for rank in records.layout.members.get(group, ()):
        p = records.programs.get(rank)
        if p is None or group not in p.names:
            continue
        index = p.names.index(group)
        at = next(
            (
                i
                for i in range(len(p.seqs) - 1, -1, -1)
                if p.order[i] == index and p.seqs[i] == seq and p.symbol(i).op not in P2P
            ),
            None,
        )
        if at is not None:
            calls[p.symbol(at).agreed_part()].append(rank)
            places[rank] = at
    rows = sorted(calls.values(), key=lambda ranks: (-len(ranks), ranks))
    return [(tuple(ranks), places[ranks[0]]) for ranks in rows]


def _kind(records: Records, sides: Sides) -> Kind:
    symbols = [records.programs[ranks[0]].symbol(at).agreed_part() for ranks, at in sides]
    if len({s.op for s in symbols}) > 1:
        return "replaced"
    return "wrong_size" if len({(s.inputs, s.outputs) for s in symbols}) > 1 else "wrong_dtype"


def _describe_side(records: Records, ranks: Sequence[int], position: int, sides: Sides) -> str:
    """Describe what the ranks of one side called, by the arguments that differ from the other side's."""
    theirs, at = next((other, place) for other, place in sides if other != ranks)
    mine, _ = arguments(
        records.programs[ranks[0]].symbol(position).agreed_part(), records.programs[theirs[0]].symbol(at).agreed_part()
    )
    told = sentence(recorded_call_claim(records, ranks[0], position, words=mine)).rstrip(".")
    verb = told.partition(" called ")[2]
    return f"rank{'s' if len(ranks) > 1 else ''} {ranges(ranks, 8)} called {verb}"
