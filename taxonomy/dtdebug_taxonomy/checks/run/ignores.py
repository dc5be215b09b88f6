"""Comments that suppress findings: `# dtdebug: ignore[DT101] reason`, `# dtdebug: ignore-file`, `# noqa: DT314`."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from typing import NamedTuple

from dtdebug_taxonomy.checks import Check, known_checks
from dtdebug_taxonomy.checks.run.settings import Settings
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.source import Source
from dtdebug_taxonomy.source.text import Span, Text

_COMMENT = re.compile(
    r"(?:#|//)\s*(?:dtdebug:\s*ignore(?P<file>-file)?(?:\[(?P<ids>[^\]\n]*)\])?"
    r"|(?i:noqa):\s*(?P<noqa>[A-Z]+[0-9]+(?:[ \t,]+[A-Z]+[0-9]+)*))"
)
"""Without ids `ignore` means all checks; a bare `# noqa` is about another tool, so it suppresses nothing here."""
_ALL = "*"


class _Comment(NamedTuple):
    span: Span
    line: int
    """0 for the whole file."""
    ids: tuple[str, ...]


class Ignores:
    """Suppressing comments of a source, and which of their ids have suppressed a finding."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._comments: list[_Comment] = []
        self._used: set[tuple[Span, str]] = set()
        if any(word in source.text for word in ("dtdebug", "noqa", "NOQA")):
            self._comments = list(_comments(source))

    def suppress(self, check: Check, span: Span) -> bool:
        """True if a comment on the first or last line of a finding, or one about the file, covers it."""
        if not self._comments:
            return False
        first, last = (self._source.text.place(offset).line for offset in span)
        if isinstance(self._source, Code):
            last = max(last, _last_line(self._source, first))
        covering = [
            (c.span, i) for c in self._comments if c.line in {0, first, last} for i in c.ids if _covers(i, check)
        ]
        self._used.update(covering)
        return bool(covering)

    def unused(self, settings: Settings) -> Iterator[tuple[Span, str]]:
        """Yield the comments that have suppressed nothing, with a message, once all findings were asked about.

        An id says nothing if none of its checks is enabled, and neither does a file that was not read completely.
        """
        if not self._comments or self._source.unread:
            return
        real = _python_comments(self._source.text) if isinstance(self._source, Code) else None
        enabled = settings.enabled_ids(self._source.path)
        checks = list(known_checks())
        usual = {c.id for c in checks if not c.optional}
        for comment in self._comments:
            if real is not None and comment.span.start not in real:  # within a string
                continue
            idle = []
            for i in dict.fromkeys(comment.ids):
                meant = {c.id for c in checks if _covers(i, c)}
                known = meant & usual <= enabled if i == _ALL else not meant or not meant.isdisjoint(enabled)
                if known and (comment.span, i) not in self._used:
                    idle.append(i)
            if idle:
                where = "in this file" if comment.line == 0 else "here"
                named = "no check" if idle == [_ALL] else f"no finding of {', '.join(idle)}"
                yield comment.span, f"This comment suppresses nothing: there is {named} {where}."


def _comments(source: Source) -> Iterator[_Comment]:
    for found in _COMMENT.finditer(source.text):
        if (codes := found["noqa"]) is not None:
            ids = tuple(i for i in re.split(r"[\s,]+", codes) if i.startswith("DT"))
        elif found["ids"] is None:
            ids = (_ALL,)
        else:
            ids = tuple(i for i in re.split(r"[\s,]+", found["ids"]) if i)
        if ids:
            line = 0 if found["file"] else source.text.place(found.start()).line
            yield _Comment(Span(*found.span()), line, ids)


def _python_comments(text: Text) -> set[int]:
    """Return the offsets at which comments begin, and at which a second one begins within."""
    found: set[int] = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            if token.type == tokenize.COMMENT:
                start = text.starts[token.start[0] - 1] + token.start[1]
                found.update(start + m.start() for m in re.finditer("#", token.string))
    except (tokenize.TokenError, SyntaxError):
        return set()
    return found


def _last_line(code: Code, first: int) -> int:
    """Return the last line of a simple statement that begins on a line, since its comment may be there."""
    ends = [s.end_lineno or 0 for s in code.statements_at(first) if not hasattr(s, "body")]
    return max(ends, default=first)


def _covers(i: str, check: Check) -> bool:
    return i == _ALL or check.id.startswith(i) or i == check.name
