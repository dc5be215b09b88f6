"""From a snapshot and answers to a diagnosis: the answer, why, what to try, what to ask next.

`Diagnosis` is what every front end shows and what is saved: plain data, versioned, small.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from dtdebug_taxonomy import engine, questions
from dtdebug_taxonomy.advice import POSSIBLE, Advice, Band, Reason, band
from dtdebug_taxonomy.certainty import Certainty, certainty, culprits, tells_failure
from dtdebug_taxonomy.chosen import TELLING, advice_of, reason, ruled_out
from dtdebug_taxonomy.compared import COMPARED
from dtdebug_taxonomy.examples import fitting
from dtdebug_taxonomy.failure.roles import is_summary
from dtdebug_taxonomy.finding import Finding, plain
from dtdebug_taxonomy.findings import collect
from dtdebug_taxonomy.guesses import parted
from dtdebug_taxonomy.happened import (
    Seen,
    alone,
    contradicted,
    ended,
    first_ending,
    happened,
    printed,
    raised_in_output,
    warned,
)
from dtdebug_taxonomy.knowledge import Knowledge
from dtdebug_taxonomy.measured import measured, with_measured
from dtdebug_taxonomy.model import STRENGTHS
from dtdebug_taxonomy.next_step import Ask, Next, Repair, next_step
from dtdebug_taxonomy.ordinary import is_foreign, ordinary
from dtdebug_taxonomy.outright import outright
from dtdebug_taxonomy.recognise import is_recognised
from dtdebug_taxonomy.signs import speaks_of_several
from dtdebug_taxonomy.snapshot import Snapshot
from dtdebug_taxonomy.together import together
from dtdebug_taxonomy.versions import fitting_releases

VERSION = 1
"""Version of the JSON form; a change that breaks readers raises it."""

_QUESTIONS = 3
"""Answers after which there is a cause or an honest end; "I don't know" is none."""
_NOTES = 10
_FRAME = re.compile(r"\Ain \w|\", line \d")
"""Words that were found in a frame of a traceback: they say where it was, not what."""


class RankedSymptom(msgspec.Struct, frozen=True, kw_only=True):
    """A symptom with its probability."""

    code: str
    probability: float
    id: str
    title: str
    band: Band
    why: tuple[Reason, ...] = ()


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
    verdict: Certainty
    ordinary: str = ""
    """An error of the program that has nothing to do with distribution, in one line; nothing else is then said."""
    symptoms: tuple[RankedSymptom, ...]
    advice: tuple[Advice, ...]
    """Empty where no indicator points at a cause: then the cause is not known, and `next` says what would tell it."""
    guesses: tuple[Advice, ...] = ()
    """Where the cause is not known: what the user's words alone may mean, which is right about half of the time."""
    next: Next | None = None
    """The cheapest next step: fix, measure or ask."""
    ruled_out: tuple[str, ...] = ()
    """Causes that a known fact contradicts, as sentences."""
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
    later: tuple[Diagnosis, ...] = ()
    """Further failures of the same output, cases of their own: nothing connects them with this one but their order."""

    @property
    def asks_nothing(self) -> bool:
        """The output names the first cause, or the user's words have answered the question: a text does not ask it."""
        heard = {k.key for k in self.known if k.source == "said" and len(k.values) == 1}
        return _names(self.advice) or (self.question is not None and self.question.key in heard)


