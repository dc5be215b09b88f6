"""Advice that needs no weighing: releases that are known to fail, the message's own word, what the user has found."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dtdebug_taxonomy.advice import MOST, Advice, Reason, advice_for, band
from dtdebug_taxonomy.advised import Advised, advised
from dtdebug_taxonomy.amounts import amounts
from dtdebug_taxonomy.certainty import by_root
from dtdebug_taxonomy.chosen import reason
from dtdebug_taxonomy.compared import of_contrast, of_device, of_regression
from dtdebug_taxonomy.contrasts import contrast, one_device
from dtdebug_taxonomy.endings import REFUSED_CALL, Ending, endings
from dtdebug_taxonomy.engine import Ranking
from dtdebug_taxonomy.finding import Finding, plain
from dtdebug_taxonomy.frames import is_library
from dtdebug_taxonomy.knowledge import Knowledge
from dtdebug_taxonomy.missing import missing
from dtdebug_taxonomy.model import MINUTES
from dtdebug_taxonomy.regressions import regression
from dtdebug_taxonomy.snapshot import Snapshot
from dtdebug_taxonomy.too_many import TooMany, too_many
from dtdebug_taxonomy.unfit import unfit
from dtdebug_taxonomy.versions import FittingRelease, fitting_releases

_NAMED_RELEASE, _ANY_RELEASE, _ADVISED = 0.8, 0.4, 0.5
"""Probabilities of a fault that is known of a release which is named, of one that is not, and of the message's word."""
_SOMETHING_ELSE = "D.1.other"
_FIGURES, _UNFIT = 0.5, 0.4
"""The same of figures that do not go together, and of packages that do not."""
_OWN_CHECK = "own-check-of-the-ranks-raised"
_VALUES = ("D.2.4", "D.2.5")
"""Values that differ, or do not converge."""
_TOO_MANY = "more-processes-than-gpus"
"""The cause of the same name, with what was told."""
_OWN_CODE = "program-fails-by-itself"
"""The cause that says no more than a library's own check of the call."""
_WORDS = 4
"""Words from which a message is a sentence, not a key or a name."""
_SENTENCE = 160
"""Characters of a message that a title shows."""


def outright(
    knowledge: Knowledge, snapshot: Snapshot, ranking: Ranking, found: tuple[Advice, ...]
) -> tuple[Advice, ...]:
    """What is known of the releases comes first, then what a message names, then what the message itself says to do.

    What the user has found to make the difference comes before a mere resemblance.
    """
    symptom = next(iter(ranking.symptoms))
    if snapshot.output and not snapshot.situation and not by_root(knowledge, ranking.contributions[symptom]):
        symptom = _SOMETHING_ELSE
    ended = tuple(endings(snapshot))
    facts = tuple(_of_release(knowledge, row) for row in fitting_releases(knowledge, snapshot))
    named = bool(found) and any(r.evidence in _naming(knowledge, found[0].cause) for r in found[0].because)
    refused = {row.line for row in ended if row.type == REFUSED_CALL}
    named = named and not (refused and refused.isdisjoint(r.line for r in found[0].because))
    pair = regression(snapshot.situation)
    settled = named and _says_it_alone(knowledge, found[0])
    settled = settled and (found[0].band == "likely" or _always_means_it(knowledge, found[0]))
    if not facts and not settled and pair is not None and pair.good:
        facts = (of_regression(pair, symptom),)
    if not facts and not settled and (device := one_device(snapshot.situation)) is not None:
        facts = (of_device(device, symptom),)
    figures = None if facts else _of_figures(ended, symptom, worked_out=named)
    if figures is not None and named and _of_same_line(found[0], figures):
        found = (msgspec.structs.replace(found[0], title=figures.title, fix=figures.fix), *found[1:])
    elif figures is not None and not named:
        facts = (figures,)
    more = None if facts else too_many(snapshot.situation, snapshot.output)
    if more is not None and (not named or found[0].cause == _TOO_MANY):
        facts = (_of_too_many(more),)
        found = tuple(a for a in found if a.cause != _TOO_MANY)
    paired = any(a.cause == "release-changed" for a in (*facts, *found)[:1])  # which the user names
    seen = next((c.finding for c in ranking.contributions[symptom] if c.finding.evidence == _OWN_CHECK), None)
    told = seen is not None  # no word on the cause
    facts = facts or tuple(filter(None, (_of_source(knowledge, snapshot, seen),)))
    asked = paired or not (facts or named or told)
    own = advised(ended, f"{snapshot.situation}\n{snapshot.cell}") if asked else None
    found = _without_own_code(ended, found, own)
    if own is not None and paired:
        facts = (_of_message(own, symptom), *facts) if own.orders else facts
    elif own is not None and (not own.refused or not found or _is_general(knowledge, found[0])):
        facts = (_of_message(own, symptom),)
    if not facts and not named:
        facts = tuple(filter(None, (_of_unfit(ended, symptom) or _of_missing(ended, symptom),)))
    sure = named or (bool(found) and found[0].band == "likely")
    general = bool(found) and found[0].cause == "release-changed"  # the same, without the name
    if not facts and (not sure or general) and pair is not None:
        facts = (of_regression(pair, symptom),)
    if not facts and not sure and (difference := contrast(snapshot.situation)) is not None:
        facts = (of_contrast(difference, symptom),)
    if own is not None and not facts:
        return (*found[:1], _of_message(own, symptom), *found[1:])[:MOST]
    return (*facts, *found)[:MOST]


