"""Finds phrases of plain words that are a key: 12 to 24 words, from which a wallet is recovered, after their name."""

from __future__ import annotations

from dtdebug_taxonomy.text.lazy_re import lazy_re

_NAME = lazy_re(r"(?i)mnemonic|(?:seed|recovery|backup|secret|wallet)[ _-]?(?:phrase|words|seed)")
_BETWEEN = lazy_re(
    r"(?i)(?:\\{0,3}[\"'])?(?:[ \t]{1,3}(?:is|was|phrase|words))?[ \t]{0,3}[:=]?[\s\[(]{0,8}(?:\\{0,3}[\"'])?(?=\S)"
)
_WORD = r"(?!(?:the|and|for|are|was|not|from|has|but)\b)[a-z]{3,8}\b"
"""Word as lists of such phrases have them: no article, and nothing shorter."""
_NUMBER = r"(?:\d{1,2}[.):]?[ \t]{1,3})?"
_SHAPES = (
    lazy_re(rf"{_NUMBER}{_WORD}(?:[ \t,]{{1,4}}{_NUMBER}{_WORD}){{11,23}}+"),
    lazy_re(rf"{_WORD}(?:[\"'],[ \t]{{0,3}}[\"']{_WORD}){{11,23}}+"),
    lazy_re(
        rf"{_NUMBER}{_WORD}"
        rf"(?:[ \t,]{{0,4}}\r?\n[ \t]{{0,16}}{_NUMBER}{_WORD}(?=[ \t,\"']{{0,4}}(?:\r?\n|\Z))){{11,23}}+"
    ),
)
"""Words on a line, words in quotes, and one word a line."""


def spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of such phrases."""
    lower = text.lower()
    if not any(said in lower for said in ("mnemonic", "seed", "recovery", "backup", "secret", "wallet")):
        return []
    found: list[tuple[int, int]] = []
    for name in _NAME.finditer(text):
        between = _BETWEEN.match(text, name.end())
        if between is not None:
            found += [phrase.span() for shape in _SHAPES if (phrase := shape.match(text, between.end()))]
    return found
