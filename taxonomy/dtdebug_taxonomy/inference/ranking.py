"""Ranks symptoms, causes and fix patterns from findings: naive Bayes with published priors.

One formula for both levels: log prior + sum of log likelihood ratios, where a likelihood
is a worded strength. After Heckerman, Breese and Rommelse, "Decision-theoretic
troubleshooting", CACM 38(3), 1995, and the worded strengths of INTERNIST/QMR.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from dtdebug_taxonomy.inference.conditions import contradiction
from dtdebug_taxonomy.inference.finding import SIMILAR_CAUSE, SIMILAR_FIX, Finding, likelihood_ratios, shares
from dtdebug_taxonomy.inference.message_cures import cure_of
from dtdebug_taxonomy.knowledge.loader import STUDY, Knowledge, spread
from dtdebug_taxonomy.knowledge.schema import STRENGTHS, Cause, Pattern, Symptom

_ECHO = 0.15
"""Factor on the weight of a cascade or catch-all that contradicts a root found in the same run."""
_UNSEEN = 0.1
"""P(message | cause) for a cause that does not name it."""
PRINTED = ("exception", "printed", "measured")
"""Sources of findings that the program or its ranks produced."""
_NEGLIGIBLE = 0.002
"""Probability of a symptom below which its causes are not ranked."""
_POINTING, _POINTING_ECHO = 0.4, 1.7
"""Minimum log likelihood ratio at which a finding, or an echo of another failure, points at a cause."""
_VAGUE = 3
"""Number of causes of one symptom that share the user's words or a generic message: from here on they describe the
symptom and point at none."""
_POINTING_CONTEXT = 1.5
"""The same for the sum over circumstances."""
_MERELY_ABSENT = {"not_arrived", "left"}
"""Kinds of verdicts that report a missing rank without a reason: alone they point at no cause."""
_SMOOTHING = 3.0
"""Weight, in faults, of the overall share of fix patterns that is mixed into each symptom's counts."""


class Contribution(msgspec.Struct, frozen=True):
    """Weight of one finding for one symptom or cause."""

    finding: Finding
    weight: float
    """Log likelihood ratio: above 0 supports it, below 0 contradicts it."""


class Hypotheses(NamedTuple):
    """Causes of one symptom, given that it is present; see `Ranking`."""

    causes: tuple[tuple[Cause | None, float], ...]
    supported: tuple[tuple[Cause | None, float], ...]
    uncovered: dict[str, float]


class Ranking(msgspec.Struct, frozen=True):
    """Probabilities of symptoms and of the causes of each, with the findings behind them."""

    symptoms: dict[str, float]
    """Code -> probability, best first; they sum to 1."""
    contributions: dict[str, tuple[Contribution, ...]]
    causes: dict[str, tuple[tuple[Cause | None, float], ...]]
    """Code -> (cause, probability given the symptom), best first; None is "none of these"."""
    supported: dict[str, tuple[tuple[Cause | None, float], ...]]
    """The same without the likeness of words to causes, which orders them and supports none."""
    uncovered: dict[str, dict[str, float]]
    """Code -> pattern name -> probability within "none of these"."""


def rank(knowledge: Knowledge, findings: Sequence[Finding]) -> Ranking:
    """Return the whole ranking; the order of findings does not matter."""
    parts = contributions(knowledge, findings)
    score = {code: math.log(p) + math.fsum(c.weight for c in parts[code]) for code, p in knowledge.prior.items()}
    posterior = normalise_weights({code: math.exp(v - max(score.values())) for code, v in score.items()})
    rows = {
        code: rank_hypotheses(knowledge, s, findings) if posterior[code] > _NEGLIGIBLE else _prior_causes(knowledge, s)
        for code, s in knowledge.symptoms.items()
    }
    return Ranking(
        symptoms=posterior,
        contributions=parts,
        causes={code: row.causes for code, row in rows.items()},
        supported={code: row.supported for code, row in rows.items()},
        uncovered={code: row.uncovered for code, row in rows.items()},
    )


def normalise_weights(weights: Mapping[str, float]) -> dict[str, float]:
    """Return the weights as probabilities, best first."""
    total = math.fsum(weights.values())
    return dict(sorted(((k, w / total) for k, w in weights.items()), key=lambda kw: -kw[1]))