def diagnose(
    knowledge: Knowledge,
    snapshot: Snapshot,
    answers: Mapping[str, str] | None = None,
    unknown: tuple[str, ...] = (),
) -> Diagnosis:
    """The diagnosis of a snapshot; `unknown` are questions that the user could not answer."""
    findings = collect(knowledge, snapshot, answers)
    findings = (*findings, *together(knowledge, findings))
    ranking = engine.rank(knowledge, findings)
    symptoms = tuple(_symptom(knowledge, ranking, code, p) for code, p in ranking.symptoms.items())
    roots = [f for f in findings if tells_failure(knowledge, f)]
    foreign = is_foreign(knowledge, snapshot, findings)
    verdict = "unknown" if foreign else certainty(knowledge, snapshot, ranking, findings, roots)
    shown = measured(snapshot, next(iter(ranking.symptoms)))
    plainly = ordinary(knowledge, snapshot, findings) if foreign and shown is None else ""
    if plainly and (fact := next(iter(fitting_releases(knowledge, snapshot)), None)) is not None:
        plainly = f"{plainly} {fact.fact.title}. {fact.fact.fix}"
    plainly = f"{plainly} {_of_several(knowledge, findings)}".rstrip() if plainly else ""
    skip = {*(answers or {}), *unknown, *(("error_text_on_some_rank",) if raised_in_output(snapshot) else ())}
    only_ended = verdict == "unknown" and snapshot.verdict is not None  # no answer says what the rank has not printed
    enough = len(answers or {}) >= _QUESTIONS
    question = None if plainly or only_ended or enough else _question(knowledge, ranking, findings, verdict, skip)
    advice = () if foreign else outright(knowledge, snapshot, ranking, advice_of(knowledge, ranking, findings))
    advice = _below_first(fitting(snapshot, advice))
    if only_ended:  # which is no cause of its end
        advice = tuple(a for a in advice if a.band != "unlikely")
    advice = advice if shown is None else with_measured(advice, shown)
    advice, guesses = parted(knowledge, findings, advice)
    ending = first_ending(snapshot)
    lone, warning = alone(snapshot, ending), warned(ending)
    told, supports = happened(snapshot, lone)
    named = _by_telling(knowledge, advice[0].because if advice and advice[0].named else ())
    if verdict == "echo" and snapshot.verdict is None and (lone is None or is_summary(f"{lone.type}: {lone.message}")):
        echoes = [f for f in findings if _is_echo(knowledge, f) and not knowledge.evidence[f.evidence].catch_all]
        echoes = sorted(echoes, key=lambda f: -_telling(knowledge, f))
        words = printed(reason(knowledge, f, 1.0) for f in echoes)
        told, supports = words if words[0] else (told, supports)
    elif not told and verdict in ("settled", "leaning", "apart"):
        told, supports = printed((*named, *(r for r in symptoms[0].why if not _is_vague(knowledge, r))))
    elif (
        snapshot.verdict is not None
        and snapshot.verdict.kind == "not_understood"
        and not (snapshot.ranks or snapshot.verdict.culprits)
    ):
        # which ranks wait is known, and the output names what may have kept another one from coming
        waits = min((c.record.line for c in snapshot.verdict.claims if c.record.line), default=0)
        before = (r for r in symptoms[0].why if r.line <= waits and not _FRAME.search(r.words))
        first, quoted = printed(named or (r for r in before if not _is_vague(knowledge, r)))
        told, supports = first or told, (*quoted, *supports)
    if not told:
        told, supports = warning if warning[0] else ended(ending)
    if told and not (advice or roots) and all(r.scores for r in _telling_of(ranking)):
        verdict = "unknown"  # what happened is told; a likeness of words alone names no symptom
    return Diagnosis(
        recognised=not foreign
        and (
            is_recognised(knowledge, snapshot, findings, roots)
            or (_names(advice) and ending is not None)
            or (ending is not None and ending.told == "layer")
            or (any(a.cause == COMPARED for a in advice) and speaks_of_several(snapshot))
        ),
        verdict=verdict,
        ordinary=plainly,
        symptoms=symptoms,
        advice=advice,
        guesses=guesses,
        next=None if plainly else _next(knowledge, snapshot, ranking, findings, (advice, question)),
        ruled_out=_ruled_out(snapshot, () if plainly else ruled_out(knowledge, ranking, findings)),
        fix_patterns=tuple(
            RankedPattern(pattern=name, probability=round(p, 4))
            for name, p in engine.fix_patterns(knowledge, ranking).items()
        ),
        question=question,
        known=tuple(
            Known(key=f.evidence, values=f.values, source=f.source, words=f.words) for f in findings if f.values
        ),
        culprits=culprits(knowledge, snapshot, roots),
        notes=(*contradicted(snapshot, findings), *(plain(note) for note in snapshot.notes[:_NOTES])),
        happened=told,
        seen=() if plainly else supports,
        later=tuple(diagnose(knowledge, each) for each in snapshot.later),
    )


def _telling_of(ranking: engine.Ranking) -> list[Finding]:
    """What speaks for the likeliest symptom."""
    return [c.finding for c in ranking.contributions[next(iter(ranking.symptoms))] if c.weight >= TELLING]


