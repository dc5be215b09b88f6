"""The pipeline from a snapshot and answers to a diagnosis: read, collect, rank, explain, and choose the next step.

`Diagnosis` is what every front end shows and what is saved: plain data, versioned, small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from dtdebug_taxonomy.diagnosis.headline import Outlook, Seen, headline, note_contradiction, raised_in_output
from dtdebug_taxonomy.diagnosis.out_of_scope import complains, is_foreign, ordinary
from dtdebug_taxonomy.explanations.comparison import is_comparison, next_after
from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.discovery import is_discovery, next_after_discovery
from dtdebug_taxonomy.explanations.grades import split_guesses
from dtdebug_taxonomy.explanations.message_cure import explain_message
from dtdebug_taxonomy.explanations.model import Band, Explanation, Reason, band
from dtdebug_taxonomy.explanations.ranked_causes import reason_of, ruled_out
from dtdebug_taxonomy.explanations.source_check import is_shown_fault
from dtdebug_taxonomy.explanations.table import explain, explain_alone
from dtdebug_taxonomy.incident import Incident
from dtdebug_taxonomy.inference import questions
from dtdebug_taxonomy.inference.certainty import Certainty, certainty, culprits, tells_failure
from dtdebug_taxonomy.inference.collect import collect
from dtdebug_taxonomy.inference.finding import POSSIBLE, TELLING, Finding
from dtdebug_taxonomy.inference.known_releases import fitting_releases
from dtdebug_taxonomy.inference.next_step import Ask, Next, Repair, fit_to_job, job_of, next_step
from dtdebug_taxonomy.inference.ranking import Ranking, fix_patterns, rank
from dtdebug_taxonomy.inference.scope import is_recognised, speaks_of_the_field
from dtdebug_taxonomy.knowledge.loader import Knowledge
from dtdebug_taxonomy.logs.split_post import prints_nothing
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.text.pattern_matcher import plain

VERSION = 1
"""Version of the JSON form; a change that breaks readers raises it."""

_QUESTIONS = 3
"""Answers after which there is a cause or an honest end; "I don't know" is none."""
_NOTES = 10
_TRACEBACK = "Traceback (most recent call last)"
"""Beginning of what tells of a failure even if it is cut before the exception."""
_DESCRIPTION = 15
"""Words from which a text that complains of nothing is a description ("... and then the program ends")."""


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
    """An error of the program that has nothing to do with distribution, in one line; the advice is then that of a
    known message, if it is one."""
    symptoms: tuple[RankedSymptom, ...]
    advice: tuple[Explanation, ...]
    """Empty where no indicator points at a cause: then the cause is not known, and `next` says what would tell it."""
    guesses: tuple[Explanation, ...] = ()
    """Meanings that the user's words alone suggest, if the cause is not known; about half of them are right."""
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
    """Claims that support it, each with its record."""
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
    *,
    unasked: bool = False,
) -> Diagnosis:
    """Diagnose one failure; `unknown` are questions that the user could not answer.

    `unasked`: the user has not asked; a failure that is not recognised is not shown, and gets no question.
    """
    incident = Incident(snapshot)
    findings = collect(knowledge, incident, answers)
    ranking = rank(knowledge, findings)
    symptoms = tuple(_symptom(knowledge, ranking, code, p) for code, p in ranking.symptoms.items())
    roots = [f for f in findings if tells_failure(knowledge, f)]
    foreign = is_foreign(knowledge, incident, findings)
    sure = "unknown" if foreign else certainty(knowledge, snapshot, ranking, findings, roots)
    context = Context(knowledge, incident, findings, ranking)
    explanations = explain_alone(context) if foreign else explain(context)
    bad = roots and not incident.log.events.raised  # what was raised was survived
    made_good = incident.relevance.is_completed and snapshot.verdict is None and not bad
    plainly, known = _ordinary(context) if foreign and not (explanations or made_good) else ("", ())
    only_ended = sure == "unknown" and snapshot.verdict is not None
    if only_ended:  # that a rank ended does not say why, and no answer says what it has not printed
        explanations = tuple(a for a in explanations if a.band != "unlikely")
    causes, guesses = split_guesses(knowledge, explanations, findings)
    if incident.errors:  # a printed error that nothing explains is shown as it is, not a guess from words beside it
        guesses = tuple(g for g in guesses if any(r.source != "said" for r in g.because))
    recognised = not (foreign or made_good) and (
        is_recognised(knowledge, incident, findings, roots)
        or _is_recognised_by_cause(incident, causes)
        or _is_described(incident)
    )
    question = None
    if not (plainly or only_ended or len(answers or {}) >= _QUESTIONS or (unasked and not recognised)):
        skip = {*(answers or {}), *unknown, *(("error_text_on_some_rank",) if raised_in_output(incident) else ())}
        question = _question(knowledge, ranking, findings, sure, skip)
    outlook = Outlook(knowledge, incident, findings, sure, symptoms[0].why, causes)
    told, supports = ("", ()) if made_good else headline(outlook)
    if not told and sure == "unknown" and causes and is_shown_fault(snapshot, causes[0]):
        told = f"What fails is not said; the source shown has a mistake in line {causes[0].because[0].line}."
    elif not told and causes and is_shown_fault(snapshot, causes[0]) and causes[0].symptom != symptoms[0].code:
        told = f"The source shown has a mistake in line {causes[0].because[0].line}."  # words name another symptom
    if told and not (causes or guesses or roots) and all(r.scores for r in _telling_of(ranking)):
        sure = "unknown"  # the event is known; a likeness of words alone names no symptom
    return Diagnosis(
        recognised=recognised,
        verdict=sure,
        ordinary=plainly,
        symptoms=symptoms,
        advice=causes or known,
        guesses=guesses,
        next=None if plainly else _next(knowledge, snapshot, ranking, findings, (causes, question)),
        ruled_out=_ruled_out(snapshot, () if plainly else ruled_out(knowledge, ranking, findings)),
        fix_patterns=tuple(
            RankedPattern(pattern=name, probability=round(p, 4)) for name, p in fix_patterns(knowledge, ranking).items()
        ),
        question=question,
        known=tuple(
            Known(key=f.evidence, values=f.values, source=f.source, words=f.words) for f in findings if f.values
        ),
        culprits=culprits(knowledge, snapshot, roots),
        notes=(*note_contradiction(incident, findings), *(plain(note) for note in snapshot.notes[:_NOTES])),
        happened=told,
        seen=() if plainly else supports,
        later=tuple(diagnose(knowledge, each) for each in snapshot.later),
    )


