"""Last good findings of a text, kept while it can't be parsed.

While a statement is being typed, its part of the text does not parse: checks would lose what they found there, and miss
what made other places correct. So the last good findings stay and move along with the text, and new ones are accepted
only in edited lines.
"""

from __future__ import annotations

from dtdebug_lsp.problem import Problem
from dtdebug_taxonomy.source.text import Span, Text


class LastGood:
    """The last good findings of one text, and the spans edited since."""

    def __init__(self) -> None:
        self._good: list[Problem] | None = None
        self._edits: list[Span] = []

    def record_edit(self, span: Span, length: int) -> None:
        """Move the findings after a span was replaced by a text of some length; drop those that lost an end."""
        if self._good is None:
            return
        kept = ((p, _shift_span(p.span, span, length)) for p in self._good)
        self._good = [p._replace(span=s, edits=()) for p, s in kept if s is not None]
        moved = (_shift_span(e, span, length) or _merge_spans(e, span, length) for e in self._edits)
        self._edits = [*moved, Span(span.start, span.start + length)]

    def settle(self, text: Text, problems: list[Problem], *, parsed: bool) -> list[Problem]:
        """Return the problems to show, given what the checks find now."""
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


def _shift_span(span: Span, edit: Span, length: int) -> Span | None:
    """Return a span after an edit; None if the edit removed one of its ends."""
    shift = length - (edit.end - edit.start)
    if edit.end <= span.start and edit != span:
        return Span(span.start + shift, span.end + shift)
    if edit.start >= span.end:
        return span
    if span.start < edit.start and edit.end < span.end:
        return Span(span.start, span.end + shift)
    return None


def _merge_spans(span: Span, edit: Span, length: int) -> Span:
    """Merge two edits if the later one removed a part of the earlier one."""
    return Span(min(span.start, edit.start), max(span.end, edit.end) + length - (edit.end - edit.start))
