"""Findings of `dtdebug doctor`: one file each, named by its id.

The file describes the symptoms of such a job, how such faults are fixed, and where that is documented. The program
defines what is examined, and how.
"""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec

from dtdebug_taxonomy.knowledge.schema import KnowledgeRecord, Reference

HOME = Path(__file__).parent
Severity = Literal["fault", "warning", "hint"]


class KnownFile(KnowledgeRecord, frozen=True, kw_only=True):
    """One file."""

    title: str
    """Description of the problem in a few words."""
    area: str
    """Line of the report."""
    symptom: tuple[str, ...]
    """Codes of the symptoms of such a job, the most usual first."""
    pattern: str
    """Id of the fix pattern (`patterns.toml`)."""
    severity: Severity
    """Severity unless the measurement implies another."""
    fix: str
    """Fix in one sentence."""
    page: str
    """Markdown: what it is, how it is measured, what follows."""
    hides: tuple[str, ...] = ()
    """Ids of consequences on the same hosts, which are not reported again."""
    seen_as: tuple[str, ...] = ()
    """Ids of messages of a job that fails because of it."""
    reference: tuple[Reference, ...]
    id: str = ""
    """`DR102`; from the file's name."""


@lru_cache(maxsize=1)
def load() -> dict[str, KnownFile]:
    """Return all by id.

    Raises:
        ValueError: a file is broken; the message names the file and the error.

    """
    found: dict[str, KnownFile] = {}
    for file in sorted(HOME.glob("dr*.toml")):
        try:
            known = msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), KnownFile)
        except (msgspec.ValidationError, tomllib.TOMLDecodeError) as error:
            raise ValueError(f"{file.name}: {error}") from None
        found[file.stem.upper()] = msgspec.structs.replace(known, id=file.stem.upper())
    return found