def contributions(knowledge: Knowledge, findings: Sequence[Finding]) -> dict[str, tuple[Contribution, ...]]:
    """Return what each finding adds to each symptom, strongest first.

    An echo (a cascade, or the bare class of an error) that contradicts a root counts little, and so do the user's
    words for a failure if the output names another, or the source that is shown; what is read out of words as an answer
    to a question counts little too where it contradicts these.
    """
    named = [f for f in findings if _is_root(knowledge, f)]
    firm = [f for f in named if f.source in PRINTED and not knowledge.evidence[f.evidence].generic]
    printed = {_best(knowledge, f) for f in firm}
    shown = {_best(knowledge, f) for f in named if f.source == "checked"}
    roots = printed or {_best(knowledge, f) for f in named}
    rows: dict[str, list[Contribution]] = {code: [] for code in knowledge.symptoms}
    for f in findings:
        ratios = likelihood_ratios(knowledge, f)
        names_symptom = bool(ratios) and f.evidence in knowledge.evidence
        weak = not _is_root(knowledge, f) or (f.source == "said" and bool(printed or shown))
        echo = names_symptom and weak and bool(roots) and _best(knowledge, f) not in roots
        if f.values and f.source == "said" and not knowledge.observations[f.evidence].context:
            echo = any(ratios[code] < 0 for code in printed | shown)
        for code, ratio in ratios.items():
            rows[code].append(Contribution(f, _ECHO * ratio if echo else ratio))
    order = {code: sorted(row, key=lambda c: (-abs(c.weight), c.finding.evidence)) for code, row in rows.items()}
    return {code: tuple(row) for code, row in order.items()}


def _is_root(knowledge: Knowledge, finding: Finding) -> bool:
    """True for a message that names the first failure, and not only the class of an error."""
    found = knowledge.evidence.get(finding.evidence)
    return found is not None and bool(found.symptoms) and found.role == "root" and not found.catch_all


def _best(knowledge: Knowledge, finding: Finding) -> str:
    share = shares(knowledge, finding.evidence)
    return max(share, key=lambda code: share[code])


def rank_hypotheses(knowledge: Knowledge, symptom: Symptom, findings: Sequence[Finding]) -> Hypotheses:
    """Return the causes of a symptom, given that it is present, and the published patterns that no cause covers."""
    named = named_by_causes(knowledge, symptom)
    relevant = [f for f in findings if f.evidence in named]
    alike = next((f.scores for f in findings if f.evidence == SIMILAR_FIX), {})
    causes_alike = next((f.scores for f in findings if f.evidence == SIMILAR_CAUSE), {})
    rows = [
        once([_ratios(knowledge, symptom, f.evidence, f.values, f.trust) for f in group])
        for group in by_words(knowledge, relevant)
    ]
    score = {}
    for place, (hypothesis, p) in enumerate(hypothesis_priors(knowledge, symptom).items()):
        if isinstance(hypothesis, Cause) and excluding(knowledge, hypothesis, findings) is not None:
            continue
        ratios = [row[place] for row in rows]
        score[hypothesis] = math.log(p) + math.fsum((*ratios, alike.get(_pattern_id(knowledge, hypothesis), 0.0)))
    supported, uncovered = _split(score)
    if not (causes_alike and score):
        return Hypotheses(supported, supported, uncovered)
    aided = {h: v + causes_alike.get(h.id, 0.0) if isinstance(h, Cause) else v for h, v in score.items()}
    return Hypotheses(_split(aided)[0], supported, uncovered)


def _split(score: Mapping[Cause | str, float]) -> tuple[tuple[tuple[Cause | None, float], ...], dict[str, float]]:
    """Return the probabilities of causes, None for "none of these", and those of patterns within these."""
    if not score:  # every cause is ruled out, and no pattern is left
        return ((None, 1.0),), {}
    top = max(score.values())
    weight = {h: math.exp(v - top) for h, v in score.items()}
    total = math.fsum(weight.values())
    causes: list[tuple[Cause | None, float]] = [(h, w / total) for h, w in weight.items() if isinstance(h, Cause)]
    others = {h: w for h, w in weight.items() if isinstance(h, str)}
    rest = math.fsum(others.values())
    causes.append((None, rest / total))
    return tuple(sorted(causes, key=lambda row: -row[1])), {name: w / rest for name, w in others.items()}


def by_words(knowledge: Knowledge, findings: Sequence[Finding]) -> list[list[Finding]]:
    """Group each statement of the user with the answers read from the same words: it is one record.

    Circumstances (a framework, a launcher) form groups of their own.
    """
    groups = [[f] for f in findings if not (f.values and f.source == "said")]
    said = [g for g in groups if g[0].source == "said" and g[0].words]
    for f in findings:
        if f.values and f.source == "said":
            context = knowledge.observations[f.evidence].context
            same = [g for g in said if not context and f.line == g[0].line and g[0].words in f.words]
            if same:
                max(same, key=lambda g: (len(g[0].words), g[0].evidence)).append(f)
            else:
                groups.append([f])
    return groups


