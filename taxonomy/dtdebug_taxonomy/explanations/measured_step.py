"""Steps of the training that were compared or repeated: what they have shown to be wrong, with its factor or place."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, Reason, explanation_for, with_diff
from dtdebug_taxonomy.inference.finding import POSSIBLE
from dtdebug_taxonomy.model.training import Violation

_SURE, _UNSURE = 0.95, (POSSIBLE + 0.5) / 2
"""Probabilities of a cause that the measurement leaves alone, and of one among others."""


def measured(violations: tuple[Violation, ...]) -> Violation | None:
    """Return the first violation whose cause was measured."""
    return next((v for v in violations if v.cause), None)


def explain(context: Context) -> Iterator[Explanation]:
    """Yield the cause that a compared or repeated step has shown."""
    found = measured(context.incident.snapshot.watched)
    if found is None:
        return
    shown = explanation_for(
        found.symptom,
        found.cause.rstrip("."),
        found.means,
        found.fix,
        _SURE if found.sure else _UNSURE,
        Reason(
            evidence=found.invariant,
            means=found.means,
            source="measured",
            weight=3.0,
            rank=found.ranks[0] if len(found.ranks) == 1 else None,
        ),
        named=found.sure,
    )
    yield with_diff(shown, found.diff, file=found.file, line=found.line) if found.diff else shown
