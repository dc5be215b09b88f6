"""Reads one word of shell text: quotes, expansions, arrays; an unclosed one is recorded, never ignored."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dtdebug_taxonomy.source.shell.commands import Assignment, Heredoc, Word
from dtdebug_taxonomy.source.source import UnreadPart
from dtdebug_taxonomy.source.text import Span

if TYPE_CHECKING:
    from dtdebug_taxonomy.source.shell.commands import Command

_PLAIN = re.compile(r"[^\s'\"\\$`;&|()<>]+")
_IN_QUOTES = re.compile(r"[^\"\\$`]+")
_IN_BRACES = re.compile(r"[^'\"\\$`}]+")
_ANSI = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_BACKTICKS = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL)
BLANK = re.compile(r"(?:[^\S\n\r]|\\\r?\n)+")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_NAME = re.compile(r"([A-Za-z_]\w*)(?:\[[^\]\s]*\])?(\+?)=")
_VARIABLE = re.compile(r"\$(?:\{[#!]?)?([A-Za-z_]\w*)")
_OTHER_VARIABLE = re.compile(r"\$\{?[#!]?[\d@*#?$!_-]")
"""Arguments, and variables that the shell itself sets: `$1`, `${@:2}`, `$?`."""
_GLOBS = "@!?+*"
"""Characters after which `(` begins a pattern: `!(a|b)`."""
_BRACKETS = re.compile(r"[()]")
_LONGEST_SUM = 600
"""Longest arithmetic expression in characters; a longer `((` is parsed as two parentheses."""
DEEPEST = 20


class Words:
    """Position in a text, and what was found up to it."""

    def __init__(self, text: str, span: Span | None = None, depth: int = 0) -> None:
        self.text = text
        self.at, self.end = span or (0, len(text))
        self.depth = depth
        self.commands: list[Command] = []
        self.heredocs: list[Heredoc] = []
        self.reads: list[tuple[str, Span]] = []
        """Expanded variables, with the place of their names."""
        self.unread: list[UnreadPart] = []
        """Unclosed or too deeply nested parts: the rest of the text may have a different meaning."""
        self._words: list[tuple[Word, Assignment | None]] = []
        self._in_array = False
        """True within an array, since arrays do not nest."""

    def read_nested(self, span: Span, until: str) -> Words:
        """Read shell text within the text, up to an `until` that closes nothing inside."""
        raise NotImplementedError

    def _missing(self, start: int, what: str) -> None:
        self.unread.append(UnreadPart(Span(start, self.end), what))

    def take(self, inner: Words) -> None:
        """Add what was found in a part."""
        self.commands += inner.commands
        self.heredocs += inner.heredocs
        self.reads += inner.reads
        self.unread += inner.unread

    def _end_of_line(self) -> int:
        found = self.text.find("\n", self.at, self.end)
        return self.end if found < 0 else found

    def _word(self) -> None:
        start, pieces = self.at, self._pieces()
        if self.at == start:  # not the beginning of a word: skip it, so that the end is reached
            self.at += 1
            return
        span = Span(start, self.at)
        assigned = _NAME.match(self.text, start, self.at)
        if assigned is None:
            self._words.append((self._make_word(span, pieces), None))
            return
        value_at = assigned.end()
        items: tuple[Word, ...] = ()
        if self.at == value_at and self.text.startswith("(", self.at) and not self._in_array:
            items = self._array()
            pieces = self.text[start : self.at]
        value = self._make_word(Span(value_at, self.at), pieces[assigned.end() - start :])
        word = self._make_word(Span(start, self.at), pieces)
        name = Span(start, start + len(assigned[1]))
        self._words.append((word, Assignment(assigned[1], name, value, items, bool(assigned[2]))))

    def _make_word(self, span: Span, pieces: str) -> Word:
        quote, inner = self.text[span.start : span.start + 1], span
        if quote in {"'", '"'} and span.end - span.start >= 2 and self.text[span.end - 1] == quote:
            body = self.text[span.start + 1 : span.end - 1]
            if quote not in body:
                inner = Span(span.start + 1, span.end - 1)
        return Word(span, pieces, inner)

    def _array(self) -> tuple[Word, ...]:
        outer, self._words = self._words, []
        start, self._in_array = self.at, True
        self.at += 1
        while self.at < self.end and self.text[self.at] != ")":
            char = self.text[self.at]
            if char == "#":
                self.at = self._end_of_line()
            elif (blank := BLANK.match(self.text, self.at, self.end)) is not None:
                self.at = blank.end()
            elif char in "\n\r;&|(<>":
                self.at += 1
            else:
                self._word()
        if self.at >= self.end:
            self._missing(start, "an array has no closing bracket")
        self.at = min(self.at + 1, self.end)
        items, self._words, self._in_array = tuple(w for w, _ in self._words), outer, False
        return items

    def _pieces(self) -> str:
        """Return the text of a word from here on, without quotes."""
        text, found = self.text, list[str]()
        while self.at < self.end:
            char = text[self.at]
            if (plain := _PLAIN.match(text, self.at, self.end)) is not None:
                found.append(plain[0])
                self.at = plain.end()
            elif char == "\\":
                following = text[self.at + 1 : min(self.at + 3, self.end)]
                width = 3 if following == "\r\n" else 2
                if following[:1] not in {"\n", "\r"}:
                    found.append(following[:1])
                self.at = min(self.at + width, self.end)
            elif char == "'":
                found.append(self._single_quoted())
            elif char == '"':
                self._double_quoted(found)
            elif char in "$`":
                found.append(self._expansion())
            elif char == "(" and found and found[-1][-1:] in _GLOBS and found[-1]:
                found.append(self._glob())
            else:
                break
        return "".join(found)

    def _glob(self) -> str:
        """Read `(a|b)` after `@` and similar, up to its closing bracket on this line."""
        start, opened = self.at, 0
        stop = self._end_of_line()
        while self.at < stop:
            opened += {"(": 1, ")": -1}.get(self.text[self.at], 0)
            self.at += 1
            if not opened:
                break
        return self.text[start : self.at]

    def _single_quoted(self) -> str:
        start = self.at
        stop = self.text.find("'", start + 1, self.end)
        if stop < 0:  # up to the end of the line: it may still be being typed
            self._missing(start, "a quote has no end")
            self.at = self._end_of_line()
            return self.text[start + 1 : self.at]
        self.at = stop + 1
        return self.text[start + 1 : stop]

    def _double_quoted(self, found: list[str]) -> None:
        text, start = self.text, self.at
        self.at += 1
        while self.at < self.end and text[self.at] != '"':
            char = text[self.at]
            if char == "\\":
                following = text[self.at + 1 : min(self.at + 2, self.end)]
                found.append("" if following == "\n" else following if following in {"$", "`", '"', "\\"} else char)
                self.at += 2 if following in {"$", "`", '"', "\\", "\n"} else 1
            elif char in "$`":
                found.append(self._expansion(quoted=True))
            elif (plain := _IN_QUOTES.match(text, self.at, self.end)) is not None:
                found.append(plain[0])
                self.at = plain.end()
        if self.at >= self.end:
            self._missing(start, "a quote has no end")
        self.at = min(self.at + 1, self.end)

    # -- expansions -------------------------------------------------------------------------------

    def _expansion(self, *, quoted: bool = False) -> str:
        """Read `$NAME`, `${NAME...}`, `$(...)`, `` `...` `` as written; `$'...'` as its value."""
        text, start = self.text, self.at
        if text[start] == "`":
            self._backticks()
        elif text.startswith("${{", start):  # not the shell's: `${{ matrix.gpus }}` of a workflow
            stop = text.find("}}", start, self.end)
            self.at = self.end if stop < 0 else stop + 2
        elif text.startswith("$((", start) and (stop := self._sum(start + 1)):
            self.at = stop
        elif text.startswith("$(", start):
            self._read_nested(2, ")")
        elif not quoted and (ansi := _ANSI.match(text, start, self.end)) is not None:
            self.at = ansi.end()
            return ansi[1]
        elif (variable := _VARIABLE.match(text, start, self.end)) is not None:
            self.reads.append((variable[1], Span(*variable.span(1))))
            self.at = variable.end()
            if text.startswith("${", start):
                self._braces(start, quoted=quoted)
        elif (other := _OTHER_VARIABLE.match(text, start, self.end)) is not None:
            self.at = other.end()
            if text.startswith("${", start):
                self._braces(start, quoted=quoted)
        else:
            self.at += 1
        return text[start : self.at]

    def _backticks(self) -> None:
        start = self.at
        found = _BACKTICKS.match(self.text, start, self.end)
        if found is None:
            self._missing(start, "a ` has no second one")
        stop = found.end() - 1 if found else self.end
        if self.depth < DEEPEST:
            self.take(self.read_nested(Span(start + 1, stop), ""))
        self.at = min(stop + 1, self.end)

    def _sum(self, start: int) -> int:
        """Return the end of the `((...))` that begins here; 0 if it is two separate brackets."""
        opened = 0
        for bracket in _BRACKETS.finditer(self.text, start, min(self.end, start + _LONGEST_SUM)):
            opened += 1 if bracket[0] == "(" else -1
            if opened == 0:
                at = bracket.start()
                if self.text[at - 1] != ")":
                    return 0
                for read in _IDENTIFIER.finditer(self.text, start, at):
                    self.reads.append((read[0], Span(*read.span())))
                return at + 1
        return 0

    def _read_nested(self, skip: int, close: str) -> None:
        start = self.at
        if self.depth >= DEEPEST:
            self._missing(start, "commands are nested too deep")
            self.at += skip
            return
        inner = self.read_nested(Span(self.at + skip, self.end), close)
        self.take(inner)
        if inner.at >= self.end:
            self._missing(start, f"`{self.text[start : start + skip]}` has no closing bracket")
        self.at = min(inner.at + 1, self.end)

    def _braces(self, start: int, *, quoted: bool) -> None:
        """Read up to the `}` that ends `${`, including its content."""
        text, ends = self.text, [quoted]
        while self.at < self.end and ends:
            char = text[self.at]
            if (plain := _IN_BRACES.match(text, self.at, self.end)) is not None:
                self.at = plain.end()
            elif char == "}":
                ends.pop()
                self.at += 1
            elif char == "\\":
                self.at = min(self.at + 2, self.end)
            elif char == '"':
                self._double_quoted([])
            elif char == "'":
                if ends[-1]:
                    self.at += 1
                else:
                    self._single_quoted()
            elif (inner := _VARIABLE.match(text, self.at, self.end)) and text.startswith("${", self.at):
                self.reads.append((inner[1], Span(*inner.span(1))))
                self.at = inner.end()
                ends.append(ends[-1])
            elif text.startswith("${", self.at):
                self.at += 2
                ends.append(ends[-1])
            else:
                self._expansion(quoted=quoted)
        if ends:
            self._missing(start, "`${` has no closing bracket")
