"""Ranks symptoms, causes and fix patterns from findings: naive Bayes with published priors.

One formula for both levels: log prior + sum of log likelihood ratios, where a likelihood
is a worded strength. After Heckerman, Breese and Rommelse, "Decision-theoretic
troubleshooting", CACM 38(3), 1995, and the worded strengths of INTERNIST/QMR.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec

from dtdebug_taxonomy.findings import Finding, likelihood_ratios, shares
from dtdebug_taxonomy.knowledge import STUDY, Knowledge
from dtdebug_taxonomy.model import STRENGTHS, Cause, Symptom

_ECHO = 0.15
"""Weight of a cascade that contradicts a root seen on the same run."""
_UNSEEN = 0.1
"""P(message | cause) for a cause that does not name it."""


class Contribution(msgspec.Struct, frozen=True):
    """What one finding does to one symptom or cause."""

    finding: Finding
    weight: float
    """Log likelihood ratio: above 0 it speaks for, below 0 against."""


class Ranking(msgspec.Struct, frozen=True):
    """Probabilities of symptoms, of causes within each, and what moved them."""

    symptoms: dict[str, float]
    """Code -> probability, best first; they sum to 1."""
    contributions: dict[str, tuple[Contribution, ...]]
    causes: dict[str, tuple[tuple[Cause | None, float], ...]]
    """Code -> (cause, probability given the symptom), best first; None is "none of these"."""


def rank(knowledge: Knowledge, findings: Sequence[Finding]) -> Ranking:
    """The whole ranking; the order of findings does not matter."""
    parts = contributions(knowledge, findings)
    score = {code: math.log(p) + math.fsum(c.weight for c in parts[code]) for code, p in knowledge.prior.items()}
    posterior = normalised({code: math.exp(v - max(score.values())) for code, v in score.items()})
    return Ranking(
        symptoms=posterior,
        contributions=parts,
        causes={code: rank_causes(knowledge, s, findings) for code, s in knowledge.symptoms.items()},
    )


def normalised(weights: Mapping[str, float]) -> dict[str, float]:
    """The weights as probabilities, best first."""
    total = math.fsum(weights.values())
    return dict(sorted(((k, w / total) for k, w in weights.items()), key=lambda kw: -kw[1]))


def contributions(knowledge: Knowledge, findings: Sequence[Finding]) -> dict[str, tuple[Contribution, ...]]:
    """For each symptom what each finding adds, the strongest first; cascades that contradict a root count little."""
    roots = {_best(knowledge, f) for f in findings if _role(knowledge, f) == "root"}
    rows: dict[str, list[Contribution]] = {code: [] for code in knowledge.symptoms}
    for f in findings:
        role = _role(knowledge, f)
        if role == "advice":
            continue
        factor = _ECHO if role == "cascade" and roots and _best(knowledge, f) not in roots else 1.0
        for code, ratio in likelihood_ratios(knowledge, f).items():
            rows[code].append(Contribution(f, factor * ratio))
    order = {code: sorted(row, key=lambda c: (-abs(c.weight), c.finding.evidence)) for code, row in rows.items()}
    return {code: tuple(row) for code, row in order.items()}


def _role(knowledge: Knowledge, finding: Finding) -> str:
    """`root`, `cascade` or `advice` for a message that names symptoms, else ''."""
    found = knowledge.evidence.get(finding.evidence)
    if found is None:
        return ""
    return found.role if found.symptoms or found.role == "advice" else ""


def _best(knowledge: Knowledge, finding: Finding) -> str:
    share = shares(knowledge, finding.evidence)
    return max(share, key=lambda code: share[code])


def rank_causes(
    knowledge: Knowledge, symptom: Symptom, findings: Sequence[Finding]
) -> tuple[tuple[Cause | None, float], ...]:
    """Causes of one symptom given that it is the symptom, best first, with "none of these"."""
    prior = cause_priors(knowledge, symptom)
    named = named_by_causes(knowledge, symptom)
    relevant = [f for f in findings if f.evidence in named]
    scored = []
    for cause, p in prior:
        score = math.log(p)
        if cause is not None:
            score += math.fsum(cause_ratio(knowledge, cause, f) for f in relevant)
        scored.append((cause, score))
    top = max(v for _, v in scored)
    total = math.fsum(math.exp(v - top) for _, v in scored)
    return tuple(sorted(((c, math.exp(v - top) / total) for c, v in scored), key=lambda row: -row[1]))


def cause_ratio(knowledge: Knowledge, cause: Cause, finding: Finding) -> float:
    """Log of P(finding | cause) / P(finding | another cause)."""
    return _cause_ratio(knowledge, cause, finding.evidence, finding.values, finding.trust)


@lru_cache(maxsize=65536)
def _cause_ratio(knowledge: Knowledge, cause: Cause, evidence: str, values: tuple[str, ...], trust: float) -> float:
    if values:
        row = _cause_row(knowledge, cause, evidence)
        inside = math.fsum(row[v] for v in values)
        outside = math.fsum(knowledge.share(evidence, v) for v in values)
    else:
        inside = STRENGTHS[cause.evidence[evidence]] if evidence in cause.evidence else _UNSEEN
        outside = _UNSEEN
    return math.log(trust * inside / outside + 1 - trust)


@lru_cache(maxsize=256)
def named_by_causes(knowledge: Knowledge, symptom: Symptom) -> frozenset[str]:
    """Evidence and observations that tell the causes of a symptom apart."""
    return frozenset(name.partition("=")[0] for c in symptom.cause for name in c.evidence)


@lru_cache(maxsize=8192)
def _cause_row(knowledge: Knowledge, cause: Cause, key: str) -> dict[str, float]:
    """P(value | cause) for an observation; as for any other where the cause is silent."""
    values = [v.value for v in knowledge.observations[key].value]
    named = {v: STRENGTHS[cause.evidence[f"{key}={v}"]] for v in values if f"{key}={v}" in cause.evidence}
    if not named:
        return {v: knowledge.share(key, v) for v in values}
    rest = math.fsum(knowledge.share(key, v) for v in values if v not in named) or 1.0
    left = max(1 - math.fsum(named.values()), 0.02)
    weight = {v: named.get(v, left * knowledge.share(key, v) / rest) for v in values}
    total = math.fsum(weight.values())
    return {v: w / total for v, w in weight.items()}


@lru_cache(maxsize=256)
def cause_priors(knowledge: Knowledge, symptom: Symptom) -> tuple[tuple[Cause | None, float], ...]:
    """The published count of a cause's pattern, shared among the causes of that pattern, plus 1/2."""
    counts = symptom.counts[STUDY].fix_patterns
    sharing: dict[str, int] = {}
    for c in symptom.cause:
        sharing[c.pattern] = sharing.get(c.pattern, 0) + 1
    weight: list[tuple[Cause | None, float]] = [
        (c, counts.get(knowledge.patterns[c.pattern].name, 0) / sharing[c.pattern] + 0.5) for c in symptom.cause
    ]
    weight.append((None, math.fsum(uncovered(knowledge, symptom).values()) + 0.5))
    total = math.fsum(w for _, w in weight)
    return tuple((c, w / total) for c, w in weight)