def once(rows: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    """Return the strongest effect on each hypothesis among findings of the same words."""
    return rows[0] if len(rows) == 1 else tuple(max(column, key=abs) for column in zip(*rows, strict=True))


def excluding(knowledge: Knowledge, cause: Cause, findings: Sequence[Finding]) -> Finding | None:
    """Return the finding that rules a cause out; if a line names the cause, only printed or measured findings can.

    Words rule out nothing that the source, the output or a measurement shows.
    """
    against = next((f for f in findings if f.evidence in cause.unless), None) or contradiction(cause.needs, findings)
    if against is not None and against.source == "said" and _is_shown_by_more(knowledge, cause, findings):
        firm = [f for f in findings if f.source != "said"]
        against = next((f for f in firm if f.evidence in cause.unless), None) or contradiction(cause.needs, firm)
    if against is None or against.source in PRINTED or not against.values:
        return against
    printed = (f for f in findings if f.source in PRINTED and is_named(knowledge, cause, f))
    if any(not knowledge.evidence[f.evidence].all for f in printed):
        return contradiction(cause.needs, [f for f in findings if f.source in PRINTED])
    return against


def _is_shown_by_more(knowledge: Knowledge, cause: Cause, findings: Sequence[Finding]) -> bool:
    """True if a check of the source points at the cause, or a message that is not any program's."""
    return any(
        f.evidence in cause.evidence and (f.source == "checked" or not knowledge.evidence[f.evidence].generic)
        for f in findings
        if f.source in ("checked", *PRINTED) and not (f.values or f.scores)
    )


@lru_cache(maxsize=256)
def _prior_causes(knowledge: Knowledge, symptom: Symptom) -> Hypotheses:
    """Return the causes of a negligible symptom by their priors alone."""
    return rank_hypotheses(knowledge, symptom, ())


@lru_cache(maxsize=8192)
def _ratios(
    knowledge: Knowledge, symptom: Symptom, evidence: str, values: tuple[str, ...], trust: float
) -> tuple[float, ...]:
    """Return a finding's log likelihood ratio for each hypothesis of a symptom, in the order of their priors."""
    return tuple(_ratio(knowledge, h, evidence, values, trust) for h in hypothesis_priors(knowledge, symptom))


def _pattern_id(knowledge: Knowledge, hypothesis: Cause | str) -> str:
    return hypothesis.pattern if isinstance(hypothesis, Cause) else knowledge.pattern_ids.get(hypothesis, "")


def points_at(knowledge: Knowledge, cause: Cause, finding: Finding, weight: float) -> bool:
    """True if a finding, with its weight for a cause, is an indicator of that cause on its own.

    Context (framework, launcher, ...) only orders causes, and an echo says little about what came first.
    """
    if finding.scores or weight < _POINTING:
        return False
    if finding.values:
        return not knowledge.observations[finding.evidence].context
    found = knowledge.evidence[finding.evidence]
    vague = finding.source == "said" or (
        found.generic and bool(found.text) and _listing(knowledge, cause)[found.id] > _VAGUE
    )
    if vague and not is_named(knowledge, cause, finding) and _listing(knowledge, cause)[found.id] >= _VAGUE:
        return False
    if found.verdict and not found.stack and _MERELY_ABSENT.issuperset(found.verdict):
        return False
    return cause.id in found.names or found.role != "cascade" or weight >= _POINTING_ECHO


@lru_cache(maxsize=1024)
def _listing(knowledge: Knowledge, cause: Cause) -> Counter[str]:
    """Count the causes of the symptom that name each evidence, without those that only some of its words name."""
    causes = next(s.cause for s in knowledge.symptoms.values() if cause in s.cause)
    return Counter(name for c in causes for name in c.evidence if not _by_words(knowledge, c, name))


def _by_words(knowledge: Knowledge, cause: Cause, evidence: str) -> bool:
    found = knowledge.evidence.get(evidence)
    if found is None or cause.id in found.names:
        return False
    return any(c.cause == cause.id and c.when for c in found.cure)


def shared_by(knowledge: Knowledge, cause: Cause, finding: Finding) -> int:
    """Return how many causes of the symptom name the finding."""
    return max(_listing(knowledge, cause)[name] for name in finding.names)


def is_shown(knowledge: Knowledge, cause: Cause, weighed: Sequence[tuple[float, Finding]]) -> bool:
    """True if an indicator points at a cause, or circumstances together support it."""
    if any(points_at(knowledge, cause, f, w) for w, f in weighed):
        return True
    return math.fsum(w for w, f in weighed if f.values and w > 0) >= _POINTING_CONTEXT


def is_named(knowledge: Knowledge, cause: Cause, finding: Finding) -> bool:
    """True if the message itself names the cause, or a check finds it on the line where a rank fails or waits."""
    if finding.values or finding.scores:
        return False
    found = knowledge.evidence[finding.evidence]
    return (
        cause.id in found.names
        or cure_of(found, cause.id, finding.words) is not None
        or (finding.near != "file" and finding.evidence in cause.evidence)
    )


def cause_ratio(knowledge: Knowledge, cause: Cause, finding: Finding) -> float:
    """Return log(P(finding | cause) / P(finding | another cause))."""
    return _ratio(knowledge, cause, finding.evidence, finding.values, finding.trust)


@lru_cache(maxsize=65536)
def _ratio(
    knowledge: Knowledge, hypothesis: Cause | str, evidence: str, values: tuple[str, ...], trust: float
) -> float:
    """Return the same for a cause, or for a pattern's name, which represents its unnamed causes; cached."""
    if values:
        row = _row(knowledge, hypothesis, evidence)
        if row is None:
            return 0.0
        inside = math.fsum(row[v] for v in values)
        outside = math.fsum(knowledge.share(evidence, v) for v in values)
    else:
        said = hypothesis.evidence if isinstance(hypothesis, Cause) else {}
        inside, outside = STRENGTHS[said[evidence]] if evidence in said else _UNSEEN, _UNSEEN
    return math.log(trust * inside / outside + 1 - trust)


@lru_cache(maxsize=256)
def named_by_causes(knowledge: Knowledge, symptom: Symptom) -> frozenset[str]:
    """Return evidence and observations that distinguish the causes of a symptom."""
    return frozenset().union(*map(keys_of, (*symptom.cause, *knowledge.patterns.values())))


@lru_cache(maxsize=4096)
def keys_of(record: Cause | Pattern) -> frozenset[str]:
    """Return evidence and observations that a cause or fix pattern names."""
    return frozenset(name.partition("=")[0] for name in record.evidence)


@lru_cache(maxsize=8192)
def _row(knowledge: Knowledge, hypothesis: Cause | str, key: str) -> dict[str, float] | None:
    """Return P(value | hypothesis) from the cause, else from its fix pattern; None if neither states it."""
    observation = knowledge.observations[key]
    pattern = knowledge.patterns.get(_pattern_id(knowledge, hypothesis))
    for record in (hypothesis, pattern):
        if isinstance(record, Cause | Pattern) and key in keys_of(record):
            names = ((v.value, f"{key}={v.value}") for v in observation.value)
            if named := {value: record.evidence[name] for value, name in names if name in record.evidence}:
                return spread(named, observation)
    return None


@lru_cache(maxsize=256)
def hypothesis_priors(knowledge: Knowledge, symptom: Symptom) -> dict[Cause | str, float]:
    """Return the prior of each cause, and of each published pattern that no cause covers (by its name).

    A cause has the published count of its pattern, shared among the causes of that
    pattern, plus 1/2; one that is newer than the study has the 1/2 alone. Small counts are smoothed by the patterns'
    share over all symptoms.
    """
    counts = symptom.counts[STUDY].fix_patterns
    everywhere = pattern_share(knowledge)
    sharing: dict[str, int] = {}
    counted = [c for c in symptom.cause if not c.uncounted]
    for c in counted:
        name = knowledge.patterns[c.pattern].name
        sharing[name] = sharing.get(name, 0) + 1
    weight: dict[Cause | str, float] = {c: 0.5 for c in symptom.cause if c.uncounted}
    for c in counted:
        name = knowledge.patterns[c.pattern].name
        weight[c] = (counts.get(name, 0) + _SMOOTHING * everywhere[name]) / sharing[name] + 0.5
    for name, share in everywhere.items():
        if name not in sharing:
            weight[name] = counts.get(name, 0) + _SMOOTHING * share
    total = math.fsum(weight.values())
    return {h: w / total for h, w in weight.items()}


def fix_patterns(knowledge: Knowledge, ranking: Ranking) -> dict[str, float]:
    """Return published pattern name -> probability over all symptoms and causes, best first."""
    weight = dict.fromkeys(pattern_share(knowledge), 0.0)
    for code, p in ranking.symptoms.items():
        for cause, q in ranking.causes[code]:
            if cause is not None:
                weight[knowledge.patterns[cause.pattern].name] += p * q
            else:
                for name, share in ranking.uncovered[code].items():
                    weight[name] += p * q * share
    return normalise_weights(weight)


@lru_cache(maxsize=4)
def pattern_share(knowledge: Knowledge) -> dict[str, float]:
    """Return published pattern name -> share over all symptoms."""
    total: dict[str, float] = {p.name: 0.5 for p in knowledge.patterns.values()}
    for s in knowledge.symptoms.values():
        for name, n in s.counts[STUDY].fix_patterns.items():
            total[name] = total.get(name, 0) + n
    return {name: n / math.fsum(total.values()) for name, n in total.items()}
