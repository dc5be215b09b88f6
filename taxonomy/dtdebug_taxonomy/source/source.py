"""What all readers of files give to the checks: text, kind of file, and variables that are set or read."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from dtdebug_taxonomy.source.text import Span, Text

if TYPE_CHECKING:
    from dtdebug_taxonomy.source.project import Project

Kind = Literal["python", "shell", "config", "requirements", "dockerfile"]


class Variable(NamedTuple):
    """An environment variable that a file sets or reads."""

    name: str
    span: Span
    """Of the name, without quotes."""
    value: str | None = None
    """What it is set to; None where that is computed, or where it is read."""
    value_span: Span | None = None
    is_set: bool = True


class Unread(NamedTuple):
    """A part of a file that no check has seen, or that may mean something else than what was read."""

    span: Span
    why: str
    """Half a sentence: "a quote has no end"."""


class Source:
    """A file that was read but not run."""

    kind: Kind

    def __init__(self, text: str, *, path: str = "") -> None:
        self.text = text if isinstance(text, Text) else Text(text)
        self.path = path.replace("\\", "/")
        """Empty for a buffer that was never saved, and for the cells of a notebook."""
        self.project: Project | None = None
        """The files around it, where they may be read."""

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Environment variables that are set or read here."""
        return ()

    @property
    def unread(self) -> tuple[Unread, ...]:
        """The parts that could not be read, by place; empty if the checks have seen all of it."""
        return ()

    def cut(self, span: Span) -> str:
        """The text of a span."""
        return self.text[span.start : span.end]
