"""Claims of a verdict on dumps: each cites the entry, or the counters, of the rank that it is about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from dtdebug.recorded.flight_recorder.argument_diff import arguments, full
from dtdebug.recorded.flight_recorder.deviation import Deviation
from dtdebug.recorded.flight_recorder.rank_program import P2P, Open, Program
from dtdebug.recorded.flight_recorder.verdict_input import Records, so_far
from dtdebug.recorded.flight_recorder.wait_graph import Wait
from dtdebug_taxonomy.model.claims import Claim, Record, texts
from dtdebug_taxonomy.model.ranks import Frame, Verdict
from dtdebug_taxonomy.stacks.frames import place_claim

MOST = 24
"""Maximum number of claims of one verdict."""


def of_verdict(records: Records, verdict: Verdict) -> Verdict:
    """Add the claims behind a verdict, strongest first, and their sentences as evidence."""
    said = {rank for claim in verdict.claims for rank in claim.ranks}
    made = [*verdict.claims, *waits(records, verdict.culprits)]
    made += whereabouts(records, [r for r in verdict.culprits if r not in said][:8])
    kept = tuple({claim.text: claim for claim in made}.values())[:MOST]
    return msgspec.structs.replace(verdict, claims=kept, evidence=texts(kept))


def waits(records: Records, culprits: Sequence[int]) -> Iterator[Claim]:
    """Yield one claim for each set of ranks that wait in one operation for the same ranks; waits for culprits first."""
    rows: dict[tuple[str, str, int | None, frozenset[int]], list[Wait]] = defaultdict(list)
    for w in records.waits.waits:
        rows[w.group, w.op, w.seq, w.awaited].append(w)
    wanted = set(culprits)
    for (group, op, seq, awaited), mine in sorted(
        rows.items(), key=lambda row: (not row[0][3] & wanted, -len(row[1]), row[1][0].rank)
    )[:8]:
        first = mine[0]
        if not awaited and op not in P2P:  # all have entered it
            ranks = tuple(sorted({w.rank for w in mine}))
            record, name = entry(records, first.rank, first.position), records.layout.name(group)
            yield Claim(what="unfinished", ranks=ranks, record=record, op=op, seq=seq, group=name)
            continue
        places = {_user(_site(records, w)) for w in mine}
        place = places.pop() if len(places) == 1 else None
        claim = Claim(
            what="waits",
            ranks=tuple(sorted({w.rank for w in mine})),
            record=entry(records, first.rank, first.position),
            op=op,
            seq=seq,
            group=records.layout.name(group),
            of=tuple(sorted(awaited & records.programs.keys())),  # without a dump, whether a rank arrived is unknown
        )
        yield place_claim(claim, place)


def whereabouts(records: Records, ranks: Iterable[int]) -> Iterator[Claim]:
    """Yield the last call of each rank, by its dump."""
    for rank in ranks:
        p = records.programs.get(rank)
        if p is None:
            yield Claim(what="silent", ranks=(rank,), record=Record(source="dump", rank=rank), words="no dump")
        elif len(p.order):
            last = len(p.order) - 1
            o = next((x for x in p.open if x.position == last), None)
            words = "" if o is None else "not finished"
            yield recorded_call_claim(records, rank, last, words=words)
        else:
            words = so_far(p)
            record = Record(source="dump", path=p.path, rank=rank, words=f"pg_status: {p.begun} begun")
            yield Claim(what="compared", ranks=(rank,), record=record, words=words, count=p.begun)


def recorded_call_claim(records: Records, rank: int, position: int, *, words: str = "") -> Claim:
    """Return the claim on what a rank called at a position of its program."""
    p = records.programs[rank]
    claim = Claim(
        what="called",
        ranks=(rank,),
        record=entry(records, rank, position),
        op=p.symbol(position).op,
        seq=p.seqs[position] or None,
        group=records.layout.name(p.group(position)),
        words=words,
    )
    return place_claim(claim, _user(p.site(position)))


def of_deviation(records: Records, d: Deviation) -> Iterator[Claim]:
    """Yield claims on the rank's call, its peer's call there, and the comparison of the two programs."""
    came = records.programs[d.rank].symbol(d.position)
    here, there = arguments(came, records.programs[d.peer].symbol(d.peer_position))
    yield recorded_call_claim(records, d.rank, d.position, words=here)
    yield recorded_call_claim(records, d.peer, d.peer_position, words=there)
    yield Claim(
        what="compared",
        ranks=(d.rank,),
        record=entry(records, d.rank, d.position),
        of=(d.peer,),
        words=d.because,
    )


def latecomers(records: Records, late: Mapping[int, float]) -> tuple[Claim, ...]:
    """Return claims on the ranks that repeatedly arrive last; `late` maps each to its delay in seconds."""
    return tuple(
        Claim(
            what="compared", ranks=(r,), record=entry(records, r, None), words=f"comes last, {s * 1000:.0f} ms behind"
        )
        for r, s in sorted(late.items())[:8]
    )


def entry(records: Records, rank: int, position: int | None) -> Record:
    """Return the record of a call: a short form of its dump entry."""
    p = records.programs.get(rank)
    if p is None or position is None or not 0 <= position < len(p.order):
        return Record(source="dump", rank=rank, path=p.path if p else "")
    state = next((_state(o) for o in p.open if o.position == position), "ended")
    s = p.symbol(position)
    words = f"{s.op} #{p.seqs[position]} of {p.group(position)}, {state}, {full(s)}"
    return Record(source="dump", path=p.path, rank=rank, words=words[:300])


def _state(o: Open) -> str:
    return "started" if o.started else "scheduled"


def _site(records: Records, w: Wait) -> tuple[Frame, ...]:
    p: Program | None = records.programs.get(w.rank)
    return p.site(w.position) if p is not None and w.position is not None else ()


def _user(site: Sequence[Frame]) -> Frame | None:
    return site[-1] if site else None
