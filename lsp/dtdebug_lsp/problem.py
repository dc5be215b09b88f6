"""Finding in an open text, with its fix."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from dtdebug_taxonomy.checks import Check, Severity
from dtdebug_taxonomy.checks.run.examine import CheckedHit
from dtdebug_taxonomy.source.text import Span, Text


class OpenText(Protocol):
    """Text that the client has open, such as `documents.Document`."""

    uri: str
    version: int | None
    text: Text


class Change(NamedTuple):
    """Edit of a fix, which can be in another cell than the finding."""

    document: OpenText
    span: Span
    text: str


class Problem(NamedTuple):
    """Finding, placed in the text that the client shows."""

    check: Check
    span: Span
    message: str
    severity: Severity
    title: str = ""
    """Title of the fix; empty if there is none."""
    safe: bool = False
    edits: tuple[Change, ...] = ()
    hit: CheckedHit | None = None
    """Original hit of the check."""
