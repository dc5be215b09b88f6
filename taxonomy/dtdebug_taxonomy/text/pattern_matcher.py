"""Finds many patterns in a text in time linear in its length, using only Python's regular expressions.

A pattern runs only if a literal that it needs occurs in the text; lines are clipped and
repeats are bounded (see `problem_of`), so hostile input can't make matching slow.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from itertools import accumulate, islice
from typing import NamedTuple

import msgspec

LINE_LIMIT = 2_000
"""Maximum number of characters examined of a line; the rest is cut."""
HITS_PER_PATTERN = 3
LINES_PER_LITERAL = 48
"""Maximum number of lines examined per literal, from the beginning and from the end: logs repeat themselves."""
CHARACTERS_PER_LITERAL = 20_000
"""The same in characters, for logs of very long lines."""
_TRIES = 8
"""Maximum number of matches to skip in a line because they are within words, or cross the end of a sentence."""
_SENTENCE_ENDS = re.compile(r"(?<![ .]vs)(?<!i\.e)(?<!e\.g)(?<=[\w)\]'\"`%])[.!?]\s+(?=[A-Z\"'`(])")
_MAX_REPEAT = 300
_SHORTEST_LITERAL = 3
_GROUP = re.compile(r"^\?(?:[a-z-]*:|P<\w+>)")
"""Beginning of a group that is not text: `?:`, `?-i:`, `?P<name>`."""
_WORD = re.compile(r"[a-z]{3,}")
_LETTERS = bytes(c if c in b"abcdefghijklmnopqrstuvwxyz" else 32 for c in range(256))
"""Translation table that keeps the words of a text, separated by spaces."""


Needs = tuple[tuple[str, ...], ...]
"""Sets of literals; the line of any match contains one literal of each set."""


class PatternHit(NamedTuple):
    """Place where a pattern matched."""

    key: str
    """Evidence id, or `observation=value`."""
    line: int
    """1-based line of the text."""
    start: int
    """Offset in the text, in characters."""
    words: str
    """Matched words."""

    @property
    def is_of_value(self) -> bool:
        """True if it tells the value of an observation, not an indicator."""
        return "=" in self.key


@cache
def problem_of(pattern: str) -> str:
    """Return why a pattern is not allowed, or "" if it is: the linear-time subset, with a literal."""
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


def literals(pattern: str) -> tuple[str, ...]:
    """Return lower-case literals, one of which any match must contain; "" among them if there are none.

    Understands what `problem_of` lets through.
    """
    return needs(pattern)[0]


@lru_cache(maxsize=8192)
def needs(pattern: str) -> Needs:
    """Return sets of lower-case literals; any match contains one of each set. The most specific set comes first."""
    branches = [_required_literals(branch) for branch in _branches(pattern)]
    if len(branches) == 1 and branches[0]:
        return tuple(branches[0])
    found = [row[0] if row else ("",) for row in branches]
    return (tuple(dict.fromkeys(literal for row in found for literal in row)),)


def _branches(pattern: str) -> list[str]:
    """Return the alternatives of a pattern."""
    branches, depth, begin, i = [], 0, 0, 0
    while i < len(pattern):
        c = pattern[i]
        if c == "[":
            i = _class_end(pattern, i)
        elif c == "|" and depth == 0:
            branches.append(pattern[begin:i])
            begin = i + 1
        depth += (c == "(") - (c == ")")
        i += 2 if c == "\\" else 1
    return [*branches, pattern[begin:]]


def _class_end(pattern: str, i: int) -> int:
    """Return the index of the `]` that closes the class opened at `i`."""
    j = i + 2 if pattern[i + 1 : i + 2] != "^" else i + 3
    while j < len(pattern) and pattern[j] != "]":
        j += 2 if pattern[j] == "\\" else 1
    return j


def _group_end(pattern: str, i: int) -> int:
    """Return the index of the `)` that closes the group opened at `i`."""
    depth = 0
    while i < len(pattern):
        c = pattern[i]
        if c == "[":
            i = _class_end(pattern, i)
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return i
        i += 2 if c == "\\" else 1
    return i


def _required_literals(branch: str) -> list[tuple[str, ...]]:
    """Return sets of literals, best first; an alternative needs one of each: a run, or one per branch of a group."""
    candidates: list[tuple[str, ...]] = []
    run, i = "", 0
    while i < len(branch):
        c = branch[i]
        if c not in "\\[(.^$+?*{":
            run += c.lower()
        elif c == "\\" and not branch[i + 1 : i + 2].isalnum():
            i += 1
            run += branch[i : i + 1]
        else:
            if c in "?*{":  # the letter before may be absent
                run = run[:-1]
            candidates.append((run,))
            run = ""
            if c == "\\":
                i += 1
            elif c == "[":
                i = _class_end(branch, i)
            elif c == "{":
                i = branch.find("}", i)
            elif c == "(":
                end = _group_end(branch, i)
                if branch[end + 1 : end + 2] not in ("?", "*", "{"):
                    candidates.append(literals(_GROUP.sub("", branch[i + 1 : end])))
                i = end
        i += 1
    candidates.append((run,))
    long = [row for row in candidates if min(map(len, row)) >= _SHORTEST_LITERAL]
    return sorted(long, key=lambda row: (-min(map(len, row)), len(row)))


class Index(NamedTuple):
    """Serialised set of patterns; those of a literal are decoded when the literal occurs."""

    rows: dict[str, msgspec.Raw]
    """Literal -> the patterns for which it is the first to be searched, as `_Row`s."""
    literals: dict[str, msgspec.Raw]
    """Longest word of a literal -> the literals with it, each with its other words."""


_Row = tuple[str, str, bool, Needs]
"""Key, pattern, whether a match begins at the beginning of a word, and the other sets of literals its line needs."""
_Literal = tuple[str, list[str]]


def index_of(patterns: Iterable[tuple[str, str]], words: Iterable[tuple[str, str]] = ()) -> Index:
    """Build the index of (key, pattern) pairs.

    `words` are pairs whose matches begin at the beginning of a word: "load dies" is not in "offload dies".
    """
    rows: dict[str, list[_Row]] = {}
    for pairs, whole in (patterns, False), (words, True):
        for key, pattern in pairs:
            first, *others = needs(pattern)
            for literal in first:
                rows.setdefault(literal, []).append((key, pattern, whole, tuple(others)))
    literals: dict[str, list[_Literal]] = {}
    for literal in rows:
        letters = sorted(_WORD.findall(literal), key=len, reverse=True) or [""]
        literals.setdefault(letters[0], []).append((literal, letters[1:]))
    encode = msgspec.msgpack.encode
    return Index(
        {literal: msgspec.Raw(encode(row)) for literal, row in rows.items()},
        {word: msgspec.Raw(encode(row)) for word, row in literals.items()},
    )


class Matcher:
    """Fixed set of (key, pattern) pairs, applied to one text after another."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._rows = cache(self._read_rows)
        self._literals = cache(self._read_literals)

    def _read_rows(self, literal: str) -> list[_Row]:
        return msgspec.msgpack.decode(self._index.rows[literal], type=list[_Row])

    def _read_literals(self, word: str) -> list[_Literal]:
        return msgspec.msgpack.decode(self._index.literals[word], type=list[_Literal])

    def hits(self, text: str) -> Iterator[PatternHit]:
        """Yield hits in no particular order, at most `HITS_PER_PATTERN` for each pattern."""
        if not text:
            return
        text = clip_lines(text)
        lower = text.replace("\u0130", "i").lower()  # the one letter that grows when lowered: offsets stay correct
        starts: list[int] = []
        seen: set[tuple[str, tuple[int, int]]] = set()
        for literal in self._present(lower):
            lines = _lines_with(literal, lower)
            for name, regex, whole, others in self._rows(literal):
                near = [span for span in lines if _has(lower, span, others)] if others else lines
                if not near:
                    continue
                for match in islice(_matches(regex, text, near, whole=whole), HITS_PER_PATTERN):
                    starts = starts or list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))
                    if (name, match.span()) not in seen:
                        seen.add((name, match.span()))
                        yield PatternHit(name, bisect_right(starts, match.start()), match.start(), match.group(0))

    def _present(self, lower: str) -> list[str]:
        """Return the literals that occur, looked up first in the text's vocabulary, which is far shorter than a log."""
        words = set(lower.encode("ascii", "replace").translate(_LETTERS).split())
        vocabulary = b" ".join(words).decode()
        return [
            literal
            for word in self._index.literals
            if word in vocabulary
            for literal, others in self._literals(word)
            if all(other in vocabulary for other in others) and literal in lower
        ]


