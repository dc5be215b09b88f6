"""Cuts shell text into commands with exact places; any text gives an answer, right for what is usual in scripts."""

from __future__ import annotations

import re

from dtdebug_taxonomy.source.commands import Assignment, Command, Heredoc, Word
from dtdebug_taxonomy.source.text import Span

_PLAIN = re.compile(r"[^\s'\"\\$`;&|()<>]+")
_IN_QUOTES = re.compile(r"[^\"\\$`]+")
_BLANK = re.compile(r"(?:[^\S\n\r]|\\\r?\n)+")
_HEREDOC = re.compile(r"<<(-?)[ \t]*(['\"\\]?)([\w.!+-]+)['\"]?")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_NAME = re.compile(r"([A-Za-z_]\w*)(?:\[[^\]\s]*\])?(\+?)=")
_VARIABLE = re.compile(r"\$(?:\{[#!]?)?([A-Za-z_]\w*)")
_TAKES_ASSIGNMENTS = frozenset({"export", "declare", "typeset", "local", "readonly", "env"})
_OPENS = frozenset({"if", "case", "for", "while", "until", "select", "{"})
_CLOSES = frozenset({"fi", "esac", "done", "}"})
_LEADS = frozenset({"if", "then", "else", "elif", "while", "until", "do", "!", "{", "}", "time", "fi", "done", "esac"})
_DEEPEST = 20


