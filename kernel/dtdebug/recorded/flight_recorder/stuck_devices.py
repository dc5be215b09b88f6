"""Finds collectives that all members entered and only some finished: suspect the devices of the others first.

The ranks that finished needed the data of all others, so the links delivered it. A rank that stays behind can't reach
the operation that the others wait in next, so it ends a chain of waiting ranks although it waits itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from dtdebug.recorded.flight_recorder.claims import entry
from dtdebug.recorded.flight_recorder.rank_program import P2P
from dtdebug.recorded.flight_recorder.verdict_input import (
    Records,
    call_of,
    group_ref,
    in_flight,
    sites_of,
    sort_sites,
    standing_still,
)
from dtdebug.recorded.flight_recorder.wait_graph import Wait
from dtdebug_taxonomy.model.claims import Claim, Record
from dtdebug_taxonomy.model.ranks import Alternative, CollectiveRef, Verdict, say, spell
from dtdebug_taxonomy.stacks.frames import call_site

_ROOTED = ("broadcast", "reduce", "gather", "scatter")
"""Operations in which a rank may finish before all others arrive; a different root may be the reason."""


class StuckCollective(NamedTuple):
    """A collective that all members entered and some never finish."""

    group: str
    op: str
    seq: int
    inside: tuple[int, ...]
    finished: tuple[int, ...]
    waits: tuple[Wait, ...]


def find_stuck(records: Records) -> list[StuckCollective]:
    """Return the stuck collectives with known finished and unfinished ranks; the most awaited first."""
    inside: dict[tuple[str, str, int], list[Wait]] = defaultdict(list)
    for w in records.waits.waits:
        p = records.programs.get(w.rank)
        if not w.awaited and w.op not in P2P and w.seq and p is not None and p.backend != "gloo":
            inside[w.group, w.op, w.seq].append(w)
    found = []
    for (group, op, seq), mine in inside.items():
        ranks = tuple(sorted({w.rank for w in mine}))
        members = records.layout.members.get(group, ())
        finished = tuple(
            m for m in members if m not in ranks and m in records.programs and _has_completed(records, m, group, seq)
        )
        if finished and len(finished) + len(ranks) == len(members):
            found.append(StuckCollective(group, op, seq, ranks, finished, tuple(mine)))
    return sorted(found, key=lambda s: (-_count_waiters(records, s.inside), _earliest_start(records, s), s.inside))


def _has_completed(records: Records, rank: int, group: str, seq: int) -> bool:
    p = records.programs[rank]
    return p.latest_seq(group) >= seq and not any(
        o.group == group and o.seq == seq and p.symbol_table[o.symbol].op not in P2P for o in p.open
    )


def _count_waiters(records: Records, ranks: Sequence[int]) -> int:
    return max((records.waits.pull(rank) for rank in ranks), default=0)


def _earliest_start(records: Records, s: StuckCollective) -> float:
    times = [records.programs[w.rank].time(w.position) for w in s.waits if w.position is not None]
    return min((t for t in times if t), default=0.0)


def of_devices(records: Records) -> Verdict | None:
    """Return the verdict that blames the devices of ranks that never finish what all have entered."""
    rows = [s for s in find_stuck(records) if not in_flight(records, s.waits[0])]
    if not rows:
        return None
    first = rows[0]
    culprits = tuple(sorted({r for s in rows for r in s.inside}))
    call = call_of(records, first.op, first.seq, first.group)
    waiting = standing_still(records, culprits)
    claims = [claim for s in rows[:8] for claim in _claims(records, s)]
    more = f", {spell(sorted(set(culprits) - set(first.inside)))} another one" if len(rows) > 1 else ""
    few = len(first.inside) < len(first.finished)
    found = sites_of(records, culprits, waiting)
    for s in rows:  # its first open operation, not those queued after it
        for w in s.waits:
            stack = records.programs[w.rank].site(w.position) if w.position is not None else ()
            if (site := call_site(w.rank, stack)) is not None:
                found[w.rank] = site
    return Verdict(
        kind="fabric",
        culprits=culprits,
        waiting=waiting,
        group=group_ref(records, first.group),
        collective=CollectiveRef(first.op, first.seq),
        sites=sort_sites(found, culprits),
        confidence=0.65 if few and len(rows) == 1 else 0.5 if len(first.inside) <= len(first.finished) else 0.4,
        summary=f"All {len(first.inside) + len(first.finished)} ranks of the group entered {call}; "
        f"{say(first.inside, 'do')} not finish it{more}: look at the GPUs and links of {spell(culprits)} first.",
        claims=tuple(claims),
        alternatives=tuple(_others(records, rows)),
    )


def _claims(records: Records, s: StuckCollective) -> list[Claim]:
    name = records.layout.name(s.group)
    mine = s.waits[0]
    peer = records.programs[s.finished[0]]
    told = peer.groups.get(s.group)
    done = next((i for i, seq in enumerate(peer.seqs) if seq == s.seq and peer.group(i) == s.group), None)
    record = (
        entry(records, peer.rank, done)
        if done is not None
        else Record(
            source="dump",
            path=peer.path,
            rank=peer.rank,
            words=f"no open entry of #{s.seq}; begun up to #{told.enqueued if told else 0}",
        )
    )
    everyone = tuple(sorted((*s.inside, *s.finished)))
    inside = entry(records, mine.rank, mine.position)
    entered = Claim(what="entered", ranks=everyone, record=inside, op=s.op, seq=s.seq, group=name)
    return [
        entered,
        msgspec.structs.replace(entered, what="finished", ranks=s.finished, record=record),
        msgspec.structs.replace(entered, what="unfinished", ranks=s.inside),
    ]


def _others(records: Records, rows: Sequence[StuckCollective]) -> list[Alternative]:
    found = [
        Alternative(
            kind="wrong_root",
            culprits=s.inside,
            because=f"the recorder does not keep the root of a {s.op}",
            refute="the source at the call sites names one `src` or `dst` on all ranks",
        )
        for s in rows[:1]
        if s.op in _ROOTED
    ]
    awaited = tuple(r for r in records.waits.sinks() if r not in rows[0].inside)
    if awaited:
        found.append(
            Alternative(
                kind="not_arrived",
                culprits=awaited,
                because=f"other ranks wait for {spell(awaited)} too, and {say(awaited, 'wait')} for nobody",
                refute="a stack of that rank shows whether its program goes on",
            )
        )
    found.append(
        Alternative(
            kind="fabric",
            culprits=(),
            because="a link failed in the middle of the operation",
            refute="the GPUs of these ranks answer, and have no error in the kernel's log (`dmesg`, `nvidia-smi -q`)",
        )
    )
    return found
