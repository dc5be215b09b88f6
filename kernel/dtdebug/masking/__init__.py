"""Masks secrets in text: by who names them, by where they stand, by how they look, and by what this process knows.

What is masked is the secret alone, so that the text around it still says what happened. Each step is linear in the
length of the text, whatever the text is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dtdebug.masking import commands, environ, looks, names, near, pem, places

__all__ = ["MASK", "arguments", "found", "mask"]

MASK = "***"
_AGAIN = 64
"""Secrets that are looked for once more, so that the time stays linear."""


def mask(text: str) -> str:
    """The text with secrets replaced by `***`; line breaks stay where they are."""
    return found(text)[0]


def found(text: str) -> tuple[str, frozenset[str]]:
    """The same, and the secrets."""
    secrets: set[str] = set()
    for spans in (environ.spans, pem.spans, places.spans, names.spans, commands.spans, looks.spans):
        hidden = spans(text)
        secrets |= {text[begin:end] for begin, end in hidden}
        text = _without(text, hidden)
    secrets.discard(MASK)
    return _without(text, _again(text, secrets)) if secrets else text, frozenset(secrets)


def _again(text: str, secrets: set[str]) -> list[tuple[int, int]]:
    """Where else in the text one of them stands that nobody would write by chance."""
    made = [s for s in sorted(secrets, key=len, reverse=True)[:_AGAIN] if near.is_a_secret(s) and s in text]
    return [m.span() for s in made for m in re.finditer(rf"(?<!\w){re.escape(s)}(?!\w)", text)]


def arguments(words: Sequence[str]) -> list[str]:
    """The words of a command line without secrets: only they say where a value ends and what is its name."""
    hidden = commands.hidden(words)
    return [mask(word) if n not in hidden else hidden[n] for n, word in enumerate(words)]


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    parts, end = [], 0
    for begin, until in sorted(spans):
        if begin >= end and text[begin:until] != MASK:
            parts += [text[end:begin], MASK + "\n" * text.count("\n", begin, until)]
            end = until
    return "".join([*parts, text[end:]]) if parts else text
