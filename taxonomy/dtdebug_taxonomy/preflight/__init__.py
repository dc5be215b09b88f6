"""What `dtdebug doctor` knows of each thing that it finds: a file each, named by its id.

The file says what is seen when such a job runs, how such faults are fixed, and where that is written down. What is
looked at, and how, stands in the program.
"""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec

from dtdebug_taxonomy.model import KnowledgeRecord, Reference

HOME = Path(__file__).parent
Severity = Literal["fault", "warning", "hint"]


class KnownFile(KnowledgeRecord, frozen=True, kw_only=True):
    """One file."""

    title: str
    """What is wrong, in a few words."""
    area: str
    """Line of the report."""
    symptom: tuple[str, ...]
    """Codes of what is seen when such a job runs, the most usual first."""
    pattern: str
    """Id of the fix pattern (`patterns.toml`)."""
    severity: Severity
    """Unless what was measured says otherwise."""
    fix: str
    """In one sentence."""
    page: str
    """Markdown: what it is, how it is measured, what follows."""
    hides: tuple[str, ...] = ()
    """Ids of what follows from it on the same hosts, and is not told again."""
    seen_as: tuple[str, ...] = ()
    """Ids of messages that a job prints which fails of it."""
    reference: tuple[Reference, ...]
    id: str = ""
    """`DR102`; by the file's name."""


@lru_cache(maxsize=1)
def load() -> dict[str, KnownFile]:
    """All by id.

    Raises:
        ValueError: a file is broken; says which and what.

    """
    found: dict[str, KnownFile] = {}
    for file in sorted(HOME.glob("dr*.toml")):
        try:
            known = msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), KnownFile)
        except (msgspec.ValidationError, tomllib.TOMLDecodeError) as error:
            raise ValueError(f"{file.name}: {error}") from None
        found[file.stem.upper()] = msgspec.structs.replace(known, id=file.stem.upper())
    return found
