"""Conditions of causes: a known fact that contradicts one rules the cause out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dtdebug_taxonomy.inference.finding import Finding
from dtdebug_taxonomy.knowledge.loader import Knowledge

Needs = Mapping[str, tuple[str, ...]]
"""Observation -> values, one of which must hold."""


def contradiction(needs: Needs, findings: Sequence[Finding]) -> Finding | None:
    """Return the finding that excludes the needs: its observation has none of the values. None if there is none."""
    if not needs:
        return None
    return next(
        (f for f in findings if f.values and f.evidence in needs and not {*f.values} & {*needs[f.evidence]}), None
    )


def holds(needs: Needs, findings: Sequence[Finding]) -> bool:
    """True if everything needed is known, and known to be the only possibility."""
    known = {f.evidence: {*f.values} for f in findings if f.values}
    return all(key in known and known[key] <= {*values} for key, values in needs.items())


def sentence(knowledge: Knowledge, title: str, needs: Needs, against: Finding) -> str:
    """Return one sentence that explains why a cause is ruled out."""
    if not against.values:
        return f"Ruled out: {title[:1].lower()}{title[1:]}. {knowledge.evidence[against.evidence].means}"
    labels = {v.value: v.means for v in knowledge.observations[against.evidence].value}
    wanted = " or ".join(labels[v] for v in needs[against.evidence])
    seen = " and ".join(labels[v] for v in against.values)
    return f"Ruled out: {title[:1].lower()}{title[1:]}. That goes with {wanted}; here: {seen}."
