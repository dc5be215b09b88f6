"""Options of a program whose values a plan may depend on: `--layers 4`, `--layers=4`, `model.layers=4`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

_OPTION = re.compile(r"-{0,2}(?P<name>[A-Za-z_][\w.-]{0,60})")


def option_name(word: str) -> str:
    """Return the name of an option as formulas write it: `--batch-size` and `train.batch_size` are `batch_size`."""
    return word.lstrip("-").rpartition(".")[2].replace("-", "_")


def whole_values(words: Sequence[str]) -> dict[str, int]:
    """Return the options of a command that have a whole number above 0, by name."""
    return {name: value for name, value, _ in _places(words)}


def with_value(words: Sequence[str], name: str, value: int) -> list[str]:
    """Return the command with another value of an option."""
    changed = list(words)
    for found, _, at in _places(words):
        if found == name:
            head, equals, _ = changed[at].rpartition("=")
            changed[at] = f"{head}{equals}{value}"
    return changed


def without_values(words: Sequence[str], names: Iterable[str]) -> list[str]:
    """Return the command with the values of these options left out."""
    for name in names:
        words = with_value(words, name, 0)
    return list(words)


def _places(words: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Yield name, value, and index of the word with the value."""
    for at, word in enumerate(words):
        head, equals, text = word.rpartition("=")
        if not equals:
            head, text = (words[at - 1] if at and words[at - 1].startswith("-") else ""), word
        found = _OPTION.fullmatch(head)
        if found and text.isascii() and text.isdecimal() and 0 < len(text) < 10 and int(text) > 0:
            yield option_name(head), int(text), at
