"""Splits shell text into commands with exact places; unreadable parts are in `unread`, with place and reason."""

from __future__ import annotations

import re

from dtdebug_taxonomy.source.shell.commands import Arm, Command, Heredoc, Word
from dtdebug_taxonomy.source.shell.words import BLANK, DEEPEST, Words
from dtdebug_taxonomy.source.source import UnreadPart
from dtdebug_taxonomy.source.text import Span

_VARIABLE = re.compile(r"(?<!\\)\$\{?([A-Za-z_]\w*)")
_TAKES_ASSIGNMENTS = frozenset({"export", "declare", "typeset", "local", "readonly", "env"})
_LEADS = frozenset({"if", "then", "else", "elif", "while", "until", "do", "!", "{", "}", "time", "fi", "done", "esac"})
_OPENS = {"if": "fi", "while": "done", "until": "done", "for": "done", "select": "done", "case": "esac", "{": "}"}
"""Word that opens a block -> the word that closes it."""
_CLOSES = frozenset(_OPENS.values())
_PARTS = frozenset({"then", "elif", "else", "do"})
_MOST_OPEN = 200
"""Maximum number of nested `if`, loops and brackets; no script has as many."""
_NO_ARGUMENTS = re.compile(r"\([ \t]*\)")
_TEST_ENDS = re.compile(r"\]\](?=[\s;&|)]|$)")
_RUNS_SHELL = re.compile(r"\b(?:bash|sh|zsh|ssh|pdsh|sbatch|qsub|bsub|su)\b|\.(?:sh|bash|sbatch|slurm)\b")
_RUNS_PYTHON = re.compile(r"\bpython[\d.]*\b|\.py\b")


