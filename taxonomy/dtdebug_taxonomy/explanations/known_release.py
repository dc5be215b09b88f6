"""Releases that are known to fail with what is printed or described."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, Reason, band
from dtdebug_taxonomy.inference.known_releases import FittingRelease, fitting_releases
from dtdebug_taxonomy.knowledge.loader import Knowledge
from dtdebug_taxonomy.knowledge.schema import MINUTES
from dtdebug_taxonomy.text.pattern_matcher import plain

_NAMED, _UNNAMED = 0.8, 0.4
"""Probabilities of a fault of a release that is named, and of one that only its message suggests."""


def explain(context: Context) -> Iterator[Explanation]:
    """Yield each known fault of a release that fits."""
    for row in fitting_releases(context.knowledge, context.incident.snapshot):
        yield _of_release(context.knowledge, row)


def _of_release(knowledge: Knowledge, row: FittingRelease) -> Explanation:
    fact, (hit, source) = row.fact, row.seen
    p = _NAMED if row.named else _UNNAMED
    because = [
        Reason(evidence=fact.id, means=fact.title, source=source, weight=2.0, line=hit.line, words=plain(hit.words))
    ]
    if row.named is not None:
        means = f"{fact.package} {row.named.release} is one of the releases that do this ({fact.range or 'all'})."
        n = row.named
        because.append(
            Reason(evidence=fact.id, means=means, source=n.source, weight=2.0, line=n.line, words=plain(n.words))
        )
    return Explanation(
        symptom=fact.symptom,
        cause=fact.id,
        title=fact.title,
        pattern=knowledge.patterns[fact.pattern].name,
        probability=p,
        band=band(p),
        why=f"{fact.why} ({fact.cite})",
        fix=fact.fix,
        effort=fact.effort,
        minutes=MINUTES[fact.effort],
        because=tuple(because),
        named=True,
    )
