"""Formats ranks in words."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice


def ranges(ranks: Iterable[int], most: int = 1000) -> str:
    """Return ranks in short form, such as `0-2,4`; after `most` ranges only the number of remaining ranks."""
    rows: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if rows and rank == rows[-1][1] + 1:
            rows[-1][1] = rank
        else:
            rows.append([rank, rank])
    text = ",".join(str(a) if a == b else f"{a}-{b}" for a, b in islice(rows, most))
    rest = sum(b - a + 1 for a, b in islice(rows, most, None))
    return f"{text},... {rest} more" if rest else text


def spell(ranks: Iterable[int], most: int = 1000) -> str:
    """Return ranks for a sentence: `rank 3`, `ranks 0-2,4-7`."""
    listed = sorted(set(ranks))
    if not listed:
        return "no rank"
    return f"rank{'s' if len(listed) > 1 else ''} {ranges(listed, most)}"


_SINGULAR = {"are": "is", "have": "has", "do": "does"}


def say(ranks: Iterable[int], verb: str) -> str:
    """Return ranks with a verb, which is passed in the plural: `rank 3 waits`, `ranks 0-2 wait`."""
    listed = sorted(set(ranks))
    return f"{spell(listed)} {verb if len(listed) > 1 else _SINGULAR.get(verb, verb + 's')}"


def shorten_text(text: str, most: int = 200) -> str:
    """Return the beginning of a text, cut at a word, for use within a sentence; the record has the whole."""
    if len(text) <= most:
        return text.removesuffix(".")
    whole = text[: most - 3].rsplit(None, 1)[0] if " " in text[: most - 3] else text[: most - 3]
    return f"{whole}..."