def _ordinary(context: Context) -> tuple[str, tuple[Explanation, ...]]:
    """Return the one line on an error that has nothing to do with distribution, and what is known of its cause."""
    knowledge, incident, findings = context.knowledge, context.incident, context.findings
    line, explained = ordinary(knowledge, incident, findings)
    if not line:
        return "", ()
    if (fact := next(iter(fitting_releases(knowledge, incident.snapshot)), None)) is not None:
        line, explained = f"{line} {fact.fact.title}. {fact.fact.fix}", True
    evidence = (knowledge.evidence.get(f.evidence) for f in findings)
    if several := next((e.several for e in evidence if e is not None and e.several), ""):
        return f"{line} {several}", ()
    return line, () if explained else explain_message(context)


def _is_recognised_by_cause(incident: Incident, causes: Sequence[Explanation]) -> bool:
    """True if the first cause, or what ended the program, makes it worth showing unasked."""
    error = incident.first_error
    if error is not None and (_names(causes) or error.told == "layer"):
        return True
    if incident.mentions_several and causes and causes[0].diff and causes[0].because[0].of_account:
        return True  # the exception at hand has its repair
    if any(a.because[0].source == "said" for a in causes) and incident.mentions_several:
        return True
    if any(is_discovery(a) for a in causes) and speaks_of_the_field(incident.prose.bilingual):
        return True
    return bool(causes) and incident.prose.text.strip() != "" and is_shown_fault(incident.snapshot, causes[0])


def _is_described(incident: Incident) -> bool:
    """True if the words describe or deplore something of the field, and no output shows that nothing failed."""
    words = incident.prose.bilingual
    return (
        bool(incident.errors or _TRACEBACK in incident.snapshot.output or prints_nothing(incident.snapshot.output))
        and (complains(words) or len(incident.prose.text.split()) >= _DESCRIPTION)
        and speaks_of_the_field(words)
    )


def _telling_of(ranking: Ranking) -> list[Finding]:
    """Return what supports the likeliest symptom."""
    return [c.finding for c in ranking.contributions[next(iter(ranking.symptoms))] if c.weight >= TELLING]


def _names(causes: Sequence[Explanation]) -> bool:
    """True if the output itself, or the source or the values at the line that failed, name the first cause."""
    sources = ("printed", "exception", "checked", "measured")
    return bool(causes) and causes[0].named and causes[0].because[0].source in sources


def _ruled_out(snapshot: Snapshot, reasoned: tuple[str, ...]) -> tuple[str, ...]:
    """Return the causes that runs have ruled out, then those that facts contradict."""
    return (*(snapshot.isolated.ruled_out if snapshot.isolated is not None else ()), *reasoned)


def _symptom(knowledge: Knowledge, ranking: Ranking, code: str, p: float) -> RankedSymptom:
    s = knowledge.symptoms[code]
    telling = [c for c in ranking.contributions[code] if abs(c.weight) >= TELLING]
    seen = [c for c in telling if not c.finding.scores]  # a likeness of words is told only where nothing else is
    telling = seen or telling
    telling.sort(key=lambda c: not c.finding.terminal or c.weight < 0)  # what ended a rank is quoted first
    why = tuple(reason_of(knowledge, c.finding, c.weight) for c in telling[:5]) if p >= POSSIBLE / 3 else ()
    return RankedSymptom(code=code, probability=round(p, 4), id=s.id, title=s.title, band=band(p), why=why)


def _next(
    knowledge: Knowledge,
    snapshot: Snapshot,
    ranking: Ranking,
    findings: tuple[Finding, ...],
    todo: tuple[tuple[Explanation, ...], Asked | None],
) -> Next | None:
    """The cheapest of the first advice, the measurements and the question."""
    advice, question = todo
    differs = advice and is_comparison(advice[0]) and snapshot.verdict is None
    if differs and (narrow := next_after(advice[0])) is not None:
        return _fitted(narrow, findings, snapshot)
    if advice and is_discovery(advice[0]) and snapshot.verdict is None:
        return _fitted(next_after_discovery(), findings, snapshot)
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


def _fitted(step: Next, findings: tuple[Finding, ...], snapshot: Snapshot) -> Next:
    """Return a step with the launcher and the program of the job in its command."""
    return msgspec.structs.replace(step, command=fit_to_job(step.command, findings, job_of(snapshot)))


def _question(
    knowledge: Knowledge,
    ranking: Ranking,
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
