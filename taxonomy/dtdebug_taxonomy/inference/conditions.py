"""Conditions of causes: a known fact that contradicts one rules the cause out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

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


_RUNS = frozenset({"slow", "wrong_numbers", "wrong_placement"})
"""Ways in which a failure shows while the program runs."""
_NO_START = ("A.", "B.1", "B.2", "C.", "D.1.9")
"""Beginnings of the symptoms of a job that does not start."""


def goes_on(codes: Iterable[str], findings: Iterable[Finding]) -> bool:
    """True if the program is known to run on, and the symptoms are those of a job that does not start."""
    shown = next((f for f in findings if f.evidence == "manifestation" and f.values), None)
    return shown is not None and _RUNS.issuperset(shown.values) and all(code.startswith(_NO_START) for code in codes)
