"""Reads TOML that anyone may have written, in time that its size bounds."""

from __future__ import annotations

import re
import tomllib
from typing import Any

_LONGEST = 500_000
"""Characters beyond which a text is data, no configuration."""
_DOTTED = re.compile(r"(?:[\w\"'-]{1,64}[ \t]{0,3}\.[ \t]{0,3}){40}")
"""A key of so many parts costs the square of their number."""


def read_toml(text: str) -> dict[str, Any]:
    """The table that the text holds.

    Raises:
        ValueError: it is none, too long, or nested too deep.

    """
    if len(text) > _LONGEST:
        raise ValueError(f"it has more than {_LONGEST:,} characters")
    if _DOTTED.search(text):
        raise ValueError("a key has too many parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
