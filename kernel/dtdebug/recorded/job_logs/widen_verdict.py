"""Widens a verdict on the ranks whose lines were read to ranks with the same telling lines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from dtdebug.recorded.job_logs.merged_output import MergedOutput
from dtdebug.recorded.job_logs.part import Stream
from dtdebug_taxonomy.model.claims import Claim, texts
from dtdebug_taxonomy.model.ranks import Verdict, say, spell


def without_followers(verdict: Verdict | None, by_rank: dict[int, Stream]) -> Verdict | None:
    """Remove ranks accused only for their end, though their telling lines equal those of ranks that are not accused.

    Only some ranks of a kind are read; of the others only the end is known, and a launcher's report names each of them.
    """
    if verdict is None:
        return None
    accused = set(verdict.culprits)
    read = {s.kind for rank, s in by_rank.items() if s.told and rank not in accused}
    read -= {s.kind for rank, s in by_rank.items() if s.told and rank in accused}
    follow = {r for r in accused if r in by_rank and not by_rank[r].told and by_rank[r].kind in read}
    if not follow:
        return verdict
    rest = tuple(rank for rank in verdict.culprits if rank not in follow)
    if not rest:
        return None
    before, after = spell(verdict.culprits, 8), spell(rest, 8)
    summary = verdict.summary.replace(before[:1].upper() + before[1:], after[:1].upper() + after[1:], 1)
    return msgspec.structs.replace(
        verdict, culprits=rest, waiting=tuple(sorted(follow | set(verdict.waiting))), summary=summary
    )


def widen_verdict(verdict: Verdict, by_rank: dict[int, Stream], laid: MergedOutput) -> Verdict:
    """Add the ranks whose telling lines equal those of the ranks that were read, and resolve the claims' places."""
    kinds: dict[str, set[str]] = defaultdict(set)
    for what, ranks in (("culprit", verdict.culprits), ("waits", verdict.waiting)):
        for rank in ranks:
            if rank in by_rank and by_rank[rank].kind:
                kinds[by_rank[rank].kind].add(what)
    culprits, waiting = set(verdict.culprits), set(verdict.waiting)
    for rank, s in by_rank.items():
        if rank in culprits or rank in waiting or s.told:
            continue
        of = kinds.get(s.kind, set())
        if of == {"culprit"}:
            culprits.add(rank)
        elif "waits" in of:
            waiting.add(rank)
    claims = tuple(_relocate_claim(claim, laid.places) for claim in verdict.claims)
    more, fewer = spell(tuple(sorted(culprits)), 8), spell(verdict.culprits, 8)
    summary = verdict.summary
    if culprits != set(verdict.culprits):
        summary = summary.replace(f"{fewer[:1].upper()}{fewer[1:]}", f"{more[:1].upper()}{more[1:]}", 1)
    before, after = verdict.waiting, tuple(sorted(waiting - culprits))
    if after != before and before:
        for one, other in ((say(before, "fail"), say(after, "fail")), (spell(before, 8), spell(after, 8))):
            summary = summary.replace(one, other, 1).replace(one.capitalize(), other.capitalize(), 1)
    return msgspec.structs.replace(
        verdict,
        culprits=tuple(sorted(culprits)),
        waiting=after,
        summary=summary,
        claims=claims,
        evidence=texts(claims) or verdict.evidence,
    )


def _relocate_claim(claim: Claim, places: Sequence[tuple[str, int]]) -> Claim:
    record = claim.record
    if record.source != "output" or record.path or not 0 < record.line <= len(places):
        return claim
    file, line = places[record.line - 1]
    return msgspec.structs.replace(claim, record=msgspec.structs.replace(record, path=file, line=line))
