"""Causes ranked by what points at each: which are shown, and in which order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import MAX_EXPLANATIONS, Explanation, Reason, band
from dtdebug_taxonomy.explanations.own_edits import own_edit
from dtdebug_taxonomy.inference import ranking as inference_ranking
from dtdebug_taxonomy.inference.conditions import contradiction, sentence
from dtdebug_taxonomy.inference.finding import LIKELY, POSSIBLE, READ, TELLING, Finding
from dtdebug_taxonomy.inference.message_cures import cure_of
from dtdebug_taxonomy.knowledge.labs import cause_diff
from dtdebug_taxonomy.knowledge.loader import Knowledge
from dtdebug_taxonomy.knowledge.schema import MINUTES, Cause
from dtdebug_taxonomy.logs.final_errors import REFUSED_CALL
from dtdebug_taxonomy.stacks.frames import is_library

_UNSHOWN, _UNSHOWN_POINTED = 0.003, 0.05
"""Probabilities below which a cause is not shown although a message names it, or points at it."""
_SAID_ONLY = 0.23
"""Probability from which a cause is shown first that only words of the user and circumstances point at: of such guesses
below it most are wrong."""
_NOT_LIKELY, _FEW_CAUSES = 0.5, 2
"""Most that a cause gets at which only messages point that say little; causes of a symptom that one may point at."""
_HARDLY_EVER = 0.03
"""P(how it shows | symptom) below which words alone show no cause of that symptom."""
_TURNING = 5.0
"""Minutes that turning to another cause takes, whatever its fix."""
_MOST_RULED_OUT = 10
_OWN_CODE = "program-fails-by-itself"
"""Cause that adds nothing to a library's own check of the call."""
_COMPARED = "release-changed"
"""Cause that the comparison itself, with the names of the releases, explains better."""
_SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[A-Z`])")
_WORDS = 4
"""Least number of words of a message that is a sentence, not a key or a name."""


def reason_of(knowledge: Knowledge, f: Finding, weight: float) -> Reason:
    """A finding with the weight that it has for a symptom or cause, in words."""
    means = ""
    if f.values:
        labels = {v.value: v.means for v in knowledge.observations[f.evidence].value}
        means = f"{knowledge.observations[f.evidence].ask} {' or '.join(labels[v] for v in f.values)}"
    elif f.told:
        means = "A check sees it on the very line that raised."
    elif f.evidence == READ:
        means = f"Taken together, the words speak {'for' if weight > 0 else 'against'} it."
    elif f.scores:
        means = f"The text is {'like' if weight > 0 else 'unlike'} other descriptions of this symptom."
    else:
        means = knowledge.evidence[f.evidence].means
    return Reason(
        evidence=f.evidence,
        values=f.values,
        means=means,
        source=f.source,
        weight=round(weight, 2),
        line=f.line,
        # a likeness is of stems, which nobody reads; the words that weigh most are those of the likeliest symptom
        words="" if f.scores and (f.evidence != READ or weight < 0) else f.words,
        rank=f.rank,
        file=f.file,
    )


class Standing(IntEnum):
    """Strength of the first ranked cause; a rule of the table yields to it from some strength on."""

    NONE = 0
    GENERAL = 1
    """It rests on the class of an exception alone."""
    OPEN = 2
    """It is one of several that the findings leave possible."""
    LIKELY = 3
    NAMED = 4
    """The output, the exception or a check names it."""
    SETTLED = 5
    """It is named by a message that only distributed programs print, and likely or unambiguous."""
    PROVEN = 6
    """Not reached by ranking: a rule that yields to this yields to nothing."""


def standing_of(context: Context, ranked: Sequence[Explanation]) -> Standing:
    """Return the standing of the first ranked cause."""
    if not ranked:
        return Standing.NONE
    first, knowledge = ranked[0], context.knowledge
    if first.cause == _COMPARED:
        return Standing.OPEN
    if _is_named(context, first):
        sure = first.band == "likely" or _always_means_it(knowledge, first)
        return Standing.SETTLED if sure and _says_it_alone(knowledge, first) else Standing.NAMED
    if all(r.evidence in knowledge.evidence and knowledge.evidence[r.evidence].own for r in first.because):
        return Standing.GENERAL
    return Standing.LIKELY if first.band == "likely" else Standing.OPEN


def explain(context: Context) -> tuple[Explanation, ...]:
    """Return the causes that an indicator points at and that are not unlikely, by probability over minutes."""
    return _without_own_code(context, _rank_causes(context))


def _is_named(context: Context, first: Explanation) -> bool:
    """True if an indicator names the cause; where NCCL refused a call, only one on the line of its reason does."""
    naming = _naming(context.knowledge, first.cause)
    if not any(r.evidence in naming for r in first.because):
        return False
    refused = {row.line for row in context.incident.errors if row.type == REFUSED_CALL}
    return not (refused and refused.isdisjoint(r.line for r in first.because))


def _without_own_code(context: Context, found: tuple[Explanation, ...]) -> tuple[Explanation, ...]:
    """Drop "the program's own code" where a library raised a sentence of its own, or the same line names a cause.

    If several ranks ran, that cause tells which one failed alone, and stays.
    """
    if found and found[0].named and all(r.line == found[0].because[0].line for a in found[1:2] for r in a.because):
        return (found[0], *(a for a in found[1:] if a.cause != _OWN_CODE))
    errors, message = context.incident.errors, context.incident.message
    last = errors[0].frames[-1] if errors and errors[0].frames else None
    if last is None or (message is None and (errors[0].rank is not None or len(errors[0].message.split()) < _WORDS)):
        return found
    if not is_library(last.file) or not (last.code or errors[0].code).startswith(("raise ", "assert ")):
        return found
    return tuple(a for a in found if a.cause != _OWN_CODE)


def _says_it_alone(knowledge: Knowledge, first: Explanation) -> bool:
    """True if a message that no program of one process prints names it."""
    naming = _naming(knowledge, first.cause)
    return any(
        r.evidence in naming and r.source != "said" and not knowledge.evidence[r.evidence].generic
        for r in first.because
    )


def _always_means_it(knowledge: Knowledge, first: Explanation) -> bool:
    """True if what names it is printed for this symptom only."""
    naming = _naming(knowledge, first.cause)
    seen = (knowledge.evidence[r.evidence] for r in first.because if r.evidence in naming)
    return any(e.symptoms.get(first.symptom) == "always" for e in seen)


def _naming(knowledge: Knowledge, cause: str) -> set[str]:
    naming = (e for e in knowledge.evidence.values() if cause in e.names or any(c.cause == cause for c in e.cure))
    return {e.id for e in naming if not e.own}


class _Tier(IntEnum):
    """Order of the causes by what they rest on."""

    NAMED = 0
    """The output, the exception or the source names it."""
    LIKELY = 1
    """Messages or the source make it likely."""
    STATED = 2
    """Words name it."""
    SUGGESTED = 3


class _Candidate(NamedTuple):
    """A cause with the findings that bear on it."""

    knowledge: Knowledge
    code: str
    cause: Cause
    share: float
    """Probability of its symptom."""
    joint: float
    """Probability of symptom and cause, without the likeness of words to causes."""
    aided: float
    """The same with that likeness."""
    weighed: list[tuple[float, Finding]]
    naming: list[Finding]
    pointing: list[Finding]

    @property
    def is_said(self) -> bool:
        """True if words, a message or a measurement name it, not only the source."""
        return any(f.source != "checked" for f in self.naming)

    @property
    def is_printed(self) -> bool:
        """True if a message points at it."""
        return any(f.source in inference_ranking.PRINTED and not f.values for f in self.pointing)

    @property
    def is_founded(self) -> bool:
        """True if it may stand first on its own; of guesses from words that are less likely most are wrong."""
        looked_up = any(f.source in ("answered", "checked") for f in self.pointing)
        return bool(self.naming) or self.is_printed or looked_up or self.probability >= _SAID_ONLY

    @property
    def probability(self) -> float:
        """Joint probability, at least possible where somebody says so and likely where it is spelt out."""
        p = max(self.joint, POSSIBLE) if self.is_said else self.joint
        if any(_is_spelt_out(self.knowledge, self.cause, f) for f in self.naming):
            p = max(p, LIKELY)
        if (
            not self.naming
            and self.pointing
            and all(_says_little(self.knowledge, self.cause, f) for f in self.pointing)
        ):
            p = min(p, _NOT_LIKELY)
        return p

    @property
    def tier(self) -> _Tier:
        """Its place among the causes, before their probabilities."""
        evidence = self.knowledge.evidence
        if any(f.source != "said" and not evidence[f.evidence].catch_all for f in self.naming):
            return _Tier.NAMED
        shown = self.is_printed or any(f.source == "checked" for f in self.pointing)
        if shown and self.probability >= LIKELY:
            return _Tier.LIKELY
        always = any(self.cause.id in evidence[f.evidence].names or f.source == "checked" for f in self.naming)
        return _Tier.STATED if always or (self.naming and self.share >= POSSIBLE) else _Tier.SUGGESTED

    @property
    def order(self) -> tuple[_Tier, bool, float]:
        """Key of sorting: the tier, then the probability over the minutes that trying it takes."""
        p = self.probability
        worth = p * self.aided / self.joint if self.joint else p
        return self.tier, p < POSSIBLE, -worth / (MINUTES[self.cause.effort] + _TURNING)

    def is_shown(self, context: Context) -> bool:
        """True if enough speaks for it, and nothing that is seen against it."""
        knowledge, findings = self.knowledge, context.findings
        if inference_ranking.excluding(knowledge, self.cause, findings) is not None:
            return False
        if not self.is_said and self.joint < _UNSHOWN:
            return False
        by_words = all(f.source == "said" for f in (*self.naming, *self.pointing))
        if by_words and _shows_otherwise(knowledge, self.code, findings):
            return False
        if self.naming or (self.is_printed and self.joint >= _UNSHOWN_POINTED):
            return True
        return min(self.joint, self.aided) >= POSSIBLE and inference_ranking.is_shown(
            knowledge, self.cause, self.weighed
        )


def _rank_causes(context: Context) -> tuple[Explanation, ...]:
    """Rank the causes: first what a message or the source names, then what messages make likely, then what words name.

    Circumstances alone suffice for the first place only.
    """
    found = [each for each in _candidates(context) if each.is_shown(context)]
    if not any(each.is_founded for each in found):
        return ()
    found.sort(key=lambda each: each.order)
    shown = [each for place, each in enumerate(found) if place == 0 or each.naming or each.pointing]
    advice = [_one_advice(context, each) for each in shown[:MAX_EXPLANATIONS]]
    return tuple({a.title: a for a in reversed(advice)}.values())[::-1]  # of one title the first


def _candidates(context: Context) -> Iterator[_Candidate]:
    """Yield each cause with its findings; a check elsewhere in the function names no unlikely cause."""
    knowledge, ranking = context.knowledge, context.ranking
    for code, share in ranking.symptoms.items():
        alike = dict(ranking.causes[code])
        for cause, q in ranking.supported[code]:
            if cause is None:
                continue
            weighed = _weigh_findings(knowledge, cause, context.findings)
            elsewhere = share * q < POSSIBLE  # a check of the same function has then seen something else
            naming = [
                f
                for _, f in weighed
                if inference_ranking.is_named(knowledge, cause, f)
                and not (elsewhere and f.source == "checked" and f.near != "line")
            ]
            pointing = [f for w, f in weighed if inference_ranking.points_at(knowledge, cause, f, w)]
            aided = share * alike[cause]
            yield _Candidate(knowledge, code, cause, share, share * q, aided, weighed, naming, pointing)


def _shows_otherwise(knowledge: Knowledge, code: str, findings: tuple[Finding, ...]) -> bool:
    """True if the failure is said to show in a way that this symptom hardly ever does; "other" ones may show in any."""
    if code.endswith("other"):
        return False
    shown = [f for f in findings if f.evidence == "manifestation" and f.values]
    return any(all(knowledge.likelihood(f.evidence, v)[code] < _HARDLY_EVER for v in f.values) for f in shown)


def _is_spelt_out(knowledge: Knowledge, cause: Cause, finding: Finding) -> bool:
    """True if a check reports it on the line that raised, or the output names this very case."""
    if finding.told:
        return True
    found = knowledge.evidence[finding.evidence]
    cure = cure_of(found, cause.id, finding.row or finding.words)
    return finding.source in inference_ranking.PRINTED and not found.generic and cure is not None and bool(cure.when)


def _says_little(knowledge: Knowledge, cause: Cause, finding: Finding) -> bool:
    """True for what many programs print whatever is wrong, and for what too many causes of the symptom share."""
    if finding.source in ("answered", "measured", "checked"):
        return False
    generic = not finding.values and knowledge.evidence[finding.evidence].generic
    return generic or inference_ranking.shared_by(knowledge, cause, finding) > _FEW_CAUSES


def _weigh_findings(knowledge: Knowledge, cause: Cause, findings: tuple[Finding, ...]) -> list[tuple[float, Finding]]:
    """Return (weight, finding) of each finding that a cause lists, those that name it first, then the strongest."""
    named = inference_ranking.keys_of(cause)
    rows = [(inference_ranking.cause_ratio(knowledge, cause, f), f) for f in findings if f.evidence in named]
    return sorted(rows, key=lambda row: (not inference_ranking.is_named(knowledge, cause, row[1]), -row[0]))


def _one_advice(context: Context, found: _Candidate) -> Explanation:
    knowledge, findings = context.knowledge, context.findings
    cause, weighed, p = found.cause, found.weighed, found.probability
    telling = [(knowledge.evidence[f.evidence], f.row or f.words) for _, f in weighed if not (f.values or f.scores)]
    told = (cure_of(e, cause.id, words) for e, words in sorted(telling, key=lambda row: row[0].generic))
    own = next((c for c in told if c is not None), None)
    mine = own_edit(knowledge, context.incident.snapshot, findings, cause, likely=p >= LIKELY)
    asked = mine if mine is not None and not mine.check else None
    yours = mine.diff if mine is not None else ""
    checked = next((f for _, f in weighed if f.told), None)
    general = "" if contradiction(cause.example_for, findings) else cause_diff(cause)
    example = "" if mine is not None and mine.line else own.diff if own else general
    wrong, advised = _split_message(checked.told) if checked else ("", "")
    return Explanation(
        symptom=found.code,
        cause=cause.id,
        title=asked.message
        if asked and asked.message
        else f"{wrong.rstrip('.')} ({checked.check})"
        if checked
        else own.title
        if own
        else cause.title,
        pattern=knowledge.patterns[cause.pattern].name,
        probability=round(p, 4),
        band=band(p),
        why=(own and own.why) or (f"`dtdebug explain {checked.check}` tells more." if checked else cause.why),
        fix=f"{mine.fix}."
        if mine and mine.fix and (mine.diff or asked)
        else own.fix
        if own
        else f"{checked.way}."
        if checked and checked.way
        else advised or cause.fix,
        effort=cause.effort,
        minutes=MINUTES[cause.effort],
        diff=yours or example,
        diff_of="yours" if yours else "example" if example else "",
        file=mine.file if mine is not None else "",
        line=mine.line if mine is not None else 0,
        named=found.tier == _Tier.NAMED,
        specific=checked is not None
        or bool(asked and asked.message)
        or (own is not None and own not in (c for e, _ in telling for c in e.cure)),
        because=tuple(
            reason_of(knowledge, f, max(w, 0.0) if named else w)
            for w, f in weighed
            if (named := inference_ranking.is_named(knowledge, cause, f)) or w >= TELLING
        )[:3],
    )


def _split_message(message: str) -> tuple[str, str]:
    """Split a check's message into what is wrong and what to do about it, which may be ""."""
    wrong, *advised = _SENTENCE_END.split(" ".join(message.split()), maxsplit=1)
    return wrong, "".join(advised)


def ruled_out(
    knowledge: Knowledge, ranking: inference_ranking.Ranking, findings: tuple[Finding, ...]
) -> tuple[str, ...]:
    """Causes of the likeliest symptoms that some indicator points at, but a known fact contradicts."""
    found = []
    for code in list(ranking.symptoms)[:2]:
        for cause in knowledge.symptoms[code].cause:
            against = inference_ranking.excluding(knowledge, cause, findings)
            weighed = _weigh_findings(knowledge, cause, findings) if against is not None else []
            if against is not None and any(inference_ranking.points_at(knowledge, cause, f, w) for w, f in weighed):
                found.append(sentence(knowledge, cause.title, cause.needs, against))
    return tuple(found[:_MOST_RULED_OUT])
