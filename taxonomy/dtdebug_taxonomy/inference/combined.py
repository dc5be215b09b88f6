"""Composite indicators: present when all indicators of a set are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from dtdebug_taxonomy.inference.finding import Finding
from dtdebug_taxonomy.knowledge.loader import Knowledge
from dtdebug_taxonomy.knowledge.schema import Evidence


def combine_findings(knowledge: Knowledge, findings: tuple[Finding, ...]) -> Iterator[Finding]:
    """Yield a finding for each indicator with a complete set in `all`; its words are those of the set's first part.

    Its source is `said` as soon as one part is only the user's word. An observation counts if it has that value alone,
    but circumstances (a program has several frameworks) if it has that value among others.
    """
    seen = {name: f for f in findings for name in _names(knowledge, f)}
    for e in _with_all(knowledge):
        if any(name in seen for name in e.unless):
            continue
        parts = next(([seen[name] for name in names] for names in e.all if seen.keys() >= {*names}), None)
        if parts is not None:
            source = "said" if any(p.source == "said" for p in parts) else parts[0].source
            yield msgspec.structs.replace(parts[0], evidence=e.id, values=(), source=source)


def rests_on_output(knowledge: Knowledge, findings: Iterable[Finding], evidence: Evidence) -> bool:
    """True if a part of the set comes from more than the user's words."""
    seen = {name: f for f in findings for name in _names(knowledge, f)}
    sets = (names for names in evidence.all if seen.keys() >= {*names})
    return any(seen[name].source != "said" for names in sets for name in names)


def _names(knowledge: Knowledge, f: Finding) -> list[str]:
    if f.scores:
        return []
    known = len(f.values) <= 1 or knowledge.observations[f.evidence].context
    return [*f.names] if known else []


@lru_cache(maxsize=4)
def _with_all(knowledge: Knowledge) -> tuple[Evidence, ...]:
    return tuple(e for e in knowledge.evidence.values() if e.all)