def uncovered(knowledge: Knowledge, symptom: Symptom) -> dict[str, float]:
    """Published pattern name -> faults, for patterns that no cause of the symptom covers."""
    covered = {knowledge.patterns[c.pattern].name for c in symptom.cause}
    return {name: float(n) for name, n in symptom.counts[STUDY].fix_patterns.items() if name not in covered}


def fix_patterns(knowledge: Knowledge, ranking: Ranking) -> dict[str, float]:
    """Published pattern name -> probability over all symptoms and causes, best first."""
    everything = _pattern_share(knowledge)
    weight = dict.fromkeys(everything, 0.0)
    for code, p in ranking.symptoms.items():
        rest = uncovered(knowledge, knowledge.symptoms[code]) or everything
        total = math.fsum(rest.values())
        for cause, q in ranking.causes[code]:
            if cause is not None:
                weight[knowledge.patterns[cause.pattern].name] += p * q
            else:
                for name, n in rest.items():
                    weight[name] += p * q * n / total
    return normalised(weight)


@lru_cache(maxsize=4)
def _pattern_share(knowledge: Knowledge) -> dict[str, float]:
    total: dict[str, float] = {p.name: 0.5 for p in knowledge.patterns.values()}
    for s in knowledge.symptoms.values():
        for name, n in s.counts[STUDY].fix_patterns.items():
            total[name] = total.get(name, 0.5) + n
    return total
