"""Chooses the next question: the one that saves the most expected minutes beyond its own cost.

Expected minutes: causes are tried in the order of probability over effort until the right
one is found. A question is worth asking if it shortens that. Information gain would continue
asking after the advice is settled.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from dtdebug_taxonomy.inference.finding import Finding, likelihood_ratios
from dtdebug_taxonomy.inference.ranking import PRINTED, Ranking, cause_ratio, named_by_causes, normalise_weights
from dtdebug_taxonomy.knowledge.loader import Knowledge
from dtdebug_taxonomy.knowledge.schema import MINUTES, STRENGTHS, Observation, Value

_UNKNOWN_CAUSE_MINUTES = 240.0
"""Minutes to find a cause that the knowledge does not contain."""
_ASKING = 0.25
"""Minutes to read and answer a question; finding out adds part of the observation's effort."""
_SHOWS = "manifestation"
"""Key of the manifestation: not asked if the user has pasted the error."""
_DOING = "activity"
"""Key of the activity: not asked if the exception that ended it is known, since its stack is more precise."""
_WORTH = 3.0
"""Minutes that a question must save beyond its cost: patience is short, and the estimate is rough."""
FEW = 4
"""Number of answers that can be read at a glance."""
_NEGLIGIBLE, _MATTERS = 0.005, 0.02
"""Probabilities below which a symptom is left out, and below which its causes are not weighed again."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Question worth asking."""

    key: str
    saves: float
    """Expected minutes saved beyond the cost of asking."""


def best_question(
    knowledge: Knowledge, ranking: Ranking, findings: Sequence[Finding], skip: Iterable[str] = ()
) -> Question | None:
    """Return the question that saves most, or None if none is worth asking. Keys in `skip` are not asked."""
    ranked = worthwhile(knowledge, ranking, findings, skip)
    return ranked[0] if ranked else None


def worthwhile(
    knowledge: Knowledge, ranking: Ranking, findings: Sequence[Finding], skip: Iterable[str] = ()
) -> list[Question]:
    """Return all questions worth asking, best first."""
    known = {f.evidence: f for f in findings if f.values}
    told = ("answered", *PRINTED)
    settled = {key for key, f in known.items() if f.source in told and len(f.values) == 1} | set(skip)
    if any(f.source in PRINTED and not f.values and knowledge.evidence[f.evidence].role == "root" for f in findings):
        settled.add(_SHOWS)
    if any(f.terminal for f in findings):
        settled.add(_DOING)
    now = _minutes(_walk(ranking.symptoms, ranking.causes))
    found = []
    unheard = _without(knowledge, ranking.symptoms, None)
    for key in _relevant_keys(knowledge, ranking) & knowledge.observations.keys():
        if key not in settled:
            cue = known.get(key)
            base = _without(knowledge, ranking.symptoms, cue) if cue else unheard
            gain = now - _expected_minutes(knowledge, ranking, key, cue, base=base, now=now)
            o = knowledge.observations[key]
            saves = STRENGTHS[o.answerable] * gain - minutes_of(o)
            if saves > _WORTH:
                found.append(Question(key=key, saves=saves))
    return sorted(found, key=lambda q: (-q.saves, q.key))


def _relevant_keys(knowledge: Knowledge, ranking: Ranking) -> set[str]:
    """Return the keys that likely symptoms or their causes mention, other than only as `never`."""
    likely = [knowledge.symptoms[code] for code, p in ranking.symptoms.items() if p > _MATTERS]
    seen = {key for s in likely for key, row in s.observed.items() if any(v != "never" for v in row.values())}
    return seen | {name.partition("=")[0] for s in likely for cause in s.cause for name in cause.evidence}


def minutes_of(observation: Observation) -> float:
    """Return the minutes to read and answer a question."""
    return _ASKING * (1 + math.log2(MINUTES[observation.effort]))


