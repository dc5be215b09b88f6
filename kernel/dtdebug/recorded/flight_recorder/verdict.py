"""The verdict: which rank the others wait for, what it did, and where.

Two rules read the same records. A: program order; among ranks of one role, which left the common program? B: the
wait-for graph; where do the chains of waiting end? A names what was done, B shows that it matters: a rank that runs a
different program on purpose blocks no rank.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from dtdebug.recorded.flight_recorder import not_arrived, verdict_text
from dtdebug.recorded.flight_recorder.align import common, first_difference
from dtdebug.recorded.flight_recorder.alignment_tables import AlignedCalls, Tables
from dtdebug.recorded.flight_recorder.deviation import Deviation, deviation
from dtdebug.recorded.flight_recorder.disagreement import of_disagreement
from dtdebug.recorded.flight_recorder.gloo_size_mismatch import gloo_abort_verdict
from dtdebug.recorded.flight_recorder.group_layout import Layout
from dtdebug.recorded.flight_recorder.rank_program import P2P, Program
from dtdebug.recorded.flight_recorder.verdict_input import Records, waits_of
from dtdebug.recorded.flight_recorder.wait_graph import Waits
from dtdebug.recorded.flight_recorder.wrong_root import wrong_roots
from dtdebug_taxonomy.model.claims import texts
from dtdebug_taxonomy.model.ranks import RankState, Verdict

_DEPTH = 64
"""Maximum number of times that a role is divided."""


def on_purpose(tables: Tables, aligned: AlignedCalls) -> list[list[int]]:
    """Split the ranks by program, but only where no group has members on both sides of the divergence."""
    done: list[list[int]] = []
    todo = [sorted(aligned.tokens)]
    for _ in range(_DEPTH):
        if not todo:
            break
        ranks = todo.pop()
        parts = _parts(tables, aligned, ranks)
        if parts is None:
            done.append(ranks)
        else:
            todo += parts
    return sorted(done + todo)


def _parts(tables: Tables, aligned: AlignedCalls, ranks: Sequence[int]) -> list[list[int]] | None:
    """Split the ranks by their call at the first divergence; None if that is a fault or there is none."""
    longest = max(ranks, key=lambda r: len(aligned.tokens[r]))
    reference = aligned.tokens[longest]
    partings = (first_difference(reference, aligned.tokens[r]) for r in ranks)
    index = min((i for i in partings if i is not None), default=None)
    if index is None:
        return None
    calls: dict[int, list[int]] = defaultdict(list)
    for rank in ranks:
        if len(aligned.tokens[rank]) > index:
            calls[aligned.tokens[rank][index]].append(rank)
    for call, callers in calls.items():
        for rank in callers:
            group = tables.group_on(rank, tables.axis(call))
            if (
                group is None
                or tables.call(call).op in P2P
                or not _complete(tables, aligned, rank, index, group, alone=len(callers) == 1)
            ):
                return None
            together = set(tables.layout.members[group])
            if any(together & set(others) for other, others in calls.items() if other != call):
                return None
    early = [r for r in ranks if len(aligned.tokens[r]) <= index]
    parts = [*calls.values()]
    parts[0] += early  # they had not got there yet: any part will do
    return parts


def _complete(tables: Tables, aligned: AlignedCalls, rank: int, index: int, group: str, *, alone: bool) -> bool:
    """True if all members of the group reached the call, whatever they called, so that no rank waits there.

    Members without a dump are unknown; a single caller is not assumed to share its call with them.
    """
    seq = tables.programs[rank].seqs[aligned.position(rank, index)]
    members = tables.layout.members[group]
    if alone and any(m not in tables.programs for m in members):
        return False
    return all(tables.programs[m].latest_seq(group) >= seq for m in members if m in tables.programs)


_UNLIKE = ("wrong_size", "wrong_dtype")
"""Kinds in which the same call has different arguments."""


def verdict(
    programs: Mapping[int, Program],
    states: Sequence[RankState],
    layout: Layout,
    waits: Waits,
    *,
    moving: bool | None = None,
) -> Verdict:
    """Return the verdict on dumps, live records, or both; if the run was `moving`, waits are momentary."""
    known = {s.rank: s for s in states if s.rank is not None}
    records = Records(programs, known, layout, waits, tuple(range(layout.world_size)), standing=moving is False)
    tables = Tables(programs, layout)
    if moving and not verdict_text.has_failed_rank(records):
        return verdict_text.nothing(records, "The ranks were moving until the records were taken.")
    if not waits.waits and not verdict_text.has_failed_rank(records):
        return verdict_text.nothing(records)
    parted = deviations(tables, records)
    roots = wrong_roots(records)
    relevant = [d for d in parted if matters(d, records)]
    certain = [d for d in relevant if d.certain]
    if certain:
        return _with_waits(
            records, verdict_text.of_deviations(records, certain, [d for d in relevant if not d.certain])
        )
    if roots is not None:
        return _with_waits(records, verdict_text.of_roots(records, roots))
    dead = gloo_abort_verdict(records) or verdict_text.dead(records)
    if dead is not None:
        return dead
    if relevant:
        unlike = relevant[0].against and relevant[0].kind in _UNLIKE  # else the call sites show who skipped something
        tied = of_disagreement(records, relevant[0]) if unlike else None
        return _with_waits(records, tied or verdict_text.of_deviations(records, relevant[:1], relevant[1:]))
    return not_arrived.of_waits(records)


def _with_waits(records: Records, verdict: Verdict) -> Verdict:
    """Add claims on the ranks that wait for the culprits."""
    those = {*verdict.culprits}
    claims = (*verdict.claims, *waits_of(records, [w for w in records.waits.waits if w.awaited & those]))
    return msgspec.structs.replace(verdict, claims=claims, evidence=texts(claims))


def matters(d: Deviation, records: Records) -> bool:
    """True if the rank hangs, others wait for it, or it has ended."""
    state = records.states.get(d.rank)
    gone = state is not None and state.alive is False
    return gone or d.rank in records.waits.awaited or d.rank in records.waits.waiting


def deviations(tables: Tables, records: Records) -> list[Deviation]:
    """Return divergences by role, then by group for those that roles can't show; the earliest first."""
    found: dict[int, Deviation] = {}
    for role in records.layout.roles(records.programs):
        if any(records.programs[r].active_only or records.programs[r].parted for r in role):
            continue  # ended entries are missing, or two threads called: only numbers within a group can be compared
        aligned = tables.of_role(role)
        for ranks in on_purpose(tables, aligned):
            shared = common({r: aligned.tokens[r] for r in ranks}, records.waits.pull)
            for d in (deviation(tables, aligned, shared, parting) for parting in shared.partings):
                if not _halves(d, role, records):
                    found.setdefault(d.rank, d)
    judged = set(found)
    for group in {w.group for w in records.waits.waits}:
        if judged.intersection(records.layout.members.get(group, ())):
            continue
        aligned = tables.of_group(group)
        if len(aligned.tokens) > 1:
            shared = common(aligned.tokens, records.waits.pull)
            for parting in shared.partings:
                found.setdefault(parting.rank, deviation(tables, aligned, shared, parting))
    return sorted(found.values(), key=lambda d: (not d.certain, _when(d, records)))


def _halves(d: Deviation, role: Sequence[int], records: Records) -> bool:
    """True if as many send as receive, to each other: ranks of a role pass data on, which is not a divergence."""
    p = records.programs[d.rank]
    came = p.symbol(d.position).op
    within = {*records.layout.members.get(p.group(d.position), ())} <= {*role}
    return within and bool(d.against) and came in P2P and d.op in P2P and came != d.op


def _when(d: Deviation, records: Records) -> float:
    return records.programs[d.rank].time(d.position) or 0.0