class Lexer:
    """Reads one span of a text; what it finds is in its attributes."""

    def __init__(self, text: str, span: Span | None = None, depth: int = 0) -> None:
        self.text = text
        self.at, self.end = span or (0, len(text))
        self.depth = depth
        self.commands: list[Command] = []
        self.heredocs: list[Heredoc] = []
        self.reads: list[tuple[str, Span]] = []
        """Variables that are put in, with the place of their names."""
        self._words: list[tuple[Word, Assignment | None]] = []
        self._waiting: list[tuple[str, bool, bool]] = []
        self._joined = ""
        self._branch = 0

    def run(self, *, until: str = "") -> Lexer:
        """Reads to the end, or to the `until` that belongs to nothing inside."""
        while self.at < self.end:
            char = self.text[self.at]
            if char == until:
                break
            if (blank := _BLANK.match(self.text, self.at, self.end)) is not None:
                self.at = blank.end()
            elif char == "#":
                self.at = self._end_of_line()
            elif char in "\n\r":
                self.at += 1
                self._close("")
                if self._waiting:
                    self._bodies()
            elif char in ";&|()":
                self._separator()
            elif char in "<>":
                self._redirection()
            else:
                self._word()
        self._close("")
        self.commands.sort(key=lambda c: c.span)
        return self

    def _end_of_line(self) -> int:
        found = self.text.find("\n", self.at, self.end)
        return self.end if found < 0 else found

    # -- commands ---------------------------------------------------------------------------------

    def _close(self, joined: str) -> None:
        """Ends the command that is being read; `joined` leads to the next one."""
        words, self._words = self._words, []
        while words and words[0][0].text in _LEADS and words[0][1] is None:
            lead = words.pop(0)[0].text
            self._branch += (lead in _OPENS) - (lead in _CLOSES)
        if words:
            name = words[0][0].text
            if name in _OPENS:
                self._branch += 1
            leading = next((i for i, (_, a) in enumerate(words) if a is None), len(words))
            assignments = [a for _, a in words[:leading] if a]
            rest = words[leading:]
            if rest and rest[0][0].text in _TAKES_ASSIGNMENTS:
                assignments += [a for _, a in rest if a]
            self.commands.append(
                Command(
                    Span(words[0][0].span.start, words[-1][0].span.end),
                    tuple(assignments),
                    tuple(w for w, _ in rest),
                    self._joined,
                    self.depth,
                    max(0, self._branch),
                )
            )
        if words or joined:
            self._joined = joined

    def _separator(self) -> None:
        char = self.text[self.at]
        if self.text.startswith("&>", self.at):
            self.at += 1
            self._redirection()
            return
        doubled = char in "&|;" and self.text.startswith(char * 2, self.at)
        self.at += 2 if doubled else 1
        joins = {"|": "|", "||": "||", "&&": "&&"}
        self._close(joins.get(char * 2 if doubled else char, ""))

    def _redirection(self) -> None:
        """`> file`, `2>&1`, `<<EOF`, `<<< word`, `<(command)`."""
        text = self.text
        if self._words and self._words[-1][0].span.end == self.at and self._words[-1][0].text.isdigit():
            self._words.pop()
        if text.startswith(("<(", ">("), self.at):
            self.at += 1
            self._nested(1, ")")
            return
        if text.startswith("<<<", self.at):
            self.at += 3
        elif text.startswith("<<", self.at):
            self._heredoc()
            return
        else:
            self.at += 1
            while self.at < self.end and text[self.at] in ">&|":
                self.at += 1
        if (blank := _BLANK.match(text, self.at, self.end)) is not None:
            self.at = blank.end()
        if self.at < self.end and text[self.at] not in "\n\r;&|()<>#":
            before = len(self._words)
            self._word()
            del self._words[before:]

    def _heredoc(self) -> None:
        found = _HEREDOC.match(self.text, self.at, self.end)
        if found is None:
            self.at += 2
            return
        self.at = found.end()
        self._waiting.append((found[3], bool(found[1]), bool(found[2])))

    def _bodies(self) -> None:
        """Passes over the texts whose first line begins here; one that is a script itself is read as such."""
        waiting, self._waiting = self._waiting, []
        for word, tabs, quoted in waiting:
            start = self.at
            indent = "\t*" if tabs else ""
            last = re.compile(rf"^{indent}{re.escape(word)}[ \t]*\r?$", re.MULTILINE)
            found = last.search(self.text, start, self.end)
            stop = found.start() if found else self.end
            self.at = found.end() if found else self.end
            self.heredocs.append(Heredoc(Span(start, stop), quoted))
            if self.text.startswith("#!", start) and self.depth < _DEEPEST:
                self._take(Lexer(self.text, Span(start, stop), self.depth).run())
            elif not quoted:
                for read in _VARIABLE.finditer(self.text, start, stop):
                    self.reads.append((read[1], Span(*read.span(1))))

    def _take(self, inner: Lexer) -> None:
        self.commands += inner.commands
        self.heredocs += inner.heredocs
        self.reads += inner.reads

    # -- words ------------------------------------------------------------------------------------

    def _word(self) -> None:
        start, pieces = self.at, self._pieces()
        if self.at == start:  # nothing that begins a word: passed over, so that the end is reached
            self.at += 1
            return
        span = Span(start, self.at)
        assigned = _NAME.match(self.text, start, self.at)
        if assigned is None:
            self._words.append((self._made(span, pieces), None))
            return
        value_at = assigned.end()
        items: tuple[Word, ...] = ()
        if self.at == value_at and self.text.startswith("(", self.at):
            items = self._array()
            pieces = self.text[start : self.at]
        value = self._made(Span(value_at, self.at), pieces[assigned.end() - start :])
        word = self._made(Span(start, self.at), pieces)
        name = Span(start, start + len(assigned[1]))
        self._words.append((word, Assignment(assigned[1], name, value, items, bool(assigned[2]))))

    def _made(self, span: Span, pieces: str) -> Word:
        quote, inner = self.text[span.start : span.start + 1], span
        if quote in {"'", '"'} and span.end - span.start >= 2 and self.text[span.end - 1] == quote:
            body = self.text[span.start + 1 : span.end - 1]
            if quote not in body:
                inner = Span(span.start + 1, span.end - 1)
        return Word(span, pieces, inner)

    def _array(self) -> tuple[Word, ...]:
        outer, self._words = self._words, []
        self.at += 1
        while self.at < self.end and self.text[self.at] != ")":
            char = self.text[self.at]
            if char == "#":
                self.at = self._end_of_line()
            elif (blank := _BLANK.match(self.text, self.at, self.end)) is not None:
                self.at = blank.end()
            elif char in "\n\r;&|(<>":
                self.at += 1
            else:
                self._word()
        self.at = min(self.at + 1, self.end)
        items, self._words = tuple(w for w, _ in self._words), outer
        return items

    def _pieces(self) -> str:
        """The text of a word from here on, without quotes."""
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
                stop = text.find("'", self.at + 1, self.end)
                stop = self._end_of_line() if stop < 0 else stop
                found.append(text[self.at + 1 : stop])
                self.at = min(stop + 1, self.end) if text[stop : stop + 1] == "'" else stop
            elif char == '"':
                self._double_quoted(found)
            elif char in "$`":
                found.append(self._expansion())
            else:
                break
        return "".join(found)

    def _double_quoted(self, found: list[str]) -> None:
        text = self.text
        self.at += 1
        while self.at < self.end and text[self.at] != '"':
            char = text[self.at]
            if char == "\\":
                following = text[self.at + 1 : min(self.at + 2, self.end)]
                found.append("" if following == "\n" else following if following in {"$", "`", '"', "\\"} else char)
                self.at += 2 if following in {"$", "`", '"', "\\", "\n"} else 1
            elif char in "$`":
                found.append(self._expansion())
            elif (plain := _IN_QUOTES.match(text, self.at, self.end)) is not None:
                found.append(plain[0])
                self.at = plain.end()
        self.at = min(self.at + 1, self.end)

    def _expansion(self) -> str:
        """`$NAME`, `${NAME...}`, `$(...)`, `` `...` `` as they are written."""
        text, start = self.text, self.at
        if text[start] == "`":
            stop = text.find("`", start + 1, self.end)
            stop = self.end if stop < 0 else stop
            if self.depth < _DEEPEST:
                self._take(Lexer(text, Span(start + 1, stop), self.depth + 1).run())
            self.at = min(stop + 1, self.end)
        elif text.startswith("$((", start):
            stop = text.find("))", start, self.end)
            self.at = self.end if stop < 0 else stop + 2
            for read in _IDENTIFIER.finditer(text, start, self.at):
                self.reads.append((read[0], Span(*read.span())))
        elif text.startswith("$(", start):
            self._nested(2, ")")
        elif (variable := _VARIABLE.match(text, start, self.end)) is not None:
            self.reads.append((variable[1], Span(*variable.span(1))))
            self.at = variable.end()
            if text.startswith("${", start):
                self._braces()
        else:
            self.at += 1
            if text.startswith("{", self.at):
                self._braces()
        return text[start : self.at]

    def _nested(self, skip: int, close: str) -> None:
        if self.depth >= _DEEPEST:
            self.at += skip
            return
        inner = Lexer(self.text, Span(self.at + skip, self.end), self.depth + 1).run(until=close)
        self._take(inner)
        self.at = min(inner.at + 1, self.end)

    def _braces(self) -> None:
        """Goes to the `}` that ends `${`."""
        opened = 1
        while self.at < self.end and opened:
            opened += {"{": 1, "}": -1}.get(self.text[self.at], 0)
            self.at += 1