def _of_source(knowledge: Knowledge, snapshot: Snapshot, seen: Finding | None) -> Advice | None:
    """What the source shows that lets ranks part, where a check of the program's own has found that they did."""
    from dtdebug_taxonomy.checks import load

    if seen is None:
        return None
    for f in snapshot.source_findings:
        check = load().get(f.check)
        if check is None or f.hint or check.symptom[0] not in _VALUES:
            continue
        _, cause = knowledge.causes[check.cause]
        shown = Reason(
            evidence=check.name, means=f.message, source="checked", weight=2.0, line=f.line, words=f.words, file=f.file
        )
        pattern, p = knowledge.patterns[cause.pattern].name, _FIGURES
        made = advice_for(check.symptom[0], cause.title, cause.why, f.fix or cause.fix, p, shown, pattern=pattern)
        because = (reason(knowledge, seen, made.because[0].weight), shown)
        return msgspec.structs.replace(
            made, cause=cause.id, diff=f.diff, diff_of="yours" if f.diff else "", because=because
        )
    return None


def _without_own_code(ended: Sequence[Ending], found: tuple[Advice, ...], own: Advised | None) -> tuple[Advice, ...]:
    """Without the program's own code where a line of an installed library raised it in a sentence of its own.

    Beside what the same line names it says nothing. Of several ranks it says which one failed by itself: then
    something else has to be known.
    """
    if found and found[0].named and all(r.line == found[0].because[0].line for a in found[1:2] for r in a.because):
        return (found[0], *(a for a in found[1:] if a.cause != _OWN_CODE))
    last = ended[0].frames[-1] if ended and ended[0].frames else None
    if last is None or (own is None and (ended[0].rank is not None or len(ended[0].message.split()) < _WORDS)):
        return found
    if not is_library(last.file) or not (last.code or ended[0].code).startswith(("raise ", "assert ")):
        return found
    return tuple(a for a in found if a.cause != _OWN_CODE)


def _says_it_alone(knowledge: Knowledge, advice: Advice) -> bool:
    """What was seen and names it is printed by no program of one process."""
    naming = _naming(knowledge, advice.cause)
    return any(
        r.evidence in naming and r.source != "said" and not knowledge.evidence[r.evidence].generic
        for r in advice.because
    )


def _always_means_it(knowledge: Knowledge, advice: Advice) -> bool:
    """What names it is printed for this symptom only."""
    naming = _naming(knowledge, advice.cause)
    seen = (knowledge.evidence[r.evidence] for r in advice.because if r.evidence in naming)
    return any(e.symptoms.get(advice.symptom) == "always" for e in seen)


