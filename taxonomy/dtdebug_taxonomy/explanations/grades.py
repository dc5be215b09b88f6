"""Grades of explanations: what they rest on, and which of them are only guesses.

A guess rests on the user's plain words alone and is shown as such below "not known": on threads from which no rule was
written, half of such first causes were wrong (`docs/accuracy.md`). A message that the user quotes, and a comparison of
runs, releases or figures that the user made, is more than a guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from dtdebug_taxonomy.explanations import discovery
from dtdebug_taxonomy.explanations.model import GRADES, Explanation, Grade, Reason
from dtdebug_taxonomy.inference.combined import rests_on_output
from dtdebug_taxonomy.inference.finding import LIKELY, SIMILAR_CAUSE, Finding
from dtdebug_taxonomy.knowledge.loader import Knowledge
from dtdebug_taxonomy.text.comparisons import tells_outcome
from dtdebug_taxonomy.text.matchers import lexicon

_PAIRS = frozenset({"says-regression", "said-one-release-good-other-not"})
"""One release works and another does not."""
_COMPARED = frozenset({*_PAIRS, discovery.EVIDENCE})
"""Reasons that no single pattern on words is: the writer compared, or found it."""
_BY_SOURCE: dict[str, Grade] = {
    "measured": "measured",
    "answered": "measured",
    "checked": "source",
    "printed": "printed",
    "exception": "printed",
    "similar": "resembles",
}
_GUESS = GRADES.index("quoted")
"""Grades after this one make a guess."""
_LIKEST = 5
"""Causes of a symptom to which the words as a whole are most alike: where a single statement suggests another one, the
pattern misreads a side remark about as often as not."""


def grade(knowledge: Knowledge, findings: Sequence[Finding], found: Explanation) -> Explanation:
    """Return an explanation with the grade of its best reason."""
    grades = (_grade_of(knowledge, findings, r) for r in found.because)
    return msgspec.structs.replace(found, grade=min(grades, key=GRADES.index, default="resembles"))


def split_guesses(
    knowledge: Knowledge, explanations: tuple[Explanation, ...], findings: Sequence[Finding]
) -> tuple[tuple[Explanation, ...], tuple[Explanation, ...]]:
    """Split explanations into causes and guesses; if there is a cause, what words alone suggest stands below it.

    What was printed comes before a comparison that the user made. Words name a cause if several of them make it likely,
    but it is not called so. One statement alone suggests none of the causes that the words as a whole are less like.
    """
    alike = next((f.scores for f in findings if f.evidence == SIMILAR_CAUSE), {})
    explanations = tuple(
        a for a in explanations if GRADES.index(a.grade) <= _GUESS or len(a.because) > 1 or _fits(knowledge, alike, a)
    )
    firm = tuple(a for a in explanations if GRADES.index(a.grade) <= _GUESS)
    pairs = tuple(a for a in explanations if a not in firm and any(_is_pair(r) for r in a.because))
    words = tuple(
        msgspec.structs.replace(a, band="possible") if a.band == "likely" else a
        for a in explanations
        if a not in (*firm, *pairs)
    )
    if firm or pairs or (words and words[0].probability >= LIKELY):
        return (*firm, *pairs, *words), ()
    return (), tuple(a for a in words if a.band != "unlikely")


def _fits(knowledge: Knowledge, alike: Mapping[str, float], found: Explanation) -> bool:
    """True if the words as a whole are like a cause too, or it is no cause that they can be held against."""
    causes = [c.id for s in (knowledge.symptoms.get(found.symptom),) if s is not None for c in s.cause]
    if not alike or found.cause not in causes or any(_is_joint(knowledge, r) for r in found.because):
        return True
    return sum(alike[c] > alike[found.cause] for c in causes) < _LIKEST


def _is_joint(knowledge: Knowledge, reason: Reason) -> bool:
    """True if the reason is a comparison or a finding of the writer, or several statements together."""
    found = knowledge.evidence.get(reason.evidence)
    return reason.evidence in _COMPARED or (found is not None and bool(found.all))


def _grade_of(knowledge: Knowledge, findings: Sequence[Finding], reason: Reason) -> Grade:
    """Return the grade of one reason; an observation that was read out of a line or of words is a cue only."""
    if reason.values:
        return "measured" if reason.source in ("answered", "measured") else "resembles"
    if reason.source != "said":
        return _BY_SOURCE[reason.source]
    if reason.evidence == discovery.EVIDENCE:
        return "stated"
    found = knowledge.evidence.get(reason.evidence)
    if found is None:
        return "quoted"  # worked out of two things that are stated: releases, runs, figures
    if found.all:
        return "quoted" if rests_on_output(knowledge, findings, found) else "stated"
    if not found.text or found.generic:
        return "stated"
    return "quoted" if any(hit.key == found.id for hit in lexicon(knowledge).hits(reason.words)) else "stated"


def _is_pair(reason: Reason) -> bool:
    """True if the reason states under which condition it works."""
    return reason.evidence in {*_PAIRS, discovery.EVIDENCE} or (reason.source == "said" and tells_outcome(reason.words))
