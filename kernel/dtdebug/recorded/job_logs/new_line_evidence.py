"""Uses lines that a healthy run did not print as evidence: on accused ranks, else on the rank that printed them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dtdebug.recorded.job_logs.assign_ranks import twin
from dtdebug.recorded.job_logs.job_view import Job
from dtdebug.recorded.job_logs.new_lines import NewShape
from dtdebug_taxonomy.logs.lines import rank_of
from dtdebug_taxonomy.model.claims import Claim, Record, texts
from dtdebug_taxonomy.model.ranks import Verdict, spell

_LOGS, _RARE, _CLAIMS = 3, 16, 8
"""Number of logs from which "few" is defined, divisor of the logs that gives "few", and maximum number of claims."""
_CONFIDENCE = 0.4


def add_new_lines(job: Job, rows: Sequence[NewShape]) -> Job:
    """Add the new lines to the job, and a verdict based on those of few logs if it has none."""
    job = msgspec.structs.replace(job, new=tuple(rows))
    claims = _claims(job, rows)
    before = job.verdict
    if not claims or job.went_on is not None or job.ended is not None:
        return job
    accused = set(before.culprits) if before is not None else set()
    said = {(c.record.path, c.record.line) for c in before.claims} if before is not None else set()
    mine = [c for c in claims if set(c.ranks) <= accused and (c.record.path, c.record.line) not in said][:_CLAIMS]
    who = sorted({rank for c in claims for rank in c.ranks})
    if before is not None and mine:
        every = (*before.claims, *mine)
        verdict = msgspec.structs.replace(before, claims=every, evidence=(*before.evidence, *texts(mine)))
    elif not accused and len(who) == 1 and job.cascade:
        others = tuple(rank for rank in job.cascade if rank != who[0])
        name = spell(tuple(who), 8)
        verdict = Verdict(
            kind="not_understood",
            culprits=tuple(who),
            waiting=others,
            confidence=_CONFIDENCE,
            summary=f"{name[:1].upper()}{name[1:]} alone printed what the healthy run did not, and no rank reports "
            f"a failure of its own: {claims[0].words[:200]}",
            claims=tuple(claims[:_CLAIMS]),
            evidence=texts(claims[:_CLAIMS]),
        )
    else:
        return job
    return msgspec.structs.replace(
        job, verdict=verdict, snapshot=msgspec.structs.replace(job.snapshot, verdict=verdict)
    )


def _claims(job: Job, rows: Sequence[NewShape]) -> list[Claim]:
    """Return a claim for each new line that few logs hold and whose rank is known."""
    if job.files < _LOGS:
        return []
    ranks = {twin(span.file): span.rank for span in job.spans}
    found = []
    for row in rows:
        printed = rank_of(row.text)
        rank = ranks.get(twin(row.file)) if printed is None else printed
        if rank is not None and row.files <= max(1, job.files // _RARE):
            words = row.text[:200]
            record = Record(source="output", path=row.file, line=row.line, rank=rank, words=words)
            found.append(Claim(what="new", ranks=(rank,), words=words, record=record))
    return found
