"""Masks secrets in text, recognised by their names, positions and shapes, and by values in this process's environment.

Only the secret itself is masked, so that the text around it remains informative. Each step is linear in the
length of the text, for any text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache

from dtdebug.privacy.redact import (
    assignments,
    command_lines,
    environment,
    nearby_values,
    other_languages,
    pem,
    randomness,
    seed_phrases,
    token_shapes,
    urls_and_headers,
)

__all__ = ["MASK", "arguments", "mask", "mask_secrets"]

MASK = "***"
_AGAIN = 64
"""Maximum number of secrets searched for a second time, so that the time stays linear."""

_ESCAPED = re.compile(r"\\{1,8}(?:u(?P<code>[0-9a-fA-F]{4})|(?P<mark>[nrt\"']))")
"""Escape of a character in JSON or in the repr of a string, however often it is escaped."""
_MEANT = {"n": "\n", "r": "\r", "t": "\t"}
_WRAPPED = re.compile(r"\\?[\"']?\r?\n[ \t]{0,16}[\"']?(?P<s>[A-Za-z0-9+/=_.-]{8,4096}+)(?![\w(\[])")
_TAIL = re.compile(
    r"\\?[\"']?\r?\n[ \t]{0,16}(?P<s>(?=[A-Za-z+/=_-]{0,8}\d)(?=[\d+/=_-]{0,8}[A-Za-z])"
    r"(?:[0-9a-f]{2,8}|(?=[a-z\d+/=_-]{0,8}[A-Z])(?=[A-Z\d+/=_-]{0,8}[a-z])[A-Za-z0-9+/=_-]{2,8}))"
    r"(?=[\"']?[ \t]*(?:\r?\n|\Z))"
)
"""A line of a few mixed letters and digits, which are those that the lines above it did not hold."""
_LINES, _LEAST, _LONG = 32, 12, 24
"""Maximum lines over which a secret is followed, and least characters of what its first line holds, for a tail too."""
_SHORT = 1_000
"""Maximum length of a text whose masked form is remembered: the ranks of a job print the same lines."""
_NARROW = {0xFF01 + n: 0x21 + n for n in range(94)}
"""Full-width letters and marks, as East Asian keyboards write them -> ASCII, at the same places."""


def mask(text: str) -> str:
    """Return the text with secrets replaced by `***`; line breaks stay where they are."""
    return _of_short(text) if len(text) <= _SHORT else mask_secrets(text)[0]


@lru_cache(maxsize=8192)
def _of_short(text: str) -> str:
    return mask_secrets(text)[0]


def mask_secrets(text: str) -> tuple[str, frozenset[str]]:
    """Return the masked text and the secrets."""
    secrets: set[str] = set()
    for spans in (
        environment.spans,
        pem.spans,
        urls_and_headers.spans,
        assignments.spans,
        other_languages.spans,
        command_lines.spans,
        token_shapes.spans,
        seed_phrases.spans,
    ):
        hidden = spans(text if text.isascii() else text.translate(_NARROW))
        if "\\" in text:
            hidden = _union([*hidden, *_behind_escapes(text, spans)])
        secrets |= {text[begin:end] for begin, end in hidden}
        hidden = [(begin, _wrapped_end(text, begin, end)) for begin, end in hidden]
        text = _without(text, hidden)
    secrets.discard(MASK)
    return _without(text, _find_repeats(text, secrets)) if secrets else text, frozenset(secrets)


def _wrapped_end(text: str, begin: int, end: int) -> int:
    """Return the end of a secret that a terminal or an editor has broken over lines, which its first line tells."""
    for _ in range(_LINES):
        if end - begin < _LEAST or not (rest := _WRAPPED.match(text, end)) or not randomness.is_opaque(rest["s"]):
            break
        end = rest.end("s")
    tail = _TAIL.match(text, end) if end - begin >= _LONG else None
    return tail.end("s") if tail else end


def _behind_escapes(text: str, spans: Callable[[str], list[tuple[int, int]]]) -> list[tuple[int, int]]:
    """Return what is found once escapes are read as what they stand for."""
    plain: list[str] = []
    shifts: list[tuple[int, int]] = [(0, 0)]  # place in the plain text, places in the text before it that are gone
    at = length = 0
    for found in _ESCAPED.finditer(text):
        meant = chr(int(found["code"], 16)) if found["code"] else _MEANT.get(found["mark"], found["mark"])
        plain += [text[at : found.start()], meant]
        length += found.start() - at + 1
        shifts.append((length, shifts[-1][1] + len(found[0]) - 1))
        at = found.end()
    if not at:
        return []

    def place(index: int) -> int:
        return index + shifts[bisect_right(shifts, index, key=lambda row: row[0]) - 1][1]

    return [(place(begin), place(end)) for begin, end in spans("".join([*plain, text[at:]])) if end > begin]


def _union(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans with those that overlap made one."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if found and begin < found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((begin, end))
    return found


def _find_repeats(text: str, secrets: set[str]) -> list[tuple[int, int]]:
    """Return the other occurrences of secrets that are too unusual to be written by chance."""
    made = [s for s in sorted(secrets, key=len, reverse=True)[:_AGAIN] if nearby_values.is_a_secret(s) and s in text]
    return [m.span() for s in made for m in re.finditer(rf"(?<!\w){re.escape(s)}(?!\w)", text)]


def arguments(words: Sequence[str]) -> list[str]:
    """Mask the secrets among the words of a command line, where the boundaries and names of values are certain."""
    hidden = command_lines.hidden(words)
    return [mask(word) if n not in hidden else hidden[n] for n, word in enumerate(words)]


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    parts, end = [], 0
    for begin, until in sorted(spans):
        if begin >= end and text[begin:until] != MASK:
            parts += [text[end:begin], MASK + "\n" * text.count("\n", begin, until)]
            end = until
    return "".join([*parts, text[end:]]) if parts else text
