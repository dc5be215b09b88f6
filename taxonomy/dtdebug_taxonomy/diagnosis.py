"""From a snapshot and answers to a diagnosis: the answer, why, what to try, what to ask next.

`Diagnosis` is what every front end shows and what is saved: plain data, versioned, small.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from dtdebug_taxonomy import engine, questions
from dtdebug_taxonomy.findings import Finding, collect, plain
from dtdebug_taxonomy.happened import Seen, happened, seen
from dtdebug_taxonomy.knowledge import Knowledge
from dtdebug_taxonomy.labs import cause_diff
from dtdebug_taxonomy.model import MINUTES, Effort
from dtdebug_taxonomy.recognise import is_recognised
from dtdebug_taxonomy.snapshot import Snapshot, walk

VERSION = 1
"""Version of the JSON form; a change that breaks readers raises it."""
Band = Literal["likely", "possible", "unlikely"]

_LIKELY, _POSSIBLE = 0.6, 0.15
_CLOSE = 2.0
"""Two symptoms whose probabilities differ by less than this factor can't be told apart."""
_TELLING = 0.4
"""Log likelihood ratio from which a finding is worth showing."""
_ADVICE = 5
_TURNING = 5.0
"""Minutes that turning to another cause takes, whatever its fix."""
_NOTES = 10
_CULPRITS = 64


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """One finding that speaks for (or against) a symptom or cause."""

    evidence: str
    """Evidence id or `observation=value`."""
    means: str
    source: str
    weight: float
    """Log likelihood ratio."""
    line: int = 0
    words: str = ""
    rank: int | None = None


class RankedSymptom(msgspec.Struct, frozen=True, kw_only=True):
    """A symptom with its probability."""

    code: str
    probability: float
    id: str
    title: str
    band: Band
    why: tuple[Reason, ...] = ()


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """A cause with its fix; ordered by probability over minutes."""

    symptom: str
    cause: str
    title: str
    pattern: str
    """Published name of the fix pattern."""
    probability: float
    band: Band
    why: str
    fix: str
    effort: Effort
    minutes: float
    diff: str = ""
    because: tuple[Reason, ...] = ()


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The next question."""

    key: str
    ask: str
    values: tuple[tuple[str, str], ...]
    """(value, what it means) in the order to show."""
    why: str
    how: str
    command: str
    saves: float
    """Expected minutes that the answer saves; 0 where it is asked to tell two symptoms apart."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """An observation that is known without asking, or was answered."""

    key: str
    values: tuple[str, ...]
    source: str
    words: str = ""


class RankedPattern(msgspec.Struct, frozen=True, kw_only=True):
    """A fix pattern with its probability."""

    pattern: str
    probability: float


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer. All 30 symptoms and all fix patterns are ranked, best first."""

    v: int = VERSION
    recognised: bool
    """Something speaks for a fault of distributed training: worth showing unasked."""
    verdict: Literal["settled", "leaning", "apart", "echo", "unknown"]
    """settled: one likely symptom; leaning: one ahead; apart: two that the findings do not
    separate; echo: only the echo of an earlier failure is seen; unknown: too little is known."""
    symptoms: tuple[RankedSymptom, ...]
    advice: tuple[Advice, ...]
    fix_patterns: tuple[RankedPattern, ...]
    question: Asked | None = None
    known: tuple[Known, ...] = ()
    culprits: tuple[int, ...] = ()
    """Ranks that the first failure names."""
    notes: tuple[str, ...] = ()
    happened: str = ""
    """The first line of the answer: what happened, on which rank, where. Empty where only a description is known."""
    seen: tuple[Seen, ...] = ()
    """What supports it, each with its record."""


def diagnose(
    knowledge: Knowledge,
    snapshot: Snapshot,
    answers: Mapping[str, str] | None = None,
    unknown: tuple[str, ...] = (),
) -> Diagnosis:
    """The diagnosis of a snapshot; `unknown` are questions that the user could not answer."""
    findings = collect(knowledge, snapshot, answers)
    ranking = engine.rank(knowledge, findings)
    symptoms = tuple(_symptom(knowledge, ranking, code, p) for code, p in ranking.symptoms.items())
    roots = [f for f in findings if _tells_failure(knowledge, f)]
    verdict = _verdict(knowledge, snapshot, symptoms, findings, roots)
    skip = {*(answers or {}), *unknown}
    return Diagnosis(
        recognised=is_recognised(knowledge, snapshot, findings, roots),
        verdict=verdict,
        symptoms=symptoms,
        advice=_advice(knowledge, ranking, findings),
        fix_patterns=tuple(
            RankedPattern(pattern=name, probability=round(p, 4))
            for name, p in engine.fix_patterns(knowledge, ranking).items()
        ),
        question=_question(knowledge, ranking, findings, verdict, skip),
        known=tuple(
            Known(key=f.evidence, values=f.values, source=f.source, words=f.words) for f in findings if f.values
        ),
        culprits=_culprits(knowledge, snapshot, roots),
        notes=tuple(plain(note) for note in snapshot.notes[:_NOTES]),
        happened=happened(snapshot),
        seen=seen(snapshot.verdict),
    )


def band(probability: float) -> Band:
    """The word that is shown in place of a figure."""
    return "likely" if probability >= _LIKELY else "possible" if probability >= _POSSIBLE else "unlikely"


def _tells_failure(knowledge: Knowledge, finding: Finding) -> bool:
    """A message of a failure or of its echo; boilerplate of a launcher is an echo that names no symptom."""
    if finding.source == "checked":  # what is wrong in the source need not be what failed
        return False
    found = knowledge.evidence.get(finding.evidence)
    return found is not None and (found.role == "cascade" or (found.role == "root" and bool(found.symptoms)))


