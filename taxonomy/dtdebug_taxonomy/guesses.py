"""Causes that only the user's plain words point to: guesses, which are shown as such below "not known".

On threads that nobody had worked from, half of such first causes were wrong (`benchmarks/README.md`). What stands
firm though it was only said: a message that the user quotes, and a pair of runs, releases or figures that are compared.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dtdebug_taxonomy.advice import LIKELY, Advice, Reason
from dtdebug_taxonomy.contrasts import tells_outcome
from dtdebug_taxonomy.finding import Finding
from dtdebug_taxonomy.knowledge import Knowledge
from dtdebug_taxonomy.lexicon import lexicon
from dtdebug_taxonomy.together import rests_on_output

_PAIRS = frozenset({"says-regression", "said-one-release-good-other-not"})
"""One release works and another does not."""


def parted(
    knowledge: Knowledge, findings: Sequence[Finding], advice: tuple[Advice, ...]
) -> tuple[tuple[Advice, ...], tuple[Advice, ...]]:
    """The causes and the guesses; where a cause is found, what else the words may mean stands below it.

    What was printed comes before a pair of runs that is only told. Words name a cause where several of them make it
    likely, but it is not called so.
    """
    firm = tuple(a for a in advice if any(_is_firm(knowledge, findings, r) for r in a.because))
    pairs = tuple(a for a in advice if a not in firm and any(_is_pair(r) for r in a.because))
    words = tuple(
        msgspec.structs.replace(a, band="possible") if a.band == "likely" else a
        for a in advice
        if a not in (*firm, *pairs)
    )
    if firm or pairs or (words and words[0].probability >= LIKELY):
        return (*firm, *pairs, *words), ()
    return (), tuple(a for a in words if a.band != "unlikely")


def _is_firm(knowledge: Knowledge, findings: Sequence[Finding], reason: Reason) -> bool:
    """It was printed, measured, answered or read in the source; or it is more than a way of putting it."""
    if "=" in reason.evidence:  # what was read out of a line or of words is a cue
        return reason.source in ("answered", "measured")
    if reason.source != "said":
        return True
    found = knowledge.evidence.get(reason.evidence)
    if found is None:
        return True  # worked out of two things that are told: releases, runs, figures
    if found.all:
        return rests_on_output(knowledge, findings, found)
    quoted = bool(found.text) and not found.generic
    return quoted and any(hit.key == found.id for hit in lexicon(knowledge).hits(reason.words))


def _is_pair(reason: Reason) -> bool:
    """It tells with what it works."""
    return reason.evidence in _PAIRS or (reason.source == "said" and tells_outcome(reason.words))
