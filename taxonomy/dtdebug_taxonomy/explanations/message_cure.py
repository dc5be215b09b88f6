"""Advice of a known message, for a program that shows no sign of several processes."""

from __future__ import annotations

import msgspec

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, explanation_for
from dtdebug_taxonomy.explanations.ranked_causes import reason_of
from dtdebug_taxonomy.inference.finding import LIKELY, Finding
from dtdebug_taxonomy.inference.message_cures import cure_of
from dtdebug_taxonomy.inference.ranking import PRINTED
from dtdebug_taxonomy.knowledge.schema import Cure
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.text.distributed_signs import speaks_of_several

_WEIGHT = 1.5


def explain_message(context: Context) -> tuple[Explanation, ...]:
    """Return the likeliest of the causes that messages with advice of their own name."""
    ranking, knowledge = context.ranking, context.knowledge
    shares = {c.id: p * q for code, p in ranking.symptoms.items() for c, q in ranking.causes[code] if c is not None}
    rows = [(f, cure) for f in context.findings if (cure := _own_cure(context, f)) is not None]
    if not rows:
        return ()
    finding, cure = max(rows, key=lambda row: shares[row[1].cause])
    symptom, cause = knowledge.causes[cure.cause]
    pattern = knowledge.patterns[cause.pattern].name
    reason = reason_of(knowledge, finding, _WEIGHT)
    found = explanation_for(symptom.code, cure.title, cure.why or cause.why, cure.fix, LIKELY, reason, pattern=pattern)
    return (msgspec.structs.replace(found, grade="printed"),)


def _own_cure(context: Context, finding: Finding) -> Cure | None:
    """Return the message's advice, unless that is on several processes."""
    evidence = context.knowledge.evidence.get(finding.evidence)
    if evidence is None or evidence.catch_all or finding.source not in PRINTED or finding.values:
        return None
    if finding.line and context.incident.relevance.is_trained_after(finding.line):
        return None
    cures = (cure_of(evidence, c.cause, finding.row or finding.words) for c in evidence.cure)
    return next((c for c in cures if c is not None and not speaks_of_several(Snapshot(situation=c.title))), None)
