"""Finds patterns in users' words, and drops those that they deny.

Works clause by clause: "no error, it just hangs" states `hangs` and denies `error`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.pattern_matcher import Matcher, PatternHit, clip_lines

# A run of dots or spaces that ends no clause is skipped as a whole, not tried again from each letter.
_CLAUSE = lazy_re(
    r"(?:(?<![.!?;:])[.!?;:]++(?=\s|$)|\n+|,\s+"
    r"|(?<![^\S\n])(?<!\bnot)[^\S\n]++(?=(?:but|while|although|though|whereas|however|until|because)\b)|\s[-\u2013\u2014]++\s)",
    re.IGNORECASE,
)
_NEGATOR = (
    r"(?:no|not|never|without|neither|nor|cannot|can't|n't|doesn't|don't|didn't|isn't|wasn't|aren't|won't|wouldn't"
    r"|couldn't|hasn't|haven't|none of|nobody|instead of|rather than)"
)
_NEGATED = lazy_re(
    rf"(?:\b|(?<=n)){_NEGATOR}(?:\s+(?:\w+\s+){{0,2}}|\s+because\s+(?:[\w']+\s+){{0,4}}|\s*)$", re.IGNORECASE
)
_NEGATED_NEXT = lazy_re(rf"(?:\b|(?<=n)){_NEGATOR}\s*$", re.IGNORECASE)
_WHERE = lazy_re(r"(?:after|at|before|by|during|from|in|inside|on|once|since|until|when|while|within)\b", re.IGNORECASE)
"""Words that begin a time or a place, which "no output after 50 steps" does not deny."""
_NEGATES = lazy_re(rf"\b{_NEGATOR}\b|n't\b|\bnothing\b|\bno\b", re.IGNORECASE)
_DOUBTS = lazy_re(
    r"\b(?:(?:(?<!as )if|whether|in case)\s+(?:\w+\s+){0,3}|(?:avoid|prevent|rule out)\s+(?:\w+\s+){0,5})$",
    re.IGNORECASE,
)
_LISTED = lazy_re(r"\b(?:possible|potential|common) (?:causes|reasons)\b[^.\n]{0,300}", re.IGNORECASE)
"""List of possible causes in a message that a user repeats: none of them was observed."""

_FILE = lazy_re(r"[\w./-]{1,120}\.(?:py|sh|ya?ml|json|ipynb|cfg|toml|txt|log|cc|cpp|cu)\b")
"""Name of a file, which is not a word: `generate.py` does not mean that anything is generated."""

_BEFORE = 200
"""Characters before a hit that are searched for denial or doubt: a few words."""


def clauses(text: str) -> Iterator[tuple[int, str]]:
    """Yield (offset, text) of the clauses of a text."""
    start = 0
    for found in _CLAUSE.finditer(text):
        if found.start() > start:
            yield start, text[start : found.start()]
        start = found.end()
    if start < len(text):
        yield start, text[start:]


def hits_in_words(matcher: Matcher, text: str) -> Iterator[PatternHit]:
    """Yield hits of a matcher in a user's words that the user does not deny or doubt."""
    text = clip_lines(text)
    starts = [0, *(start for start, _ in clauses(text))]
    listed = [found.span() for found in _LISTED.finditer(text)]
    files = [found.span() for found in _FILE.finditer(text)]
    for hit in matcher.hits(text):
        if any(start <= hit.start < end for start, end in listed):
            continue
        if any(start <= hit.start and hit.start + len(hit.words) > end > hit.start for start, end in files):
            continue
        begin = starts[bisect_right(starts, hit.start) - 1]
        before = text[max(begin, hit.start - _BEFORE) : hit.start]
        reach = _NEGATED_NEXT if _WHERE.match(hit.words) else _NEGATED
        denied = reach.search(before) and not _NEGATES.search(hit.words)
        if not denied and not _DOUBTS.search(before):
            yield hit
