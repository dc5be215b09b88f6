"""Checks of the source that show what lets ranks diverge, if the program's own check found that they did."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, Reason, explanation_for
from dtdebug_taxonomy.explanations.ranked_causes import reason_of

_VALUES = ("D.2.4", "D.2.5")
"""Symptoms of values that differ or do not converge."""
_PROBABILITY = 0.5


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
            found,
            cause=cause.id,
            diff=f.diff,
            diff_of="yours" if f.diff else "",
            file=f.file,
            line=f.line,
            because=because,
        )
        return
