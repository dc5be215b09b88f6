"""Checks of the source: of what a text shows, and of what lets ranks diverge where the program's own check found it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, Reason, explanation_for
from dtdebug_taxonomy.explanations.ranked_causes import reason_of
from dtdebug_taxonomy.inference.finding import POSSIBLE
from dtdebug_taxonomy.inference.shown_source import SHOWN, ShownHit, hits_in_shown
from dtdebug_taxonomy.text.pattern_matcher import plain

_VALUES = ("D.2.4", "D.2.5")
"""Symptoms of values that differ or do not converge."""
_PROBABILITY = 0.5
_WRONG = ("error", "warning")
"""Severities of what contradicts the contract of an API or a launcher."""


def explain(context: Context) -> Iterator[Explanation]:
    """Yield the first finding in the source that explains different values."""
    from dtdebug_taxonomy.checks import load

    if context.own_check is None:
        return
    for f in context.incident.snapshot.source_findings:
        check = load().get(f.check)
        if check is None or f.hint or check.symptom[0] not in _VALUES:
            continue
        _, cause = context.knowledge.causes[check.cause]
        shown = Reason(
            evidence=check.name, means=f.message, source="checked", weight=2.0, line=f.line, words=f.words, file=f.file
        )
        pattern, fix = context.knowledge.patterns[cause.pattern].name, f.fix or cause.fix
        found = explanation_for(check.symptom[0], cause.title, cause.why, fix, _PROBABILITY, shown, pattern=pattern)
        because = (reason_of(context.knowledge, context.own_check, shown.weight), shown)
        yield msgspec.structs.replace(
            found, cause=cause.id, diff=f.diff, diff_of="yours" if f.diff else "", because=because
        )
        return


def explain_shown(context: Context) -> Iterator[Explanation]:
    """Yield what is wrong in the shown source or command, if its symptom is one that the failure may have."""
    likely = {code for code, p in context.ranking.symptoms.items() if p >= POSSIBLE}
    found = (h for h in hits_in_shown(context.incident.snapshot) if h.hit.severity in _WRONG)
    if (first := next((h for h in found if not likely.isdisjoint(h.hit.check.symptom)), None)) is not None:
        yield _of_shown(context, first, next(code for code in first.hit.check.symptom if code in likely))


def explain_beside(context: Context) -> Iterator[Explanation]:
    """Yield what a check finds there, whatever the failure is."""
    found = (h for h in hits_in_shown(context.incident.snapshot) if h.hit.severity != "hint")
    if (first := next(found, None)) is not None:
        yield _of_shown(context, first, first.hit.check.symptom[0])


def _of_shown(context: Context, found: ShownHit, symptom: str) -> Explanation:
    check = found.hit.check
    _, cause = context.knowledge.causes[check.cause]
    message = " ".join(found.hit.message.split())
    shown = Reason(
        evidence=check.name,
        means=f"{message.rstrip('.')} ({check.id}).",
        source="checked",
        weight=2.0,
        line=found.line,
        words=plain(found.words)[:200],
        file=SHOWN,
    )
    pattern, fix = context.knowledge.patterns[cause.pattern].name, found.hit.fix.title if found.hit.fix else cause.fix
    made = explanation_for(symptom, cause.title, cause.why, fix, _PROBABILITY, shown, pattern=pattern)
    return msgspec.structs.replace(made, cause=cause.id, diff=found.diff, diff_of="yours" if found.diff else "")