class Lexer(Words):
    """Lexer of one span of a text; its results are in its attributes."""

    def __init__(self, text: str, span: Span | None = None, depth: int = 0) -> None:
        super().__init__(text, span, depth)
        self._waiting: list[tuple[str, bool, bool, str]] = []
        """Here-documents whose text follows: (last line, whether tabs may precede it, fixed, the command's line)."""
        self._joined = ""
        self._open: list[str] = []
        """Open blocks, by their closing words."""
        self._arms: list[Arm] = []
        """The same, by their current parts."""
        self._in_pattern = False
        """True within a pattern of a `case`, up to its bracket."""

    def read_nested(self, span: Span, until: str) -> Lexer:
        """Read shell text within the text."""
        return Lexer(self.text, span, self.depth + 1).run(until=until)

    def run(self, *, until: str = "") -> Lexer:
        """Read to the end, or to an `until` that closes nothing inside."""
        while self.at < self.end:
            char = self.text[self.at]
            if char == ")" and self._bracket(until):
                break
            if (blank := BLANK.match(self.text, self.at, self.end)) is not None:
                self.at = blank.end()
            elif char == "#":
                self.at = self._end_of_line()
            elif char in "\n\r":
                self.at += 1
                self._close("")
                if self._waiting:
                    self._bodies()
            elif char == "(":
                self._opening()
            elif char == "|" and self._in_pattern:
                self.at += 1
            elif char in ";&|":
                self._separator()
            elif char in "<>":
                self._redirection()
            elif char != ")":
                self._word()
                self._after_word()
        self._close("")
        for word, *_ in self._waiting:
            self._missing(self.end, f"the here-document that ends with {word[:40]} has no text")
        self.commands.sort(key=lambda c: c.span)
        return self

    # -- commands ---------------------------------------------------------------------------------

    def _begins(self) -> bool:
        """True if a command begins here: only words like `then` precede."""
        return all(a is None and w.text in _LEADS for w, a in self._words)

    def _after_word(self) -> None:
        """Update the state for the word that was just read."""
        word, assigned = self._words[-1] if self._words else (None, None)
        if word is None or assigned is not None or word.is_quoted:
            return
        texts = [w.text for w, _ in self._words]
        if texts[0] == "function" and len(texts) == 3 and texts[2] == "{":
            del self._words[:2]
        elif texts[-1] == "in" and len(texts) >= 3 and texts[-3] == "case":
            self._close("")
            self._in_pattern = True
        elif texts[-1] == "[[" and all(t in _LEADS for t in texts[:-1]):
            self._test()

    def _test(self) -> None:
        """Skip `[[ ... ]]`, in which `<`, `(` and `&&` are not shell text."""
        start = self.at
        while self.at < self.end:
            if (blank := BLANK.match(self.text, self.at, self.end)) is not None:
                self.at = blank.end()
            elif _TEST_ENDS.match(self.text, self.at, self.end):
                self.at += 2
                return
            elif self.text[self.at] in "\n\r;&|()<>":
                self.at += 1
            else:
                self._word()
        self._missing(start, "`[[` has no `]]`")

    def _close(self, joined: str) -> None:
        """End the current command; `joined` leads to the next one."""
        words, self._words = self._words, []
        while words and words[0][0].text in _LEADS and words[0][1] is None:
            self._nest(words.pop(0)[0].text)
        if words:
            if words[0][0].text == "function":
                return
            self._nest(words[0][0].text)
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
                    tuple(self._arms),
                )
            )
        if words or joined:
            self._joined = joined

    def _nest(self, word: str) -> None:
        if word in _OPENS:
            self._enter(word, _OPENS[word])
        elif word in _PARTS:
            self._part(word)
        elif word in _CLOSES and word in self._open:
            self._leave(word)
            self._in_pattern = False

    def _enter(self, word: str, end: str) -> None:
        if len(self._open) < _MOST_OPEN:
            self._arms.append(Arm(self.at * _MOST_OPEN + len(self._open), word))
            self._open.append(end)

    def _part(self, name: str) -> None:
        if self._arms:
            self._arms[-1] = self._arms[-1]._replace(part=name, number=self._arms[-1].number + 1)

    def _leave(self, end: str) -> None:
        while self._open.pop() != end:
            pass
        del self._arms[len(self._open) :]

    def _opening(self) -> None:
        """Read `(`: of a pattern, a function, an arithmetic expression or a subshell."""
        text = self.text
        if self._in_pattern and not self._words:
            self.at += 1
        elif self._words and (empty := _NO_ARGUMENTS.match(text, self.at, self.end)):
            self._words.clear()
            self.at = empty.end()
        elif text.startswith("((", self.at) and self._sums():
            return
        else:
            self._close("")
            self._enter("(", ")")
            self.at += 1

    def _sums(self) -> bool:
        """Read `((i < 3))` or `for ((i = 0; i < 3; i++))`; True if it is one."""
        if not (self._begins() or [w.text for w, _ in self._words[-1:]] == ["for"]):
            return False
        stop = self._sum(self.at)
        if stop:
            self._words.append((Word(Span(self.at, stop), self.text[self.at : stop], Span(self.at, stop)), None))
            self.at = stop
        return bool(stop)

    def _bracket(self, until: str) -> bool:
        """Read `)`, the end of a pattern or subshell; True if it is an `until` that closes nothing inside."""
        if [w.text for w, _ in self._words] == ["esac"]:
            self._close("")
        if self._in_pattern:
            self._part("|".join(word.text for word, _ in self._words))
            self._words.clear()
            self._in_pattern = False
        elif ")" in self._open:
            self._close("")
            self._leave(")")
        elif until == ")":
            return True
        else:
            self._close("")
        self.at += 1
        return False

    def _separator(self) -> None:
        char = self.text[self.at]
        if self.text.startswith("&>", self.at):
            self.at += 1
            self._redirection()
            return
        doubled = char in "&|;" and self.text.startswith(char * 2, self.at)
        ends_case = char == ";" and (doubled or self.text.startswith(";&", self.at))
        self.at += 2 if doubled or ends_case else 1
        joins = {"|": "|", "||": "||", "&&": "&&"}
        self._close(joins.get(char * 2 if doubled else char, ""))
        if ends_case and "esac" in self._open:
            self.at += self.text.startswith("&", self.at)
            self._in_pattern = True

    # -- redirections -----------------------------------------------------------------------------

    def _redirection(self) -> None:
        """Skip `> file`, `2>&1`, `<<EOF`, `<<< word`, `<(command)`."""
        text = self.text
        if self._words and self._words[-1][0].span.end == self.at and self._words[-1][0].text.isdigit():
            self._words.pop()
        if text.startswith(("<(", ">("), self.at):
            self._read_nested(2, ")")
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
        if (blank := BLANK.match(text, self.at, self.end)) is not None:
            self.at = blank.end()
        if self.at < self.end and text[self.at] not in "\n\r;&|()<>#":
            before = len(self._words)
            self._word()
            del self._words[before:]

    def _heredoc(self) -> None:
        self.at += 2
        tabs = self.text.startswith("-", self.at)
        self.at += tabs
        if (blank := BLANK.match(self.text, self.at, self.end)) is not None:
            self.at = blank.end()
        start = self.at
        word = self._pieces()
        if word:
            begin = self._words[0][0].span.start if self._words else start
            line = self.text[max(begin, start - 300) : min(self._end_of_line(), start + 300)]
            fixed = any(c in self.text[start : self.at] for c in "'\"\\")
            self._waiting.append((word, tabs, fixed, line))

    def _bodies(self) -> None:
        """Skip the here-documents that begin here; those that are scripts themselves are read."""
        waiting, self._waiting = self._waiting, []
        for word, tabs, fixed, line in waiting:
            start = self.at
            indent = "\t*" if tabs else ""
            last = re.compile(rf"^{indent}{re.escape(word)}[ \t]*\r?$", re.MULTILINE)
            found = last.search(self.text, start, self.end)
            if found is None:
                self._missing(start, f"the here-document that ends with {word[:40]} has no end")
            body = Span(start, found.start() if found else self.end)
            self.at = found.end() if found else self.end
            self.heredocs.append(Heredoc(body, fixed))
            self._body(body, line, fixed=fixed)

    def _body(self, body: Span, line: str, *, fixed: bool) -> None:
        if (self.text.startswith("#!", body.start) or _RUNS_SHELL.search(line)) and self.depth < DEEPEST:
            self.take(Lexer(self.text, body, self.depth).run())
        elif _RUNS_PYTHON.search(line) and body.end > body.start:
            self.unread.append(UnreadPart(body, "a Python program in a here-document is not read"))
        elif not fixed:
            for read in _VARIABLE.finditer(self.text, *body):
                self.reads.append((read[1], Span(*read.span(1))))
