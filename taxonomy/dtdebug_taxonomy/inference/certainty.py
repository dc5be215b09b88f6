"""Determines how certain a diagnosis is of its symptom, and which ranks failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from dtdebug_taxonomy.inference.finding import LIKELY, TELLING, Finding
from dtdebug_taxonomy.inference.ranking import Contribution, Ranking
from dtdebug_taxonomy.knowledge.loader import Knowledge
from dtdebug_taxonomy.model.snapshot import Snapshot, walk

Certainty = Literal["settled", "leaning", "apart", "echo", "unknown"]
"""settled: one likely symptom; leaning: one ahead; apart: two that the findings do not
separate; echo: only follow-up errors are seen; unknown: too little is known."""

_CLOSE = 2.0
"""Two symptoms whose probabilities differ by less than this factor are ambiguous."""
_ENDS_ONLY = 0.4
"""Minimum probability at which the end of a rank, without a reason, names a symptom."""
_ANY_PROGRAM = frozenset(("accelerator", "backend", "container", "framework", "launcher", "mixed_precision", "nodes"))
"""Circumstances that support no symptom if the output names no failure."""
_ANY_ERROR = (("exception",), ("yes",))
"""Answer that there is an error, and no more."""
_CULPRITS = 64


def tells_failure(knowledge: Knowledge, finding: Finding) -> bool:
    """True for a message of a failure or of its echo; a launcher's boilerplate is an echo that names no symptom."""
    if finding.source == "checked":  # a defect in the source need not be the failure
        return False
    found = knowledge.evidence.get(finding.evidence)
    return found is not None and (found.role == "cascade" or (found.role == "root" and bool(found.symptoms)))


def certainty(
    knowledge: Knowledge,
    snapshot: Snapshot,
    ranking: Ranking,
    findings: tuple[Finding, ...],
    roots: list[Finding],
) -> Certainty:
    """Return the certainty; `roots` are the findings that report a failure."""
    codes = list(ranking.symptoms)[:2]
    first, second = (ranking.symptoms[code] for code in codes)
    # A healthy program also prints its framework, backend and steps: without a description they mean nothing.
    telling = roots or [f for f in findings if not f.scores and (snapshot.situation or f.source != "printed")]
    if snapshot.output and not roots:
        telling = [f for f in telling if not (f.evidence in _ANY_PROGRAM or f.values in _ANY_ERROR)]
    kinds = [knowledge.evidence[f.evidence] for f in roots]
    ends_only = any(e.verdict for e in kinds) and all(e.verdict or e.role == "cascade" for e in kinds)
    if roots and all(e.role == "cascade" for e in kinds) and not ends_only:
        return "echo"
    if not telling or first < (_ENDS_ONLY if ends_only else 0.25):
        return "unknown"
    rooted = [by_root(knowledge, ranking.contributions[code]) for code in codes]
    if roots and not snapshot.situation and not any(rooted) and first < LIKELY:
        return "unknown"  # only counts of faults, and the presence of an exception
    if first < _CLOSE * second and rooted != [True, False]:
        return "apart"
    return "settled" if first >= LIKELY else "leaning"


def by_root(knowledge: Knowledge, rows: Sequence[Contribution]) -> bool:
    """True if more than echoes, circumstances and counts supports a symptom."""
    own = (c.finding for c in rows if c.weight >= TELLING and not (c.finding.values or c.finding.scores))
    return any(knowledge.evidence[f.evidence].role == "root" for f in own)


def culprits(knowledge: Knowledge, snapshot: Snapshot, roots: list[Finding]) -> tuple[int, ...]:
    """Return the culprits of the verdict, else the ranks of root findings, else those that the launcher reports.

    Cascades name victims and do not count. Catch-all findings count only if no other root finding names a rank.
    """
    if snapshot.verdict is not None and snapshot.verdict.culprits:
        return snapshot.verdict.culprits[:_CULPRITS]
    known = [(f.rank, knowledge.evidence[f.evidence]) for f in roots if f.rank is not None]
    named = [(rank, e) for rank, e in known if e.role == "root"]
    ranks = {rank for rank, e in named if not e.catch_all} or {rank for rank, _ in named}
    reported = {i.rank for i in walk(snapshot.exception) if i.rank is not None}
    return tuple(sorted(ranks or reported)[:_CULPRITS])