def _below_first(advice: tuple[Advice, ...]) -> tuple[Advice, ...]:
    """None is called likely below one that is not, and that stands above it for what names it."""
    if not advice or advice[0].band == "likely":
        return advice
    return tuple(msgspec.structs.replace(a, band=advice[0].band) if a.band == "likely" else a for a in advice)


def _is_echo(knowledge: Knowledge, f: Finding) -> bool:
    return not (f.values or f.scores or f.told) and knowledge.evidence[f.evidence].role == "cascade"


def _telling(knowledge: Knowledge, echo: Finding) -> float:
    """How much it says of what failed: a connection that closed says more than the tear-down after it."""
    return max((STRENGTHS[s] for s in knowledge.evidence[echo.evidence].symptoms.values()), default=0.0)


def _is_vague(knowledge: Knowledge, reason: Reason) -> bool:
    """An echo that names no cause, the bare class of an error, a circumstance: nothing that says what happened."""
    found = knowledge.evidence.get(reason.evidence)
    return found is None or found.catch_all or (found.role != "root" and not found.names)


def _of_several(knowledge: Knowledge, findings: Sequence[Finding]) -> str:
    """What an error that any program prints would mean in one of several processes; empty where that is the same."""
    seen = (knowledge.evidence.get(f.evidence) for f in findings)
    return next((e.several for e in seen if e is not None and e.several), "")


def _by_telling(knowledge: Knowledge, reasons: Sequence[Reason]) -> list[Reason]:
    """Those that say what happened; of one line, what always names one cause before what names it in some cases."""
    telling = [r for r in reasons if not _is_vague(knowledge, r)]
    lines = [r.line for r in telling]
    cures = {r.evidence: {c.cause for c in knowledge.evidence[r.evidence].cure} for r in telling}
    return sorted(telling, key=lambda r: (lines.index(r.line), len(cures[r.evidence]) > 1))


def _names(advice: Sequence[Advice]) -> bool:
    """The output itself, or the source at the line that failed, names the first cause."""
    return bool(advice) and advice[0].named and advice[0].because[0].source in ("printed", "exception", "checked")


def _ruled_out(snapshot: Snapshot, reasoned: tuple[str, ...]) -> tuple[str, ...]:
    """What runs have shown comes before what facts contradict."""
    return (*(snapshot.isolated.ruled_out if snapshot.isolated is not None else ()), *reasoned)


def _symptom(knowledge: Knowledge, ranking: engine.Ranking, code: str, p: float) -> RankedSymptom:
    s = knowledge.symptoms[code]
    telling = [c for c in ranking.contributions[code] if abs(c.weight) >= TELLING]
    seen = [c for c in telling if not c.finding.scores]  # a likeness of words is told only where nothing else is
    telling = seen or telling
    telling.sort(key=lambda c: not c.finding.terminal or c.weight < 0)  # what ended a rank is quoted first
    why = tuple(reason(knowledge, c.finding, c.weight) for c in telling[:5]) if p >= POSSIBLE / 3 else ()
    return RankedSymptom(code=code, probability=round(p, 4), id=s.id, title=s.title, band=band(p), why=why)


def _next(
    knowledge: Knowledge,
    snapshot: Snapshot,
    ranking: engine.Ranking,
    findings: tuple[Finding, ...],
    todo: tuple[tuple[Advice, ...], Asked | None],
) -> Next | None:
    """The cheapest of the first advice, the measurements and the question."""
    advice, question = todo
    repair = (
        Repair(
            title=advice[0].title,
            fix=advice[0].fix,
            probability=advice[0].probability,
            minutes=advice[0].minutes,
            named=advice[0].named,
        )
        if advice
        else None
    )
    ask = None
    heard = {f.evidence for f in findings if f.source == "said" and len(f.values) == 1}
    if question is not None and question.key not in heard:
        minutes = questions.minutes_of(knowledge.observations[question.key])
        ask = Ask(ask=question.ask, why=question.why, command=question.command, minutes=minutes, saves=question.saves)
    return next_step(knowledge, snapshot, (ranking.symptoms, findings), repair, ask)


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
    values = tuple((v.value, v.means) for v in questions.likeliest_first(knowledge, ranking, o))
    return Asked(key=key, ask=o.ask, values=values, why=o.why, how=o.how, command=o.command, saves=round(saves, 1))
