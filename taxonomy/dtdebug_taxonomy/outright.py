"""Advice that needs no weighing: releases that are known to fail, the message's own word, what the user has found."""

from __future__ import annotations

from dtdebug_taxonomy.advice import MOST, Advice, Reason, band
from dtdebug_taxonomy.advised import Advised, advised
from dtdebug_taxonomy.contrasts import Contrast, contrast
from dtdebug_taxonomy.engine import Ranking
from dtdebug_taxonomy.findings import plain
from dtdebug_taxonomy.knowledge import Knowledge
from dtdebug_taxonomy.model import MINUTES
from dtdebug_taxonomy.snapshot import Snapshot
from dtdebug_taxonomy.versions import Known, known

_NAMED_RELEASE, _ANY_RELEASE, _ADVISED = 0.8, 0.4, 0.5
"""Probabilities of a fault that is known of a release which is named, of one that is not, and of the message's word."""
_SENTENCE = 160
"""Characters of a message that a title shows."""


def outright(
    knowledge: Knowledge, snapshot: Snapshot, ranking: Ranking, found: tuple[Advice, ...]
) -> tuple[Advice, ...]:
    """What is known of the releases comes first, then what a message names, then what the message itself says to do.

    What the user has found to make the difference comes before a mere resemblance.
    """
    facts = tuple(_of_release(knowledge, row) for row in known(knowledge, snapshot))
    named = bool(found) and any(r.evidence in _naming(knowledge, found[0].cause) for r in found[0].because)
    own = None if facts or named else advised(snapshot)
    if own is not None:
        facts = (_of_message(own, next(iter(ranking.symptoms))),)
    sure = named or (bool(found) and found[0].band == "likely")
    if not facts and not sure and (pair := contrast(snapshot.situation)) is not None:
        facts = (_of_contrast(pair, next(iter(ranking.symptoms))),)
    return (*facts, *found)[:MOST]


def _naming(knowledge: Knowledge, cause: str) -> set[str]:
    return {e.id for e in knowledge.evidence.values() if cause in e.names or any(c.cause == cause for c in e.cure)}


def _of_release(knowledge: Knowledge, row: Known) -> Advice:
    fact, (hit, source) = row.fact, row.seen
    p = _NAMED_RELEASE if row.named else _ANY_RELEASE
    because = [
        Reason(evidence=fact.id, means=fact.title, source=source, weight=2.0, line=hit.line, words=plain(hit.words))
    ]
    if row.named is not None:
        means = f"{fact.package} {row.named.release} is one of the releases that do this ({fact.range or 'all'})."
        n = row.named
        because.append(
            Reason(evidence=fact.id, means=means, source=n.source, weight=2.0, line=n.line, words=plain(n.words))
        )
    return Advice(
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
    )


def _of_message(own: Advised, symptom: str) -> Advice:
    shown = own.words if len(own.words) <= _SENTENCE else f"{own.words[: _SENTENCE - 3]}..."
    return Advice(
        symptom=symptom,
        cause="message-says-so",
        title=f"The message says {'what to do' if own.orders else 'what is wrong'}: {shown}",
        pattern="fix behavior logic",
        probability=_ADVISED,
        band=band(_ADVISED),
        why="The error that ended the process says so itself, which tells more than a resemblance to other failures.",
        fix="Do what it says." if own.orders else "Change what was asked, or how it is called, so that this holds.",
        effort="edit",
        minutes=MINUTES["edit"],
        because=(
            Reason(
                evidence="message-says-so",
                means="The message of the failure itself.",
                source="printed" if own.line else "exception",
                weight=1.5,
                line=own.line,
                words=own.words[:200],
                rank=own.rank,
            ),
        ),
    )


def _of_contrast(pair: Contrast, symptom: str) -> Advice:
    return Advice(
        symptom=symptom,
        cause="what-makes-the-difference",
        title=f"The cause is not known yet, but what makes the difference: it works {pair.words}",
        pattern="fix behavior logic",
        probability=_ADVISED,
        band=band(_ADVISED),
        why="Two runs that differ in one thing, one of which works, tell where the fault is.",
        fix=f"Go on like that for now ({pair.words}). Then look at what exactly that changes: release notes, options,"
        " the code behind it. `dtdebug isolate` can try such changes; the pair of runs belongs into a report.",
        effort="rerun",
        minutes=MINUTES["rerun"],
        because=(
            Reason(
                evidence="what-makes-the-difference",
                means="The user says with what it works.",
                source="said",
                weight=1.5,
                line=pair.line,
                words=pair.words,
            ),
        ),
    )
