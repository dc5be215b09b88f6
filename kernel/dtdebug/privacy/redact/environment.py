"""Finds secrets from this process's environment anywhere in a text, whatever their shape."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache

from dtdebug.privacy.redact.secret_names import secret

_LEAST = 8
_KNOWN_WORD = re.compile(r"[\d.]{1,64}\Z|[a-z]{1,12}\Z|/|(?i:true|false|none)\Z")
"""Values that may occur in a text by chance."""


def values(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of variables whose names mark secrets, longest first."""
    found = {
        value
        for name, value in variables.items()
        if len(value) >= _LEAST and secret(name) in ("strong", "token") and not _KNOWN_WORD.match(value)
    }
    return tuple(sorted(found, key=len, reverse=True)[:64])


@lru_cache(maxsize=1)
def _own() -> tuple[str, ...]:
    return values(os.environ)


def spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of these values."""
    found = []
    for value in _own():
        place = text.find(value)
        while place >= 0:
            found.append((place, place + len(value)))
            place = text.find(value, place + len(value))
    return found
