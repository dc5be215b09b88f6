"""Word at a place of a line: a name, variable, option or code, and whether in code, string or comment."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from dtdebug_taxonomy.source.text import Span, Text

CHECK = re.compile(r"\bDT\d{3}\b")
SYMPTOM = re.compile(r"(?<![\w.])[A-D]\.\d(?:\.\d{1,2})?(?![\w.]*\w)")
_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Za-z0-9]+)*\b")
_PART = re.compile(
    r"(?P<comment>#|//(?!/))"
    r"|(?P<string>\"\"\"(?:[^\"\\]|\\.|\"(?!\"\"))*(?:\"\"\"|$)|'''(?:[^'\\]|\\.|'(?!''))*(?:'''|$)"
    r"|\"(?:[^\"\\]|\\.)*(?:\"|$)|'(?:[^'\\]|\\.)*(?:'|$))"
)
_LONGEST = 2_000
"""Maximum number of characters of a line to inspect; longer lines are data."""

_LINES = 40
"""Maximum number of lines of one command to inspect."""

Part = Literal["code", "string", "comment"]


class Piece(NamedTuple):
    """Piece of a line."""

    text: str
    span: Span
    """Span in the whole text."""


class LineAt:
    """Line around an offset."""

    def __init__(self, text: Text, offset: int, *, slashes: bool = False) -> None:
        number = text.place(offset).line
        self.start = text.starts[number - 1]
        self.text = text.line(number)[:_LONGEST]
        self.at = offset - self.start
        self._slashes = slashes

    def part(self) -> Part:
        """Return the kind of text at the offset, judged by this line alone."""
        comment = comment_start(self.text, slashes=self._slashes)
        if comment is not None and self.at >= comment:
            return "comment"
        strings = (m for m in _PART.finditer(self.text) if m["string"])
        return "string" if any(m.start() < self.at < m.end() for m in strings) else "code"

    def _find(self, pattern: re.Pattern[str]) -> Piece | None:
        for found in pattern.finditer(self.text):
            if found.start() <= self.at <= found.end():
                return Piece(found[0], Span(self.start + found.start(), self.start + found.end()))
        return None

    def check(self) -> Piece | None:
        """Return the id of a check."""
        return self._find(CHECK)

    def symptom(self) -> Piece | None:
        """Return the code of a symptom."""
        return self._find(SYMPTOM)

    def option(self) -> Piece | None:
        """Return an option of a command: `--nproc-per-node`."""
        return self._find(_OPTION)

    def variable(self) -> Piece | None:
        """Return a name in capitals."""
        return self._find(_VARIABLE)

    def name(self) -> Piece | None:
        """Return a dotted name up to the part with the offset: for `dist.group.WORLD` maybe `dist.group`."""
        word = self._find(_NAME)
        if word is None:
            return None
        end = word.text.find(".", self.at + self.start - word.span.start)
        text = word.text if end < 0 else word.text[:end]
        last = len(text) - len(text.rpartition(".")[2])
        return Piece(text, Span(word.span.start + last, word.span.start + len(text)))

    def is_keyword(self, word: Piece) -> bool:
        """True if a name is followed by `=`, as the name of an argument is."""
        after = self.text[word.span.end - self.start :].lstrip()
        return after.startswith("=") and not after.startswith("==")


def command_before(text: Text, offset: int) -> str:
    """Return the text of the command up to a place, including earlier lines that end in a backslash."""
    first = text.place(offset).line
    for _ in range(_LINES):
        if first == 1 or not text.line(first - 1).rstrip().endswith("\\"):
            break
        first -= 1
    return text[text.starts[first - 1] : offset]


def comment_start(line: str, *, slashes: bool = False) -> int | None:
    """Return where a line's comment begins; `//` begins one in JSON only."""
    for found in _PART.finditer(line):
        if found["comment"] and (slashes or found["comment"] == "#"):
            return found.start()
    return None