def _lines_with(literal: str, lower: str) -> list[tuple[int, int]]:
    """Return (begin, end) of the first and of the last lines that contain a literal."""
    spans: dict[tuple[int, int], None] = {}
    at, left = lower.find(literal), CHARACTERS_PER_LITERAL
    while at >= 0 and len(spans) < LINES_PER_LITERAL and left > 0:
        begin, end = _line_around(lower, at)
        spans[begin, end] = None
        left -= end - begin
        at = lower.find(literal, end + 1)
    at, first, left = lower.rfind(literal) if at >= 0 else -1, at, CHARACTERS_PER_LITERAL
    for _ in range(LINES_PER_LITERAL):
        if at < first or at < 0 or left <= 0:
            break
        begin, end = _line_around(lower, at)
        spans[begin, end] = None
        left -= end - begin
        at = lower.rfind(literal, 0, begin)
    return sorted(spans)


def _has(lower: str, span: tuple[int, int], wanted: Needs) -> bool:
    """True if a line contains one literal of each set, so that most patterns need not be compiled."""
    return all(any(lower.find(literal, *span) >= 0 for literal in row) for row in wanted)


def _line_around(text: str, at: int) -> tuple[int, int]:
    end = text.find("\n", at)
    return text.rfind("\n", 0, at) + 1, len(text) if end < 0 else end