def _is_general(knowledge: Knowledge, advice: Advice) -> bool:
    """It rests on the class of the exception alone."""
    return all(r.evidence in knowledge.evidence and bool(knowledge.evidence[r.evidence].own) for r in advice.because)


def _of_same_line(one: Advice, other: Advice) -> bool:
    return (one.because[0].source, one.because[0].line) == (other.because[0].source, other.because[0].line)


def _naming(knowledge: Knowledge, cause: str) -> set[str]:
    naming = (e for e in knowledge.evidence.values() if cause in e.names or any(c.cause == cause for c in e.cure))
    return {e.id for e in naming if not e.own}


def _of_release(knowledge: Knowledge, row: FittingRelease) -> Advice:
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
        named=True,
    )


def _of_message(own: Advised, symptom: str) -> Advice:
    shown = own.words if len(own.words) <= _SENTENCE else f"{own.words[: _SENTENCE - 3]}..."
    fix = "Do what it says." if own.orders else "Change what was asked for, or how it is called, so that it fits."
    if own.settings and not own.orders:
        names, verb = " and ".join(own.settings), "are set or come" if len(own.settings) > 1 else "is set or comes"
        fix = f"Look where {names} {verb} from, and change what does not fit."
    return advice_for(
        symptom,
        f"The message says {'what to do' if own.orders else 'what is wrong'}: {shown}",
        "The error that ended the process says so itself, which tells more than a resemblance to other failures."
        + ("" if own.whole == own.words else f" In full: {own.whole}"),
        fix,
        _ADVISED,
        Reason(
            evidence="message-says-so",
            means="The message of the failure itself.",
            source="printed" if own.line else "exception",
            weight=1.5,
            line=own.line,
            words=own.words[:200],
            rank=own.rank,
        ),
    )


def _of_figures(ended: Sequence[Ending], symptom: str, *, worked_out: bool) -> Advice | None:
    """`worked_out`: only figures that would do count, for the cause is known."""
    for ending in ended:
        told = amounts("\n".join((ending.message, *ending.below)))
        if told is not None and (told.worked_out or not worked_out):
            return advice_for(
                symptom,
                told.title,
                "Worked out from the figures that the message prints.",
                told.fix,
                _FIGURES,
                _printed(ending, "figures-do-not-go-together", "The figures of the message.", told.words),
            )
    return None


def _of_unfit(ended: Sequence[Ending], symptom: str) -> Advice | None:
    for ending in ended:
        told = unfit(ending)
        if told is not None:
            return advice_for(
                symptom,
                told.title,
                told.why,
                told.fix,
                _UNFIT,
                _printed(ending, "releases-do-not-fit", "Where it was raised, and for what.", ending.message),
                pattern=told.pattern,
                effort=told.effort,
            )
    return None


def _of_missing(ended: Sequence[Ending], symptom: str) -> Advice | None:
    for ending in ended:
        told = missing(ending)
        if told is not None:
            because = _printed(ending, "value-is-none", "The line that raised, and its message.", ending.message)
            return advice_for(
                symptom, told.title, "The line that raised uses this value alone as one.", told.fix, _UNFIT, because
            )
    return None


def _printed(ending: Ending, evidence: str, means: str, words: str) -> Reason:
    return Reason(
        evidence=evidence,
        means=means,
        source="printed" if ending.line else "exception",
        weight=1.5,
        line=ending.line,
        words=plain(words)[:200],
        rank=ending.rank,
    )


def _of_too_many(told: TooMany) -> Advice:
    return advice_for(
        "C.5",
        f"{told.processes} processes are started on a host that has {told.gpus} GPU{'s' if told.gpus > 1 else ''}",
        "Each process wants a device of its own: the others get a number that does not exist, or share a device, which"
        " NCCL refuses.",
        f"Start {told.gpus} (`--nproc_per_node {told.gpus}`), or as many as there are: `--nproc_per_node gpu`.",
        _FIGURES,
        Reason(
            evidence=_TOO_MANY,
            means="The user says how many GPUs there are.",
            source="said",
            weight=1.5,
            line=told.line,
            words=told.words,
        ),
        pattern="fix device assignment",
    )
