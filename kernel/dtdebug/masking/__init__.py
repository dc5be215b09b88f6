"""Masks secrets in text, recognised by their names, positions and shapes, and by values in this process's environment.

Only the secret itself is masked, so that the text around it remains informative. Each step is linear in the
length of the text, for any text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dtdebug.masking import commands, environ, looks, names, near, pem, places

__all__ = ["MASK", "arguments", "found", "mask"]

MASK = "***"
_AGAIN = 64
"""Maximum number of secrets searched for a second time, so that the time stays linear."""


def mask(text: str) -> str:
    """Return the text with secrets replaced by `***`; line breaks stay where they are."""
    return found(text)[0]


def found(text: str) -> tuple[str, frozenset[str]]:
    """Return the masked text and the secrets."""
    secrets: set[str] = set()
    for spans in (environ.spans, pem.spans, places.spans, names.spans, commands.spans, looks.spans):
        hidden = spans(text)
        secrets |= {text[begin:end] for begin, end in hidden}
        text = _without(text, hidden)
    secrets.discard(MASK)
    return _without(text, _again(text, secrets)) if secrets else text, frozenset(secrets)


def _again(text: str, secrets: set[str]) -> list[tuple[int, int]]:
    """Return the other occurrences of secrets that nobody would write by chance."""
    made = [s for s in sorted(secrets, key=len, reverse=True)[:_AGAIN] if near.is_a_secret(s) and s in text]
    return [m.span() for s in made for m in re.finditer(rf"(?<!\w){re.escape(s)}(?!\w)", text)]


def arguments(words: Sequence[str]) -> list[str]:
    """Mask the secrets among the words of a command line, where the boundaries and names of values are certain."""
    hidden = commands.hidden(words)
    return [mask(word) if n not in hidden else hidden[n] for n, word in enumerate(words)]


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    parts, end = [], 0
    for begin, until in sorted(spans):
        if begin >= end and text[begin:until] != MASK:
            parts += [text[end:begin], MASK + "\n" * text.count("\n", begin, until)]
            end = until
    return "".join([*parts, text[end:]]) if parts else text
