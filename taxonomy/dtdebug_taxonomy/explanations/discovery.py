"""Findings of the writer's own: the cause that their words name, and what made it work.

An experiment that the writer made is the most that words can carry: it leads, graded as stated, and what is known of
such a cause is added where the sentence itself and the whole of the failure point at the same one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, Reason, band, explanation_for
from dtdebug_taxonomy.inference.next_step import Next
from dtdebug_taxonomy.text.discoveries import Discovery
from dtdebug_taxonomy.text.word_forms import common_words

EVIDENCE = "found-by-the-writer"
_LEADS = "The writer's own finding: "
_PROBABILITY = 0.5
_TELLING = 3
"""Letters of a word that tells something."""
_AGAIN = Next(
    kind="measure",
    text="Run it once with and once without that, and change nothing else.",
    command="dtdebug bisect -- torchrun ... train.py",
    minutes=13,
    why="It fails without and works with it: this is the cause. Else two things changed, or it fails only at times.",
)


def explain_cause(context: Context) -> Iterator[Explanation]:
    """Yield the cause that the writer has found."""
    found = context.incident.prose.discovery
    if found is not None and found.cause:
        yield _explanation(context, found)


def explain_remedy(context: Context) -> Iterator[Explanation]:
    """Yield what made it work, if the writer names no cause."""
    found = context.incident.prose.discovery
    if found is not None and not found.cause:
        yield _explanation(context, found)


def is_discovery(found: Explanation) -> bool:
    """True if it is what the writer has found out."""
    return found.title.startswith(_LEADS)


def next_after_discovery() -> Next:
    """Return the run that confirms a finding."""
    return _AGAIN


def add_known_cause(context: Context, found: Explanation, ranked: Sequence[Explanation]) -> Explanation:
    """Return a finding with what is known of the ranked cause on which the writer's own sentences rest, if any."""
    told = context.incident.prose.discovery
    known = _known_cause(ranked, told) if told is not None else None
    if told is None or known is None:
        return found
    own_fix = bool(told.cause and told.remedy)
    return msgspec.structs.replace(
        known,
        title=found.title,
        why=f"{known.title.rstrip('.')}. {known.why}",
        fix=found.fix if own_fix else known.fix,
        diff="" if own_fix else known.diff,
        diff_of="" if own_fix else known.diff_of,
        probability=_PROBABILITY,
        band=band(_PROBABILITY),
        because=(msgspec.structs.replace(found.because[0], means=known.title), *known.because[:2]),
        named=False,
        specific=True,
    )


def _explanation(context: Context, found: Discovery) -> Explanation:
    if found.cause and found.remedy:
        fix = f"The remedy named there: {found.remedy}."
    elif found.cause:
        fix = "Undo or leave out what is named there, and change nothing else."
    else:
        fix = "Keep that for now, and look at what exactly it changes."
    words = found.cause or found.remedy
    told = Reason(evidence=EVIDENCE, means="", source="said", weight=2.0, line=found.line, words=words)
    why = "A run that differs in one thing, and works, tells where the fault is."
    title = f"{_LEADS}{words}"
    return explanation_for(context.symptom, title, why, fix, _PROBABILITY, told, effort="rerun", named=False)


def _known_cause(ranked: Sequence[Explanation], found: Discovery) -> Explanation | None:
    """Return the ranked cause that rests on what the writer's own sentences state."""
    stated = next((a for a in ranked if any(_is_of(r, found) for r in a.because)), None)
    return stated or next((a for a in ranked if _says_so(a, found)), None)


def _says_so(found: Explanation, told: Discovery) -> bool:
    """True if the writer's sentences have at least half of the telling words of a cause's title, and two."""
    return _share_half(found.title, told)


def _share_half(words: str, told: Discovery) -> bool:
    telling = {w for w in common_words(words) if len(w) >= _TELLING}
    shared = telling & {*common_words(told.words)}
    special = any(not word.startswith("<") for word in shared)  # ranks, GPUs and hangs are in every failure
    return special and len(shared) >= max(2, (len(telling) + 1) // 2)


def _is_of(reason: Reason, found: Discovery) -> bool:
    """True if a reason rests on the writer's sentences, or on others about the same thing ("a different number")."""
    words = " ".join(reason.words.split())
    if reason.source != "said" or reason.weight <= 0 or not words:
        return False
    return words in found.words or _share_half(words, found)
