"""Checks the answers of readers of the notebooks: the right one is explained, a wrong one gets a hint."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import msgspec


class NotebookQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Question of a notebook."""

    asks: str
    choices: dict[str, str]
    right: str
    """Right choice."""
    why: str
    hints: dict[str, str]
    """Choice -> hint on what to look at again."""


def answer(question: str, given: object = "") -> None:
    """Print whether an answer is right; without an answer, print the question and its choices."""
    print(check_answer(question, given))


def check_answer(question: str, given: object = "") -> str:
    """Return the text that `answer` prints."""
    asked = questions().get(str(question).strip().lower())
    if asked is None:
        return f"There is no question {question!r}. There are: {', '.join(questions())}."
    chosen = _match_choice(str(given), asked.choices)
    if chosen == asked.right:
        return f"Right: {asked.why}"
    if chosen in asked.hints:
        return f"Not quite. {asked.hints[chosen]}"
    choices = "\n".join(f"  {letter}: {text}" for letter, text in asked.choices.items())
    return f'{asked.asks}\n{choices}\nanswer("{question}", "...") with one of {", ".join(asked.choices)} checks it.'


def _match_choice(given: str, choices: dict[str, str]) -> str:
    """Return the choice by its name (1 suffices for `rank 1`) or its text; "" if there is none."""
    words = _words(given)
    return next((c for c, text in choices.items() if words and words in (_words(c), _words(c)[1:], _words(text))), "")


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


@lru_cache(maxsize=1)
def questions() -> dict[str, NotebookQuestion]:
    """Return the questions of all notebooks, by name."""
    data = Path(__file__).with_name("answers.toml").read_bytes()
    return msgspec.toml.decode(data, type=dict[str, NotebookQuestion])
