"""Rules for patterns as written: word classes that exist and are used, and no unreadable pattern."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dtdebug_taxonomy.knowledge.word_classes import CLASS, FILE, classes

LONGEST = 200
"""Maximum number of characters of a pattern as written."""
OLDER = 74
"""Number of older patterns that are longer; it may only fall. Write alternatives as separate patterns."""
_USES = 3
"""Minimum number of patterns that use a word class."""


def word_problems(home: Path = FILE.parent) -> Iterator[str]:
    """Yield the problems in the patterns of a folder of knowledge."""
    uses: Counter[str] = Counter()
    longer = 0
    for folder in ("symptoms", "messages", "observations"):
        for file in sorted((home / folder).glob("*.toml")):
            data = tomllib.loads(file.read_text("utf-8"))
            # a symptom's own `says` are sentences of users
            for pattern in _patterns(data.get("evidence", []) if folder == "symptoms" else data):
                longer += len(pattern) > LONGEST
                names = CLASS.findall(pattern)
                uses.update(names)
                for name in sorted({*names} - {*classes()}):
                    yield f"{folder}/{file.name}: pattern {pattern!r}: no word class {name!r} in {FILE.name}"
    for text in tomllib.loads(FILE.read_text("utf-8"))["word"].values():
        uses.update(CLASS.findall(text) * _USES)
    for name in classes():
        if uses[name] < _USES:
            yield f"{FILE.name}: {name}: used in fewer than {_USES} patterns; write it out"
    if longer != OLDER:
        todo = "write the new ones as several" if longer > OLDER else "lower `OLDER`"
        yield f"{longer} patterns are longer than {LONGEST} characters, {OLDER} were: {todo}"


def _patterns(data: Any) -> Iterator[str]:
    if isinstance(data, dict):
        for key, value in data.items():
            if key in ("says", "text") and isinstance(value, list):
                yield from (text for text in value if isinstance(text, str))
            else:
                yield from _patterns(value)
    elif isinstance(data, list):
        for value in data:
            yield from _patterns(value)
