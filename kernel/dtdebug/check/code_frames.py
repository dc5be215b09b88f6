"""Shows findings to people: message, place, the line with what is meant marked, the fix, the address of the page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

from dtdebug.check.examine_file import CheckFinding, PlacedFix
from dtdebug.check.formats import rule, where
from dtdebug.check.texts import Texts, apply_edits
from dtdebug.privacy.sanitize import clean
from dtdebug_taxonomy.checks import Severity, page_address

if TYPE_CHECKING:
    from rich.console import Console

_WIDEST_CODE = 120
"""Maximum width of a source line where the width of the reader's screen is not known."""
_BEFORE = 8
"""Characters shown before the marked part of a line that is too long."""
_STYLES: dict[Severity, str] = {"error": "bold red", "warning": "bold yellow", "information": "cyan", "hint": "cyan"}

_Line = tuple[tuple[str, str], ...]
"""Pieces of a line, each with its style."""


def plain(findings: Sequence[CheckFinding], texts: Texts) -> str:
    """Return the frames as plain text whose messages are not wrapped."""
    rows = ("".join(piece for piece, _ in line) for f in findings for line in _frame(f, texts, 0))
    return "".join(f"{row}\n" for row in rows)


def show(findings: Sequence[CheckFinding], texts: Texts, console: Console) -> None:
    """Print the frames in a terminal's colours and width."""
    from rich.text import Text

    for finding in findings:
        for line in _frame(finding, texts, console.width):
            console.print(Text.assemble(*line), soft_wrap=True, highlight=False)


def _frame(f: CheckFinding, texts: Texts, width: int) -> Iterator[_Line]:
    lines = texts.lines(f)
    edge = " " * len(str(f.line))
    first, *more = _wrap(f"{f.severity} {f.id} {clean(f.message)}", width, "  ")
    yield (f.severity, _STYLES[f.severity]), (f" {f.id}", "bold"), (first[len(f"{f.severity} {f.id}") :], "")
    yield from (((line, ""),) for line in more)
    yield (f"{edge}--> ", "blue"), (where(f), "")
    if f.line <= len(lines):
        code, mark = _mark_line(lines[f.line - 1], f, width - len(edge) - 3 if width else _WIDEST_CODE)
        yield ((f"{edge} |", "blue"),)
        yield (f"{f.line} | ", "blue"), (code, "")
        if mark:
            yield (f"{edge} | ", "blue"), (mark, _STYLES[f.severity])
    if f.fix is not None:
        how = ("safe" if f.cell else "safe: --fix") if f.fix.safe else "review"
        yield from (((line, ""),) for line in _wrap(f"help: {clean(f.fix.title)} ({how})", width, "      "))
        yield from _changed_lines(lines, f, f.fix, width)
    yield (f"{edge} = ", "blue"), (page_address(rule(f.id)), "dim")
    yield ()


def _wrap(text: str, width: int, indent: str) -> list[str]:
    if not width:
        return [text]
    return textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _mark_line(line: str, f: CheckFinding, room: int) -> tuple[str, str]:
    """Return a line cut to a width, and the marks below it; no marks if the line can't be shown as it is."""
    begin, end = f.column - 1, f.end_column - 1 if f.end_line == f.line else len(line)
    before, marked, after = (part.replace("\t", "    ") for part in (line[:begin], line[begin:end], line[end:]))
    whole = before + marked + after
    if clean(whole) != whole:
        return _cut(clean(whole), room), ""
    if len(whole) > room and len(before) > _BEFORE:
        before = f"...{before[-_BEFORE:]}"
    shown = _cut(before + marked + after, room)
    width = _cells(shown[len(before) :][: len(marked)].rstrip())
    return shown.rstrip(), " " * _cells(before) + "^" * max(width, 1)


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: max(room - 3, 0)]}..."


def _cells(text: str) -> int:
    """Return the number of columns that a terminal uses for a text."""
    return len(text) if text.isascii() else sum(2 if east_asian_width(c) in "WF" else 1 for c in text)


def _changed_lines(lines: Sequence[str], f: CheckFinding, fix: PlacedFix, width: int) -> Iterator[_Line]:
    """Yield the first line that the fix writes, or else removes, next to the finding, and what else it changes."""
    if any(e.end[0] > len(lines) for e in fix.edits):  # the file has changed, or is gone
        return
    edit = min(fix.edits, key=lambda e: (abs(e.start[0] - f.line), e.start))
    after = apply_edits(lines, [edit])
    first = _count_equal(lines, after)
    last = _count_equal(lines[first:][::-1], after[first:][::-1])
    written = [(n, row) for n, row in enumerate(after[first : len(after) - last], first + 1) if row.strip()]
    removed = list(enumerate(lines[first : len(lines) - last], first + 1))
    if not (rows := written or removed):
        return
    place, row = rows[0]
    number = f"{place:>{len(str(f.line))}}"
    sign, style = ("+", "green") if written else ("-", "red")
    more = f" ({more} more)" if (more := len(rows) - 1 + len(fix.edits) - 1) else ""
    if clean(row) == row:
        room = (width or _WIDEST_CODE) - len(f"{number} {sign} {more}")
        yield (f"{number} {sign} ", style), (_cut(row.replace("\t", "    "), room), style), (more, "dim")


def _count_equal(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many lines at the beginning are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))
