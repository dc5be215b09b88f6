"""Finds many patterns in a text in time linear in its length, with the stdlib alone.

A pattern runs only if a literal that it needs occurs in the text; lines are clipped and
repeats are bounded (see `problem_of`), so hostile input can't make matching slow.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

LINE_LIMIT = 2_000
"""Characters of a line that are looked at; what is longer is cut."""
HITS_PER_PATTERN = 3
_MAX_REPEAT = 300
_UNBOUNDED = re.compile(r"(?<!\\)(?:[*+]|\{\d+,\})")
_SHORTEST_LITERAL = 3


class Hit(NamedTuple):
    """Where a pattern was seen."""

    key: str
    line: int
    """1-based line of the text."""
    start: int
    """Offset in the text, in characters."""
    words: str
    """The matched words."""


def problem_of(pattern: str) -> str:
    """Why a pattern may not be used, or '' if it may: the linear-time subset, with a literal."""
    if re.search(r"\(\?<?[=!]|\(\?P=|\\[1-9]", pattern):
        return "no look-around and no back-references"
    if re.search(r"[)*+}][*+{]", re.sub(r"\\.|\[[^\]]*\]", "x", pattern)):
        return "no repeated groups or nested repeats"
    outside = re.sub(r"\\.", "x", re.sub(r"\\[dswDSW]", "x", pattern))
    for found in re.finditer(r"(\.|\]|x)([*+])", outside):
        return f"bound the repeat: {found.group(1)}{{0,80}} in place of {found.group(0)}"
    if any(int(n) > _MAX_REPEAT for n in re.findall(r"\{\d*,?(\d+)\}", pattern)):
        return f"a repeat of at most {_MAX_REPEAT}"
    try:
        re.compile(pattern)
    except re.error as error:
        return f"not a regular expression: {error}"
    if not all(literals(pattern)):
        return f"needs a literal of {_SHORTEST_LITERAL} or more letters outside optional parts"
    return ""


@lru_cache(maxsize=8192)
def literals(pattern: str) -> tuple[str, ...]:
    """For each top-level alternative, the longest lower-case literal that a match must contain.

    An alternative without one gives ''. Understands what `problem_of` lets through.
    """
    return tuple(_longest_run(branch) for branch in _branches(pattern))


def _branches(pattern: str) -> list[str]:
    branches, depth, begin, i = [], 0, 0, 0
    while i < len(pattern):
        c = pattern[i]
        if c == "\\":
            i += 1
        elif c == "[":
            i = _class_end(pattern, i)
        elif c == "(":
            depth += 1
        elif c == ")":
            depth -= 1
        elif c == "|" and depth == 0:
            branches.append(pattern[begin:i])
            begin = i + 1
        i += 1
    return [*branches, pattern[begin:]]


def _class_end(pattern: str, i: int) -> int:
    """Index of the `]` that closes the class opened at `i`."""
    j = i + 2 if pattern[i + 1 : i + 2] != "^" else i + 3
    while j < len(pattern) and pattern[j] != "]":
        j += 2 if pattern[j] == "\\" else 1
    return j


def _longest_run(branch: str) -> str:
    best, run, depth, i = "", "", 0, 0

    def close() -> None:
        nonlocal best, run
        if len(run) > len(best):
            best = run
        run = ""

    while i < len(branch):
        c = branch[i]
        if c == "\\":
            escaped = branch[i + 1 : i + 2]
            i += 2
            if depth == 0 and not escaped.isalnum():
                run += escaped
            else:
                close()
            continue
        if c == "[":
            close()
            i = _class_end(branch, i) + 1
            continue
        if c in "()":
            close()
            depth += 1 if c == "(" else -1
        elif c in "?*{":
            run = run[:-1]
            close()
            if c == "{":
                i = branch.find("}", i)
        elif c in ".^$+|":
            close()
        elif depth == 0:
            run += c.lower()
        i += 1
    close()
    return best if len(best) >= _SHORTEST_LITERAL else ""


class Matcher:
    """A fixed set of (key, pattern) pairs, applied to one text after another."""

    def __init__(self, patterns: Iterable[tuple[str, str]]) -> None:
        self._rows = [(key, pattern, literals(pattern)) for key, pattern in patterns]

    def hits(self, text: str) -> Iterator[Hit]:
        """Hits in no particular order, at most `HITS_PER_PATTERN` for each pattern."""
        text = clip_lines(text)
        lower = text.lower()
        if len(lower) != len(text):  # some letters grow when lowered: keep offsets true
            lower = text = lower
        seen: dict[str, bool] = {}
        starts: list[int] | None = None
        for key, pattern, needed in self._rows:
            for literal in needed:
                found = seen.get(literal)
                if found is None:
                    found = seen[literal] = literal in lower
                if found:
                    break
            else:
                continue
            for number, match in enumerate(_compiled(pattern).finditer(text), 1):
                if starts is None:
                    starts = [0, *(m.end() for m in re.finditer("\n", text))]
                yield Hit(key, bisect_right(starts, match.start()), match.start(), match.group(0))
                if number == HITS_PER_PATTERN:
                    break


def clip_lines(text: str) -> str:
    """The text with each line cut to `LINE_LIMIT` characters; line numbers stay as they were."""
    if len(text) <= LINE_LIMIT:
        return text
    return re.sub(rf"([^\n]{{{LINE_LIMIT}}})[^\n]+", r"\1", text)


@lru_cache(maxsize=8192)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE)
