"""What was found when a text could last be parsed, for the time until it can be again.

While a statement is being typed, its part of the text is no program: checks would lose what
they saw there, and miss what made other places right. So the last good findings stay, moved
along with the text, and new ones are believed only where something was edited.
"""

from __future__ import annotations

from dtdebug_lsp.problem import Problem
from dtdebug_taxonomy.source.text import Span, Text


class LastGood:
    """The last good findings of one text, and where it was edited since."""

    def __init__(self) -> None:
        self._good: list[Problem] | None = None
        self._edits: list[Span] = []

    def edited(self, span: Span, length: int) -> None:
        """A span was replaced by a text of some length: what it held an end of is forgotten, the rest moves."""
        if self._good is None:
            return
        kept = ((p, _moved(p.span, span, length)) for p in self._good)
        self._good = [p._replace(span=s, edits=()) for p, s in kept if s is not None]
        moved = (_moved(e, span, length) or _joined(e, span, length) for e in self._edits)
        self._edits = [*moved, Span(span.start, span.start + length)]

    def settle(self, text: Text, problems: list[Problem], *, parsed: bool) -> list[Problem]:
        """What to show, given what the checks see now."""
        if parsed:
            self._good, self._edits = problems, []
            return problems
        if self._good is None:
            return problems
        lines = {line for e in self._edits for line in range(text.place(e.start).line, text.place(e.end).line + 1)}
        known = {(p.check.id, p.span.start) for p in self._good}
        new = [
            p for p in problems if text.place(p.span.start).line in lines and (p.check.id, p.span.start) not in known
        ]
        return sorted([*self._good, *new], key=lambda p: p.span)


def _moved(span: Span, edit: Span, length: int) -> Span | None:
    """Where a span is after an edit; None where the edit took one of its ends away."""
    shift = length - (edit.end - edit.start)
    if edit.end <= span.start and edit != span:
        return Span(span.start + shift, span.end + shift)
    if edit.start >= span.end:
        return span
    if span.start < edit.start and edit.end < span.end:
        return Span(span.start, span.end + shift)
    return None


def _joined(span: Span, edit: Span, length: int) -> Span:
    """One span for two edits of which the later took some of the earlier away."""
    return Span(min(span.start, edit.start), max(span.end, edit.end) + length - (edit.end - edit.start))
