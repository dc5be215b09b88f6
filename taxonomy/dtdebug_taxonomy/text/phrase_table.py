"""Maps phrases of other languages to the English that the patterns match: a table, not a translation.

Descriptions in Chinese and Japanese accompany English logs; what they state about a hang, one card or several hosts
counts as much as in English. Quotes are always the user's own words.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.pattern_matcher import clip_lines

_OTHER = lazy_re("[\u3040-\u30ff\u3400-\u9fff]")
"""Kana and Han: a text without them is not searched."""
_MOST = 200
"""Maximum number of phrases read of a description."""


class Phrase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Row of the table."""

    text: str
    english: str


class SpokenPhrase(NamedTuple):
    """Phrase of the user."""

    words: str
    """Text as the user wrote it."""
    english: str
    line: int
    """1-based line of the description."""


@lru_cache(maxsize=8)
def spoken_phrases(situation: str) -> tuple[SpokenPhrase, ...]:
    """Return the phrases of a description that the table contains, in order; empty for a text in English."""
    if situation.isascii() or not _OTHER.search(situation):
        return ()
    text = clip_lines(situation)
    rows: list[SpokenPhrase] = []
    end = 0
    hits = [(m.start(), -len(m[0]), m[0], english) for pattern, english in _table() for m in pattern.finditer(text)]
    for start, _, words, english in sorted(hits):
        if start >= end and len(rows) < _MOST:  # the longest that begins first: `没有报错` before `报错`
            rows.append(SpokenPhrase(words, english, text.count("\n", 0, start) + 1))
            end = start + len(words)
    return tuple(rows)


def in_english(situation: str) -> str:
    """Return the same as sentences, one per line; empty for a text in English."""
    return "\n".join(f"{row.english}." for row in spoken_phrases(situation))


def phrases() -> tuple[Phrase, ...]:
    """Return the table in `tongues.toml`."""
    data = (Path(__file__).parents[1] / "tongues.toml").read_bytes()
    return msgspec.toml.decode(data, type=dict[str, tuple[Phrase, ...]])["phrase"]


@lru_cache(maxsize=1)
def _table() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((lazy_re(p.text, re.IGNORECASE), p.english) for p in phrases())