def _matches(pattern: str, text: str, lines: Iterable[tuple[int, int]], *, whole: bool) -> Iterator[re.Match[str]]:
    """Yield the first match of a pattern in each of the lines; `whole`: of words, within a sentence.

    Such a match does not begin within a word, and does not cross the end of a sentence.
    """
    search = _compile_pattern(pattern).search
    for begin, end in lines:
        found = search(text, begin, end)
        if whole:
            found = _in_sentence(search, text, found, end)
        if found is not None:
            yield found


def _in_sentence(
    search: Callable[[str, int, int], re.Match[str] | None], text: str, found: re.Match[str] | None, end: int
) -> re.Match[str] | None:
    for _ in range(_TRIES):
        if found is None:
            return None
        at = found.start()
        if at > 0 and text[at - 1].isalpha() and text[at : at + 1].isalpha():
            found = search(text, at + 1, end)
        elif border := _SENTENCE_ENDS.search(text, at, found.end()):
            found = search(text, at, border.start() + 1) or search(text, border.end(), end)
        else:
            return found
    return None


def plain(text: str, most: int = 200) -> str:
    """Return the beginning of a text without characters that steer a terminal, or reorder or hide text."""
    return "".join(c if c.isprintable() else " " for c in text[:most])


def clip_lines(text: str) -> str:
    """Return the text with each line cut to `LINE_LIMIT` characters; line numbers do not change."""
    if len(text) <= LINE_LIMIT:
        return text
    return "\n".join(line[:LINE_LIMIT] for line in text.split("\n"))


@lru_cache(maxsize=8192)
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE)
