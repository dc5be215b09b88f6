"""Syntax of newer releases of Python, written in that of 3.11 with every character in its place.

What the checks look at keeps its line and column: type parameters become blanks, `type X = ...` an assignment, the
exceptions of an `except` without parentheses a union, and strings within f-strings get quotes that 3.11 accepts there.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"#[^\n]*"
    r"|(?<!\w)(?P<prefix>(?i:[rbu]|br|rb|[ft]r?|r[ft])?)(?P<quote>\"\"\"|'''|\"|')"
    r"|(?<![\w.])(?P<word>def|class|type|except)(?=[ \t(])"
)
_NAME = re.compile(r"[ \t]+[^\W\d]\w*[ \t]*")
_ALIAS = re.compile(r"[ \t]+[^\W\d]\w*[ \t]*(?P<parameters>\[)?")
_VALUE = re.compile(r"[ \t]*=(?!=)")
_HANDLED = re.compile(r"[ \t]+(?P<types>[\w.]+([ \t]*,[ \t]*[\w.]+)+)[ \t]*:")
_PYTHON_2 = re.compile(r",[ \t]*[a-z_]\w*$")
_PLAIN = {
    '"""': re.compile(r"(?:[^\\\"]|\\.|\"(?!\"\"))*", re.DOTALL),
    "'''": re.compile(r"(?:[^\\']|\\.|'(?!''))*", re.DOTALL),
    '"': re.compile(r"(?:[^\\\"\n]|\\.)*", re.DOTALL),
    "'": re.compile(r"(?:[^\\'\n]|\\.)*", re.DOTALL),
}
"""Content of a string, by its quotes."""
_BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_DEEPEST = 5
"""Maximum depth of f-strings in one another."""
_WIDEST, _LONGEST = 200, 2_000
"""Maximum number of characters of an indentation, and of a list of type parameters."""


class _UnfinishedError(ValueError):
    """String that does not end, or another text that is not Python of any release."""


def in_older_syntax(text: str) -> str:
    """Return a program of the same length for a parser of Python 3.11; unchanged where that is not possible."""
    rewriter = _Rewriter(text)
    try:
        rewriter.program()
    except (_UnfinishedError, RecursionError):
        return text
    return "".join(rewriter.out)


