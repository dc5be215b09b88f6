"""Word classes in patterns: `{machine}` is replaced by the alternatives in `word_classes.toml`."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

FILE = Path(__file__).parents[1] / "word_classes.toml"
CLASS = re.compile(r"\{([a-z_]{2,30})\}")
"""Use of a class in a pattern."""


@lru_cache(maxsize=1)
def classes() -> dict[str, str]:
    """Return name -> pattern, with nested classes expanded."""
    found: dict[str, str] = msgspec.toml.decode(FILE.read_bytes())["word"]
    for _ in found:
        deeper = {name: _in(text, found) for name, text in found.items()}
        if deeper == found:
            break
        found = deeper
    return found


def expand_classes(data: Any) -> Any:
    """Return a file's data with all word classes expanded; other words in braces are unchanged."""
    if isinstance(data, str):
        return _in(data, classes()) if "{" in data else data
    if isinstance(data, dict):
        return {key: expand_classes(value) for key, value in data.items()}
    return [expand_classes(value) for value in data] if isinstance(data, list) else data


def _in(text: str, known: dict[str, str]) -> str:
    return CLASS.sub(lambda found: known.get(found[1], found[0]), text)
