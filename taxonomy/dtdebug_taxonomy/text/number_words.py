"""Small numbers in words, as people write how many ranks, hosts or devices there are."""

from __future__ import annotations

NUMBERS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "ten": 10, "twelve": 12,
    "sixteen": 16,
}  # fmt: skip
NUMBER = rf"\d{{1,4}}|{'|'.join(NUMBERS)}"
"""Pattern of what `read_number` reads."""


def read_number(word: str) -> int:
    """Return a number that is written in digits or as a word; raises ValueError for any other text."""
    return NUMBERS.get(word.lower()) or int(word)
