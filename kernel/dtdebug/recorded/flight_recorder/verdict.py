"""The verdict: which rank the others wait for, what it did, and where.

Two rules read the same records. A: program order; among ranks of one role, which left the common program? B: the
wait-for graph; where do the chains of waiting end? A names what was done, B shows that it matters: a rank that runs a
different program on purpose blocks no rank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from dtdebug.recorded.flight_recorder import not_arrived, verdict_text
from dtdebug.recorded.flight_recorder.align import common
from dtdebug.recorded.flight_recorder.alignment_tables import Tables
from dtdebug.recorded.flight_recorder.deviation import Deviation, deviation
from dtdebug.recorded.flight_recorder.disagreement import of_disagreement
from dtdebug.recorded.flight_recorder.gloo_size_mismatch import gloo_abort_verdict
from dtdebug.recorded.flight_recorder.group_layout import Layout
from dtdebug.recorded.flight_recorder.intended_divergence import on_purpose
from dtdebug.recorded.flight_recorder.rank_program import P2P, Program
from dtdebug.recorded.flight_recorder.verdict_input import Records, waits_of
from dtdebug.recorded.flight_recorder.wait_graph import Waits
from dtdebug.recorded.flight_recorder.wrong_root import wrong_roots
from dtdebug_taxonomy.model.claims import texts
from dtdebug_taxonomy.model.ranks import RankState, Verdict

_UNLIKE = ("wrong_size", "wrong_dtype")
"""Kinds in which the same call has different arguments."""


def verdict(
    programs: Mapping[int, Program], states: Sequence[RankState], layout: Layout, *, moving: bool | None = None
) -> Verdict:
    """Return the verdict on dumps, live records, or both; if the run was `moving`, waits are momentary."""
    waits = Waits(programs, layout, states)
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
