"""Chooses the reader of a file by its name and first lines."""

from __future__ import annotations

from dtdebug_taxonomy.source.python import Code
from dtdebug_taxonomy.source.source import Source


def read(path: str, text: str) -> Source | None:
    """The file, read; None if it is of no kind that the checks are about."""
    return Code(text, path=path) if path.endswith(".py") else None