def separating_question(knowledge: Knowledge, codes: tuple[str, str], skip: Iterable[str] = ()) -> str | None:
    """Return the observation whose answers differ most between two symptoms (total variation distance)."""
    a, b = codes
    best, most = None, 0.25
    for key, o in knowledge.observations.items():
        if key in skip:
            continue
        rows = [knowledge.likelihood(key, v.value) for v in o.value]
        distance = STRENGTHS[o.answerable] * math.fsum(abs(r[a] - r[b]) for r in rows) / 2
        if distance > most:
            best, most = key, distance
    return best


def likeliest_first(knowledge: Knowledge, ranking: Ranking, observation: Observation) -> list[Value]:
    """Sort the answers by current probability; few answers keep their order."""
    if len(observation.value) <= FEW:
        return list(observation.value)

    def chance(value: Value) -> float:
        row = knowledge.likelihood(observation.key, value.value)
        return math.fsum(p * row[code] for code, p in ranking.symptoms.items())

    return sorted(observation.value, key=chance, reverse=True)


def _expected_minutes(
    knowledge: Knowledge, ranking: Ranking, key: str, cue: Finding | None, *, base: Mapping[str, float], now: float
) -> float:
    """Return the expected minutes once the question is answered; `base` is the posterior without its cue."""
    outcomes = []
    for v in knowledge.observations[key].value:
        row = knowledge.likelihood(key, v.value)
        heard = 1.0
        if cue is not None:
            inside = math.fsum(knowledge.share(key, w) for w in cue.values)
            heard = (cue.trust / inside if v.value in cue.values else 0.0) + 1 - cue.trust
        chance = heard * math.fsum(p * row[code] for code, p in base.items())
        outcomes.append((v.value, chance, row))
    total = math.fsum(chance for _, chance, _ in outcomes)
    if total <= 0:
        return now
    expected = 0.0
    for value, chance, row in outcomes:
        if chance / total < _NEGLIGIBLE:
            continue
        posterior = normalise_weights({code: p * row[code] for code, p in base.items()})
        answer = Finding(evidence=key, values=(value,), source="answered")
        expected += chance / total * _minutes(_walk(posterior, _causes_given(knowledge, ranking, answer, posterior)))
    return expected


def _without(knowledge: Knowledge, posterior: Mapping[str, float], cue: Finding | None) -> dict[str, float]:
    """Return the posterior as if a cue had not been read, without negligible symptoms."""
    if cue is None:
        weights = dict(posterior)
    else:
        ratio = likelihood_ratios(knowledge, cue)
        weights = {code: p / math.exp(ratio[code]) for code, p in posterior.items()}
    top = max(weights.values())
    return normalise_weights({code: w for code, w in weights.items() if w > _NEGLIGIBLE * top})


Causes = Mapping[str, Sequence[tuple[object, float]]]


def _causes_given(knowledge: Knowledge, ranking: Ranking, answer: Finding, posterior: Mapping[str, float]) -> Causes:
    """Return the causes reweighted by an answer, for the symptoms that matter."""
    result: dict[str, Sequence[tuple[object, float]]] = {}
    for code, p in posterior.items():
        row = ranking.causes[code]
        if p > _MATTERS and answer.evidence in named_by_causes(knowledge, knowledge.symptoms[code]):
            weights = [(c, q * math.exp(cause_ratio(knowledge, c, answer)) if c is not None else q) for c, q in row]
            total = math.fsum(w for _, w in weights)
            result[code] = [(c, w / total) for c, w in weights]
        else:
            result[code] = row
    return result


def _walk(symptoms: Mapping[str, float], causes: Causes) -> list[tuple[float, float]]:
    """Return (probability, minutes) of each cause that can be tried."""
    return [
        (p * q, MINUTES[cause.effort] if cause is not None else _UNKNOWN_CAUSE_MINUTES)  # type: ignore[attr-defined]
        for code, p in symptoms.items()
        if p > _NEGLIGIBLE
        for cause, q in causes[code]
    ]


def _minutes(walk: list[tuple[float, float]]) -> float:
    """Return the expected minutes of trying the causes, the best ratio of probability to minutes first."""
    spent = expected = 0.0
    for p, minutes in sorted(walk, key=lambda row: -row[0] / row[1]):
        spent += minutes
        expected += p * spent
    return expected
