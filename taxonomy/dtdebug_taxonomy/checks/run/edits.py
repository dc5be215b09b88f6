"""Applies fixes to a text."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dtdebug_taxonomy.checks import Edit, Fix

_ENDS = re.compile("\r?\n")


def apply(text: str, fixes: Iterable[Fix]) -> str:
    """Return the text with every fix that overlaps no earlier one; each is applied whole or not at all.

    Added lines use the text's line endings.
    """
    taken: list[Edit] = []
    for fix in fixes:
        new = [e for e in fix.edits if e not in taken]
        if not any(_overlap(e, t) for e in new for t in taken):
            taken += new
    ends = "\r\n" if "\r\n" in text else "\n"
    for edit in sorted(taken, key=lambda e: e.span, reverse=True):
        text = text[: edit.span.start] + _ENDS.sub(ends, edit.text) + text[edit.span.end :]
    return text


def _overlap(one: Edit, other: Edit) -> bool:
    """True if two edits touch the same text; two insertions at one place do, because their order is undefined."""
    if one.span.start == other.span.start:
        return True
    return one.span.start < other.span.end and other.span.start < one.span.end
