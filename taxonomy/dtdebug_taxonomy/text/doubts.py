"""Finds what a user's words do not state as a fact: remedies that were tried in vain, and suspicions.

What did not help is no sign of the cause that it would have mended, and a suspicion is a sign of nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.text.clauses import clauses
from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.pattern_matcher import clip_lines

_VAIN = lazy_re(
    r"(?i)\b(?:(?:did|does|do|would|has|have|had)(?: not|n.t) (?:really |actually )?(?:help|fix|solve|resolve|change"
    r"|work around|make (?:a|any) (?:\w{2,10} )?difference)|(?:made|makes|make) no difference"
    r"|no difference (?:either|at all)"
    r"|to no avail|without (?:success|any effect|effect)|no (?:luck|effect|success)|(?:was"
    r"|is) (?:of )?no (?:help|use))\b"
)
_ALL_VAIN = lazy_re(
    r"(?i)\b(?:none|nothing|neither) (?:of (?:it|this|these|them|that|which|those) |else )?(?:has )?(?:help"
    r"|work|chang|fix|solv)"
    r"\w{0,3}\b|\bnone of (?:which|these|this|it|them)\b"
)
_SUSPECTS = lazy_re(
    r"(?i)\b(?:I|we) (?:first |also |only |would )?(?:suspect\w{0,2}|guess|wonder\w{0,3})\b|\bmy (?:guess|suspicion)\b"
    r"|\b(?:could|might|may) (?:it|this|that) be\b|\bis it possible\b|^\W{0,3}maybe\b|\b(?:I|we) (?:first "
    r"|initially )?thought\b"
)
_STOP = lazy_re(r"[.!?](?=\s|$)|\n\s*\n")


def vain_spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of clauses, or whole sentences, that tell of a remedy that did not help."""
    text = clip_lines(text)
    if not (_VAIN.search(text) or _ALL_VAIN.search(text)):
        return []
    found = [(at, at + len(part)) for at, part in clauses(text) if _VAIN.search(part)]
    return found + [(start, end) for start, end in _spans(text) if _ALL_VAIN.search(text[start:end])]


def is_vain(spans: list[tuple[int, int]], at: int) -> bool:
    """True if a place is in one of the spans."""
    return any(start <= at < end for start, end in spans)


def drop_doubts(text: str) -> str:
    """Return a text without remedies that did not help and without sentences that only suspect something."""
    text = clip_lines(text)
    doubtful = [*vain_spans(text), *((s, e) for s, e in _spans(text) if _SUSPECTS.search(text[s:e]))]
    if not doubtful:
        return text
    kept, at = [], 0
    for start, end in sorted(doubtful):
        kept.append(text[at : max(start, at)])
        at = max(end, at)
    return " ".join((*kept, text[at:]))


def _spans(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for found in _STOP.finditer(text):
        yield start, found.end()
        start = found.end()
    yield start, len(text)
