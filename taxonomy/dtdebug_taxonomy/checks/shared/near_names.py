"""Finds the known name that a misspelt one was meant to be."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that differs by a typo: a letter or two, or word order; None if none or several do."""
    words = sorted(name.split("_"))
    allowed = 1 if len(name) < 12 else 2
    best: dict[str, int] = {}
    for candidate in known:
        if sorted(candidate.split("_")) == words:
            return candidate
        if abs(len(candidate) - len(name)) <= allowed and (far := distance(name, candidate, allowed)) <= allowed:
            best[candidate] = far
    close = [c for c, far in best.items() if far == min(best.values())]
    return close[0] if len(close) == 1 else None


def related_name(name: str, known: Iterable[str]) -> str | None:
    """Return the one known name whose words are all in this name, or that has all words of it."""
    words = set(name.split("_"))
    found = {c for c in known if (them := set(c.split("_"))) < words or them > words}
    inside = [c for c in found if set(c.split("_")) < words and c.count("_")]
    longest = max((c.count("_") for c in inside), default=0)
    close = [c for c in inside if c.count("_") == longest] if longest > 1 else list(found - set(inside))
    return close[0] if len(close) == 1 else None


def distance(one: str, other: str, most: int) -> int:
    """Return the edit distance, a swap of neighbours counting once; exact only up to `most`."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, row, last = row, [i], before
        for j, b in enumerate(other, 1):
            row.append(min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b)))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                row[j] = min(row[j], last[j - 2] + 1)
        if min(row) > most:
            return most + 1
    return row[-1]
