"""Reads untrusted TOML in time bounded by its size."""

from __future__ import annotations

import re
import tomllib
from typing import Any

_LONGEST = 500_000
"""Maximum number of characters of a configuration; a longer text is data."""
_DOTTED = re.compile(r"(?:[\w\"'-]{1,64}[ \t]{0,3}\.[ \t]{0,3}){40}")
"""Key with many parts, which costs the square of their number."""


def read_toml(text: str) -> dict[str, Any]:
    """Return the table in the text.

    Raises:
        ValueError: it is not TOML, too long, or nested too deep.

    """
    if len(text) > _LONGEST:
        raise ValueError(f"it has more than {_LONGEST:,} characters")
    if _DOTTED.search(text):
        raise ValueError("a key has too many parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
