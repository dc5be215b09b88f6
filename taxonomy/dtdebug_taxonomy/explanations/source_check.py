"""Checks of the source: of what a text shows, and of what lets ranks diverge where a check or their records say so."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import msgspec

from dtdebug_taxonomy.checks import load
from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, Reason, explanation_for, with_diff
from dtdebug_taxonomy.explanations.ranked_causes import reason_of
from dtdebug_taxonomy.inference.conditions import goes_on
from dtdebug_taxonomy.inference.finding import LIKELY, POSSIBLE, Finding
from dtdebug_taxonomy.inference.message_edits import LISTED
from dtdebug_taxonomy.inference.ranks_apart import SIZES
from dtdebug_taxonomy.inference.shown_source import SHOWN, ShownHit, hits_in_shown
from dtdebug_taxonomy.model.account import Place
from dtdebug_taxonomy.model.snapshot import Snapshot, SourceFinding
from dtdebug_taxonomy.text.pattern_matcher import plain

_VALUES = ("D.2.4", "D.2.5")
"""Symptoms of values that differ or do not converge."""
_HANG = "D.2.1"
"""Symptom of ranks that wait for one that went another way."""
_PROBABILITY = 0.5
_OTHER_KINDS = frozenset(("dead", "none"))
"""Kinds of verdicts on ranks of which none left the others by its own program."""
_WENT_APART = frozenset(("skipped", "extra", "replaced", "wrong_size", "wrong_dtype", "left"))
"""Kinds of verdicts on ranks that made other calls than the rest."""
_SURE = ("certain", "high")
_WRONG = ("error", "warning")
"""Severities of what contradicts the contract of an API or a launcher."""


def explain(context: Context) -> Iterator[Explanation]:
    """Yield the first finding in the source that explains different values, or why a rank left the others."""
    if context.own_check is not None:
        values = (f for f in _faults(context) if load()[f.check].symptom[0] in _VALUES)
        yield from islice((_explanation(context, f, _PROBABILITY, context.own_check) for f in values), 1)
        return
    verdict = context.incident.snapshot.verdict
    if verdict is not None and verdict.kind not in _OTHER_KINDS:
        ranks = verdict.culprits or (tuple(site.rank for site in verdict.sites) if verdict.kind in SIZES else ())
        left = (f for f in _faults(context) if f.near != "file" and f.rank in ranks)
        beside = (f for f in left if load()[f.check].symptom[0] == _HANG and not _is_ranked(context, f))
        yield from islice((_explanation(context, f, LIKELY, None) for f in beside), 1)


def explain_divergence(context: Context) -> Iterator[Explanation]:
    """Yield the only line at which a check sees that ranks may go apart, if they did and no value shows where."""
    snapshot = context.incident.snapshot
    verdict = snapshot.verdict
    if verdict is None or verdict.kind not in _WENT_APART:
        return
    files = {site.file for site in verdict.sites}
    own = [f for f in snapshot.source_findings if f.check in load() and f.file in files]
    found = [f for f in own if load()[f.check].symptom[0] == _HANG]
    found = [f for f in found if not f.hint] or found
    if found and len({(f.check, f.line) for f in found}) == 1:
        title = f"{' '.join(found[0].message.split()).rstrip('.')} ({found[0].check})"
        made = _explanation(context, found[0], LIKELY if not found[0].hint else _PROBABILITY, None)
        yield msgspec.structs.replace(made, title=plain(title))


def is_lone_call(context: Context, place: Place | None) -> bool:
    """True if a check shows that not every rank reaches a line: no value there is to be the same on all."""
    found = (f for f in _faults(context) if f.near == "line" and load()[f.check].symptom[0] == _HANG)
    return place is not None and any(f.line == place.line for f in found)


def explain_at_failure(context: Context) -> Iterator[Explanation]:
    """Yield the fault that a check finds on the line that raised, or where a variable of that line gets its value."""
    verdict = context.incident.snapshot.verdict
    if verdict is not None and verdict.kind not in _OTHER_KINDS:
        return
    leading = next(iter(context.ranking.symptoms))
    for f in _faults(context):
        check = load()[f.check]
        if f.near == "line" and leading in check.symptom and check.precision in _SURE:
            found = _explanation(context, f, LIKELY, None)
            title = f"{' '.join(f.message.split()).rstrip('.')} ({f.check})"
            yield msgspec.structs.replace(found, title=plain(title), symptom=leading)
            return


def explain_listed_name(context: Context) -> Iterator[Explanation]:
    """Yield the string of the program that a message does not find among the names which it lists."""
    for f in context.incident.snapshot.source_findings:
        if f.cause == LISTED:
            shown = Reason(
                evidence=LISTED, means=f.message, source="checked", weight=2.0, line=f.line, words=f.words, file=f.file
            )
            why = "The message lists the names that there are."
            told = explanation_for(context.symptom, plain(f.message, 300), why, f"{f.fix}.", LIKELY, shown)
            yield with_diff(told, f.diff, file=f.file, line=f.line)
            return


def _faults(context: Context) -> Iterator[SourceFinding]:
    return (f for f in context.incident.snapshot.source_findings if f.check in load() and not f.hint)


def _is_ranked(context: Context, found: SourceFinding) -> bool:
    """True if the cause that a check is for belongs to the leading symptom, whose causes are ranked."""
    first = context.knowledge.symptoms[next(iter(context.ranking.symptoms))]
    return any(cause.id == found.cause for cause in first.cause)


def _explanation(context: Context, f: SourceFinding, probability: float, other: Finding | None) -> Explanation:
    check = load()[f.check]
    _, cause = context.knowledge.causes[check.cause]
    shown = Reason(
        evidence=check.name,
        means=f.message,
        source="checked",
        weight=2.0,
        line=f.line,
        words=f.words,
        rank=f.rank if other is None else None,
        file=f.file,
    )
    pattern, fix = context.knowledge.patterns[cause.pattern].name, f.fix or cause.fix
    found = explanation_for(check.symptom[0], cause.title, cause.why, fix, probability, shown, pattern=pattern)
    because = (shown,) if other is None else (reason_of(context.knowledge, other, shown.weight), shown)
    found = msgspec.structs.replace(found, cause=cause.id, because=because)
    return with_diff(found, f.diff, file=f.file, line=f.line)


def explain_shown(context: Context) -> Iterator[Explanation]:
    """Yield what is wrong in the shown source or command, if its symptom is one that the failure may have."""
    likely = {code for code, p in context.ranking.symptoms.items() if p >= POSSIBLE}
    found = (h for h in _fitting(context) if h.hit.severity in _WRONG)
    if (first := next((h for h in found if not likely.isdisjoint(h.hit.check.symptom)), None)) is not None:
        check, leading = first.hit.check, next(iter(context.ranking.symptoms))
        fits = leading in check.symptom and check.precision in _SURE
        symptom = leading if fits else next(code for code in check.symptom if code in likely)
        yield _of_shown(context, first, symptom, LIKELY if fits else _PROBABILITY)


def _fitting(context: Context) -> Iterator[ShownHit]:
    """Yield the hits in the shown source whose effect is not ruled out by how the failure shows."""
    hits = hits_in_shown(context.incident.snapshot)
    return (h for h in hits if not goes_on(h.hit.check.symptom, context.findings))


def explain_hint(context: Context) -> Iterator[Explanation]:
    """Yield what may be meant in the shown source, if it leads to the very symptom that the failure has."""
    leading = next(iter(context.ranking.symptoms))
    found = (h for h in hits_in_shown(context.incident.snapshot) if h.hit.severity == "hint")
    if (first := next((h for h in found if leading in h.hit.check.symptom), None)) is not None:
        yield _of_shown(context, first, leading, _PROBABILITY)


def is_shown_fault(snapshot: Snapshot, found: Explanation) -> bool:
    """True if an explanation is of what contradicts a contract in the shown source."""
    if not (found.because and found.because[0].source == "checked" and found.because[0].file == SHOWN):
        return False
    return any(h.hit.severity in _WRONG and h.hit.check.cause == found.cause for h in hits_in_shown(snapshot))


def explain_beside(context: Context) -> Iterator[Explanation]:
    """Yield what a check finds there, whatever the failure is, unless it keeps a job from starting that runs."""
    found = (h for h in _fitting(context) if h.hit.severity != "hint")
    if (first := next(found, None)) is not None:
        yield _of_shown(context, first, first.hit.check.symptom[0], _PROBABILITY)


def _of_shown(context: Context, found: ShownHit, symptom: str, probability: float) -> Explanation:
    check = found.hit.check
    _, cause = context.knowledge.causes[check.cause]
    message = " ".join(found.hit.message.split())
    shown = Reason(
        evidence=check.name,
        means=f"{message.rstrip('.')} ({check.id}).",
        source="checked",
        weight=2.0,
        line=found.line,
        words=plain(found.words)[:200],
        file=SHOWN,
    )
    pattern = context.knowledge.patterns[cause.pattern].name
    if found.hit.fix:
        fix = found.hit.fix.title
    elif "python" not in check.files or len(check.files) > 1:  # of a setting or a command: the cause is a wider one
        fix = f"Correct that line. {message}"
    else:
        fix = cause.fix
    made = explanation_for(symptom, check.title, cause.why, fix, probability, shown, pattern=pattern)
    return with_diff(msgspec.structs.replace(made, cause=cause.id), found.diff)
