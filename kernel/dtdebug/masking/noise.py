"""Tells random characters from words, numbers and hashes."""

from __future__ import annotations

import re
import string
from operator import ne

_SEGMENT = re.compile(r"[A-Za-z0-9]{1,4096}")
_KNOWN = re.compile(
    r"[0-9a-f]{1,4096}\Z|[0-9A-F]{1,4096}\Z|[A-Z]?[a-z]{1,64}\d{0,4}\Z"
    r"|[A-Z]{1,64}\d{0,4}\Z|\d{1,4}[A-Za-z]{1,3}\Z"
)
"""A hash, a number, or a word, maybe with a number."""
_BETWEEN = re.compile("[\"'], [\"']")
_KINDS = str.maketrans(
    {
        **dict.fromkeys(string.ascii_lowercase, "l"),
        **dict.fromkeys(string.ascii_uppercase, "u"),
        **dict.fromkeys(string.digits, "d"),
    }
)
_LEAST, _CHANGES, _CHANGES_LOWER = 20, 0.42, 0.3
_IN_ONE = 10
"""Letters and digits that stand together, at least: names of kernels are many short parts."""


def is_random(text: str) -> bool:
    """Too many changes between letters, capitals and digits for a word that a person wrote; hashes are none."""
    parts = [part for part in _SEGMENT.findall(text) if not _KNOWN.match(part)]
    rest, longest = "".join(parts), max(map(len, parts), default=0)
    if len(rest) < _LEAST:
        return False
    if rest.islower():
        return longest >= _LEAST and _changes(rest) >= _CHANGES_LOWER
    return longest >= _IN_ONE and _changes(rest) >= _CHANGES


def _changes(text: str) -> float:
    """The part of the letters and digits that differ in kind from the one before; 0 without digits."""
    kinds = text.translate(_KINDS)
    return _parts(kinds) / len(kinds) if "d" in kinds else 0.0


def _parts(kinds: str) -> int:
    return sum(map(ne, kinds, kinds[1:]))


def flat(text: str) -> str:
    """A list's words as one line of the same length: `['-u', 'a:b']` is read as the command that it is."""
    return _BETWEEN.sub("    ", text)


def is_opaque(word: str) -> bool:
    """No word, name, number or path: enough to hide a value that something calls a secret."""
    if len(word) < _IN_ONE or not word.isascii() or _KNOWN.match(word) or not any(map(str.isalnum, word)):
        return False
    return _parts("".join(filter(str.isalnum, word)).translate(_KINDS)) >= 0.25 * len(word)
