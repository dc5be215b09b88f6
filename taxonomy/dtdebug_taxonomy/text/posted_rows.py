"""Source as people post it: quoted, with line numbers or prompts, as a diff, with parts left out."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dtdebug_taxonomy.text.lazy_re import lazy_re

_QUOTE = lazy_re(r" {0,3}(?:> ?){1,2}(?!>)")
_NUMBER = lazy_re(r"[ \t]{0,8}(?P<number>\d{1,6})(?:[ \t]{0,2}[|:\u2502][ \t]?|[ \t]|$)")
_PROMPT = lazy_re(r"(?:>>>|\.\.\.)(?: |$)")
_LEFT_OUT = lazy_re(
    r"\s{0,200}(?:#\s{0,4})?(?:[.\u2026][.\u2026\s]{1,60}|\u2026|<\s?snip\s?>|\[(?:\.{3}|\u2026|snip)\])\s{0,10}$"
)
"""Row that stands for others."""
_OTHER_ARGUMENTS = re.compile(r"(?<=[(,])(\s{0,4})\.\.\.(?=\s{0,4}\))")
_MARK = lazy_re(r"@@ |diff --git |\+\+\+ ")
_FEWEST = 3
"""Least number of numbered rows in a run."""


def unquoted(rows: Sequence[str]) -> list[str]:
    """Return the rows without the signs of a quotation, and without the prompts of Python."""
    result = list(rows)
    for at, row in enumerate(rows):
        if (quote := _QUOTE.match(row)) is not None:
            result[at] = row[quote.end() :]
    if any(row.startswith(">>> ") for row in result):
        result = [row[4:] if _PROMPT.match(row) and (row[4:].strip() or row[:1] == ">") else row for row in result]
    return _without_numbers(result)


def source_rows(rows: Sequence[str], *, diff: bool = False) -> tuple[list[str], bool]:
    """Return as many rows of source, and whether something is left out: rows that a diff removes, `...`, the start."""
    result = list(rows)
    if diff or any(map(_MARK.match, rows)) or _is_diff(rows):
        result = ["" if row[:1] in {"-", "@"} or _MARK.match(row) else row[1:] for row in rows]
    whole = result
    result = ["" if _LEFT_OUT.match(row) else _OTHER_ARGUMENTS.sub(r"\1**_", row) for row in result]
    return _shift(result), result != whole or whole != list(rows)


def is_between(row: str) -> bool:
    """True if a row ends no source without fences: it is blank, indented, or stands for others."""
    return not row.strip() or row[0].isspace() or _LEFT_OUT.match(row) is not None


def _is_diff(rows: Sequence[str]) -> bool:
    """True if each row begins with a sign of a diff or a blank, and some with a sign before a blank."""
    full = [row for row in rows if row.strip()]
    signs = [row for row in full if row[0] in "+-"]
    return bool(signs) and len(signs) < len(full) and all(row[0] in "+- " for row in full)


def _without_numbers(rows: list[str]) -> list[str]:
    """Return the rows without line numbers, where several in a row count on."""
    found = list(map(_NUMBER.match, rows))
    numbers = [-1 if one is None else int(one["number"]) for one in found]
    at = 0
    while at < len(rows):
        end = at + 1
        while numbers[at] >= 0 and end < len(rows) and numbers[end] == numbers[at] + end - at:
            end += 1
        for i, one in enumerate(found[at:end], at):
            if end - at >= _FEWEST and one is not None:
                rows[i] = rows[i][one.end() :]
        at = end
    return rows


def _shift(rows: list[str]) -> list[str]:
    """Return the rows with the first ones where the later ones are: a paste often begins inside a block or a row."""
    full = [at for at, row in enumerate(rows) if row.strip()]
    widths = {at: len(rows[at]) - len(rows[at].lstrip()) for at in full}
    if len(full) < 2:
        return rows
    first, second = full[:2]
    if widths[first] == 0 < widths[second] and not rows[first].rstrip().endswith((":", "(", "[", "{", ",", "\\")):
        rows[first], widths[first] = " " * widths[second] + rows[first], widths[second]
    least = widths[first]
    for number, at in enumerate(full):
        if widths[at] < least:
            for before in full[:number]:
                rows[before] = rows[before][least - widths[at] :]
            least = widths[at]
    return rows