def _symptom(knowledge: Knowledge, ranking: engine.Ranking, code: str, p: float) -> RankedSymptom:
    s = knowledge.symptoms[code]
    telling = [c for c in ranking.contributions[code] if abs(c.weight) >= _TELLING]
    telling.sort(key=lambda c: not c.finding.terminal or c.weight < 0)  # what ended a rank is quoted first
    why = tuple(_reason(knowledge, c.finding, c.weight) for c in telling[:5]) if p >= _POSSIBLE / 3 else ()
    return RankedSymptom(code=code, probability=round(p, 4), id=s.id, title=s.title, band=band(p), why=why)


def _reason(knowledge: Knowledge, f: Finding, weight: float) -> Reason:
    name, means = f.evidence, ""
    if f.values:
        name = f"{f.evidence}={'|'.join(f.values)}"
        labels = {v.value: v.means for v in knowledge.observations[f.evidence].value}
        means = f"{knowledge.observations[f.evidence].ask} {' or '.join(labels[v] for v in f.values)}"
    elif f.scores:
        means = f"The text is {'like' if weight > 0 else 'unlike'} other descriptions of this symptom."
    else:
        means = knowledge.evidence[f.evidence].means
    return Reason(
        evidence=name,
        means=means,
        source=f.source,
        weight=round(weight, 2),
        line=f.line,
        words=f.words if not f.scores or weight == max(f.scores.values()) else "",  # they told the likest symptom
        rank=f.rank,
    )


def _advice(knowledge: Knowledge, ranking: engine.Ranking, findings: tuple[Finding, ...]) -> tuple[Advice, ...]:
    """The causes worth trying, by probability over minutes; what is unlikely comes last, however cheap."""
    rows = [
        (ranking.symptoms[code] * q, code, cause)
        for code in ranking.symptoms
        for cause, q in ranking.causes[code]
        if cause is not None and ranking.symptoms[code] * q >= _POSSIBLE / 5
    ]
    rows.sort(key=lambda row: (row[0] < _POSSIBLE, -row[0] / (MINUTES[row[2].effort] + _TURNING)))
    result = []
    for p, code, cause in rows[:_ADVICE]:
        ratios = [(engine.cause_ratio(knowledge, cause, f), f) for f in findings if _names(cause.evidence, f)]
        because = [_reason(knowledge, f, w) for w, f in sorted(ratios, key=lambda row: -row[0]) if w >= _TELLING]
        result.append(
            Advice(
                symptom=code,
                cause=cause.id,
                title=cause.title,
                pattern=knowledge.patterns[cause.pattern].name,
                probability=round(p, 4),
                band=band(p),
                why=cause.why,
                fix=cause.fix,
                effort=cause.effort,
                minutes=MINUTES[cause.effort],
                diff=cause_diff(cause),
                because=tuple(because[:3]),
            )
        )
    return tuple(result)


def _names(evidence: Mapping[str, str], f: Finding) -> bool:
    return f.evidence in evidence or any(name.startswith(f.evidence + "=") for name in evidence)


def _verdict(
    knowledge: Knowledge,
    snapshot: Snapshot,
    symptoms: tuple[RankedSymptom, ...],
    findings: tuple[Finding, ...],
    roots: list[Finding],
) -> Literal["settled", "leaning", "apart", "echo", "unknown"]:
    first, second = symptoms[0].probability, symptoms[1].probability
    # A healthy program prints its framework, backend and steps too: without a word of the user they tell nothing.
    telling = roots or [f for f in findings if not f.scores and (snapshot.situation or f.source != "printed")]
    if not telling or first < 0.25:
        return "unknown"
    if roots and all(knowledge.evidence[f.evidence].role == "cascade" for f in roots):
        return "echo"
    if first < _CLOSE * second:
        return "apart"
    return "settled" if first >= _LIKELY else "leaning"


def _culprits(knowledge: Knowledge, snapshot: Snapshot, roots: list[Finding]) -> tuple[int, ...]:
    """Of the verdict; else of root findings, for a cascade names victims; else those that the launcher reports.

    Whoever shows the bare class of an error, or a place, comes after those whose message names the failure.
    """
    if snapshot.verdict is not None and snapshot.verdict.culprits:
        return snapshot.verdict.culprits[:_CULPRITS]
    known = [(f.rank, knowledge.evidence[f.evidence]) for f in roots if f.rank is not None]
    named = [(rank, e) for rank, e in known if e.role == "root"]
    ranks = {rank for rank, e in named if not e.catch_all} or {rank for rank, _ in named}
    reported = {i.rank for i in walk(snapshot.exception) if i.rank is not None}
    return tuple(sorted(ranks or reported)[:_CULPRITS])


def _question(
    knowledge: Knowledge,
    ranking: engine.Ranking,
    findings: tuple[Finding, ...],
    verdict: str,
    skip: set[str],
) -> Asked | None:
    best = questions.best_question(knowledge, ranking, findings, skip)
    key, saves = (best.key, best.saves) if best else (None, 0.0)
    if key is None and verdict == "apart":
        measured = {f.evidence for f in findings if f.source == "measured"}
        first, second = list(ranking.symptoms)[:2]
        key = questions.separating_question(knowledge, (first, second), skip | measured)
    if key is None:
        return None
    o = knowledge.observations[key]
    values = tuple((v.value, v.means) for v in o.value)
    return Asked(key=key, ask=o.ask, values=values, why=o.why, how=o.how, command=o.command, saves=round(saves, 1))