class _Rewriter:
    """Text that is rewritten in place."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.out = list(text)

    def program(self) -> None:
        """Rewrite the whole text."""
        at = 0
        while (found := _TOKEN.search(self.text, at)) is not None:
            at = found.end()
            if found["quote"]:
                at = self._string(found, ())
            elif found["word"] in {"def", "class"}:
                self._blank_parameters(_NAME.match(self.text, at))
            elif found["word"] and self._begins_statement(found.start()):
                self._statement(found["word"], at)

    def _begins_statement(self, at: int) -> bool:
        before = self.text[max(0, at - _WIDEST) : at].rstrip(" \t")
        return before[-1:] in {"\n", ";", ":"} or (not before and at < _WIDEST)

    def _statement(self, word: str, at: int) -> None:
        if word == "type":
            self._alias(at)
        elif (handled := _HANDLED.match(self.text, at)) and not _PYTHON_2.search(handled["types"]):
            self.out[at : handled.end()] = handled[0].replace(",", "|")

    def _blank_parameters(self, name: re.Match[str] | None) -> None:
        """Blank the type parameters after a name, if they are on one line."""
        start = name.end() if name is not None else len(self.text)
        if self.text[start : start + 1] == "[" and (end := self._closing(start)):
            self.out[start:end] = " " * (end - start)

    def _closing(self, start: int) -> int:
        """Return the position after the bracket that closes the one at a position; 0 if it is not on this line."""
        depth = 0
        for at in range(start, min(len(self.text), start + _LONGEST)):
            character = self.text[at]
            if character == "\n":
                return 0
            depth += _BRACKETS.get(character, 0)
            if depth == 0:
                return at + 1
        return 0

    def _alias(self, at: int) -> None:
        name = _ALIAS.match(self.text, at)
        if name is None:
            return
        opening = name.start("parameters")
        end = self._closing(opening) if opening >= 0 else name.end()
        if end and _VALUE.match(self.text, end):
            self.out[at] = ";"
            if opening >= 0:
                self.out[opening:end] = " " * (end - opening)

    def _string(self, found: re.Match[str], around: tuple[str, ...]) -> int:
        """Rewrite a string, given the quotes of the f-strings around it; return the position after it."""
        start, quote, kind = found.start(), found["quote"], found["prefix"].lower()
        is_formatted = "f" in kind or "t" in kind
        if "t" in kind:  # a template's text is read as an f-string's
            self.out[start : found.start("quote")] = found["prefix"].replace("t", "f").replace("T", "F")
        free = self._free_quote(quote, around)
        if is_formatted and len(around) < _DEEPEST:
            end = self._read_formatted(found.end(), quote, (*around, free or quote))
        else:
            end = self._plain(found.end(), quote, within=bool(around), free=free)
        if around and not free:  # no quote is left: a name of the same length
            self.out[start:end] = "_" * (end - start)
        elif free != quote:
            self.out[found.start("quote") : found.end()] = free
            self.out[end - len(quote) : end] = free
        return end

    def _free_quote(self, quote: str, around: tuple[str, ...]) -> str:
        """Return quotes of the same length that end none of the f-strings around; empty if there are none."""
        for character in (quote[0], *"\"'"):
            if all(q[0] != character or len(q) > len(quote) for q in around):
                return str(character * len(quote))
        return ""

    def _plain(self, at: int, quote: str, *, within: bool, free: str) -> int:
        """Skip a string; within an f-string, replace the characters that 3.11 refuses there."""
        content = _PLAIN[quote].match(self.text, at)
        end = content.end() if content is not None else at
        if self.text[end : end + len(quote)] != quote:
            raise _UnfinishedError
        if within:
            self.out[at:end] = ["_" if c in {"\\", free[:1], "#"} else c for c in self.text[at:end]]
        return end + len(quote)

    def _read_formatted(self, at: int, quote: str, around: tuple[str, ...]) -> int:
        """Rewrite what an f-string contains; return the position after it."""
        while at < len(self.text):
            character = self.text[at]
            if self.text.startswith(quote, at):
                return at + len(quote)
            if character == "\n" and len(quote) == 1:
                break
            if character == "\\":
                if len(around) > 1:
                    self.out[at : at + 2] = "__"
                at += 2
            elif character in "{}" and self.text[at + 1 : at + 2] == character:
                at += 2
            elif character == "{":
                at = self._expression(at + 1, around)
            else:
                if len(around) > 1 and character in {around[-1][0], "#"}:
                    self.out[at] = "_"
                at += 1
        raise _UnfinishedError

    def _expression(self, at: int, around: tuple[str, ...]) -> int:
        """Rewrite an expression in braces, with its format; return the position after the closing brace."""
        depth = 0
        while at < len(self.text):
            character = self.text[at]
            token = _TOKEN.match(self.text, at)
            if token is not None and token["quote"]:
                at = self._string(token, around)
                continue
            if character == "#" and token is not None:
                self.out[at : token.end()] = " " * (token.end() - at)
                at = token.end()
                continue
            if character == "\n" and len(around[-1]) == 1:
                break
            if not depth and character == "}":
                return at + 1
            if not depth and character == ":":
                return self._format(at + 1, around)
            depth += _BRACKETS.get(character, 0)
            at += 1
        raise _UnfinishedError

    def _format(self, at: int, around: tuple[str, ...]) -> int:
        """Rewrite the format after the colon of an expression; return the position after the closing brace."""
        while at < len(self.text) and self.text[at] != "\n":
            if self.text[at] == "}":
                return at + 1
            at = self._expression(at + 1, around) if self.text[at] == "{" else at + 1
        raise _UnfinishedError
