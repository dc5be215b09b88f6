"""Common interface of all file readers for the checks: text, kind of file, and variables set or read."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from dtdebug_taxonomy.source.text import Span, Text

if TYPE_CHECKING:
    from dtdebug_taxonomy.source.python.project import Project

Kind = Literal["python", "shell", "config", "requirements", "dockerfile"]


class Variable(NamedTuple):
    """Environment variable that a file sets or reads."""

    name: str
    span: Span
    """Span of the name, without quotes."""
    value: str | None = None
    """Value that it is set to; None if that is computed, or if it is read."""
    value_span: Span | None = None
    is_set: bool = True


class UnreadPart(NamedTuple):
    """Part of a file that no check has seen, or that may mean something different from what was read."""

    span: Span
    why: str
    """Reason as half a sentence: "a quote has no end"."""


class Source:
    """File that was read but not run."""

    kind: Kind

    def __init__(self, text: str, *, path: str = "") -> None:
        self.text = text if isinstance(text, Text) else Text(text)
        self.path = path.replace("\\", "/")
        """Empty for a buffer that was never saved, and for the cells of a notebook."""
        self.project: Project | None = None
        """The files around it, if they may be read."""

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Environment variables that are set or read here."""
        return ()

    @property
    def unread(self) -> tuple[UnreadPart, ...]:
        """Parts that could not be read, by place; empty if the checks have seen all of it."""
        return ()

    def cut(self, span: Span) -> str:
        """Return the text of a span."""
        return self.text[span.start : span.end]
