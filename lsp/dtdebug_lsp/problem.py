"""A finding in an open text, with its fix."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from dtdebug_taxonomy.checks import Check, Severity
from dtdebug_taxonomy.checks.examine import CheckedHit
from dtdebug_taxonomy.source.text import Span, Text


class OpenText(Protocol):
    """A text that the client has open, as `documents.Document` is."""

    uri: str
    version: int | None
    text: Text


class Change(NamedTuple):
    """A part of a fix: it can lie in another cell than the finding."""

    document: OpenText
    span: Span
    text: str


class Problem(NamedTuple):
    """A finding, placed in the text that the client shows."""

    check: Check
    span: Span
    message: str
    severity: Severity
    title: str = ""
    """What the fix does; empty if there is none."""
    safe: bool = False
    edits: tuple[Change, ...] = ()
    hit: CheckedHit | None = None
    """As the check gave it."""
