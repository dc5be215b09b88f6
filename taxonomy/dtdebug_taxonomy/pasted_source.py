"""Source that a text shows between fences, beside what failed: a program, a cell, a launch script."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from dtdebug_taxonomy.source.python import Code
from dtdebug_taxonomy.source.shell import Script
from dtdebug_taxonomy.source.source import Source

_FENCE = re.compile(r"\s{0,3}(?:`{3,}|~{3,})\s{0,3}(?P<language>\w{0,20})")
_PYTHON, _SHELL = frozenset({"python", "py", "python3"}), frozenset({"bash", "sh", "shell", "slurm", "zsh"})
_SCRIPT = re.compile(r"#!\s{0,2}/\S{0,60}\b(?:ba|z|k|da)?sh\b|#SBATCH ")
"""What a script begins with, which people show without fences too."""
_MOST, _LONGEST = 4, 60_000
"""Blocks of a text that are read, and characters of one."""


class Shown(NamedTuple):
    """A block of a text that is source."""

    source: Source
    line: int
    """1-based line of the text that is its first."""


def shown(text: str) -> Iterator[Shown]:
    """The blocks of a text that can be read as Python or shell, in order."""
    rows = text.split("\n")
    found = 0
    for first, language, block in _blocks(rows):
        source = _source(language, "\n".join([*block, ""])) if found < _MOST else None
        if source is not None:
            found += 1
            yield Shown(source, first + 1)


def _blocks(rows: list[str]) -> Iterator[tuple[int, str, list[str]]]:
    """(index of its first row, language that is named, rows) of what stands between fences, and of bare scripts."""
    at = 0
    while at < len(rows):
        fence = _FENCE.match(rows[at])
        if fence is not None:
            end = next((i for i in range(at + 1, len(rows)) if _FENCE.match(rows[i])), len(rows))
            yield at + 1, fence["language"].lower(), rows[at + 1 : end]
            at = end + 1
        elif _SCRIPT.match(rows[at]):
            end = next((i for i in range(at + 1, len(rows)) if not rows[i].strip() or _FENCE.match(rows[i])), len(rows))
            yield at, "sh", rows[at:end]
            at = end
        else:
            at += 1


def _source(language: str, body: str) -> Source | None:
    """None where it is neither: output, a configuration, a fragment that does not parse."""
    if len(body) > _LONGEST or not body.strip():
        return None
    if language in _SHELL or _SCRIPT.match(body.lstrip()):
        return Script(body)
    if language and language not in _PYTHON:
        return None
    try:
        ast.parse(body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return Code(body)
