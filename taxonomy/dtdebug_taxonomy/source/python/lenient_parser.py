"""Parses Python that may be broken, such as half-typed text.

Unparsable parts are replaced by `pass`, the smallest statement at a time, so that the
rest keeps its line, its column and its function.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from dtdebug_taxonomy.source.python.newer_syntax import in_older_syntax
from dtdebug_taxonomy.source.python.reparse import Former, NodeIndex, parse_again

_GOES_ON = re.compile(r"[)\]}]|(else|elif|except|finally)\b")
_DECORATED = re.compile(r"@|(async\s+)?(def|class)\b")
_STATEMENT = re.compile(
    r"\s*(def|class|return|import|from|with|try|while|raise|assert|del|pass|break|continue)\b(?!\s*=)"
)
"""Keywords at the beginning of a statement's line: no line inside brackets begins with them."""
_MERGE = re.compile(r"^(<{7}|={7}|>{7}|\|{7})( .*)?$", re.MULTILINE)
_SIMPLE = "simple"
_STRING = re.compile(
    r"#[^\n]*"
    r"|(?P<long>\"\"\"(?:[^\"\\]|\\.|\"(?!\"\"))*\"\"\"|'''(?:[^'\\]|\\.|'(?!''))*''')"
    r"|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'",
    re.DOTALL,
)
_LONGEST = 2_000_000
"""Maximum number of characters of a program; a longer text is data and is not parsed."""
_DEEPEST, _LONG_HEAD = 60, 200
_DOTTED_IMPORTS = [
    re.compile(rf"{word}\b(?<!\w{word})(?P<name>(?:[\w., \t]|\\\n)*)") for word in ("from", "import")
]  # each begins with a fixed text, which is found several times as fast as `\b`
_FSTRING = re.compile(r"[fF][rR]?(?P<quote>\"\"\"|'''|\"|')")
_SHORT = {quote: re.compile(rf"(?:[^{quote}\\\n]|\\.)*{quote}", re.DOTALL) for quote in "\"'"}
_DOTS, _FIELDS = 64, 1000
"""Maximum number of dots in an import and of fields in an f-string: Python's own parser takes quadratic memory and time
for them, and can't be interrupted."""


class ParseResult(NamedTuple):
    """Parsed part of a text."""

    tree: ast.Module
    whole: bool
    """True if nothing had to be replaced."""
    gaps: tuple[tuple[int, int], ...] = ()
    """First and last line, from 1, of the parts that are not in the tree."""
    text: str = ""
    """Text of the tree, with lines that end in a newline; empty if there is no tree."""
    nodes: NodeIndex | None = None
    """Nodes of the tree, if most of them are those of the former version."""
    refused: tuple[int, ...] = ()
    """Lines that were not parsed since that would take too long."""


def parse_program(text: str, former: Former | None = None) -> ParseResult:
    """Return the tree of a program, and the parts that could not be parsed.

    Statements that have not changed since the former version keep their nodes.
    """
    text = text.removeprefix("\ufeff").replace("\0", " ").replace("\f", " ")
    everything = ((1, text.count("\n") + 1),)
    if len(text) > _LONGEST:
        return ParseResult(ast.Module(body=[], type_ignores=[]), whole=False, gaps=everything)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text, refused = without_costly_parts(text)
    whole = _tree(text, former) if not refused else None
    if whole is not None:
        return ParseResult(whole[0], whole=True, text=text, nodes=whole[1])
    older = in_older_syntax(text)
    if older != text:
        text = older
        whole = _tree(text, former)
        if whole is not None:
            return ParseResult(whole[0], whole=not refused, text=text, nodes=whole[1], refused=refused)
    lines = _Repair(text).lines_that_parse()
    joined = "\n".join(lines)
    repaired = _tree(joined, former)
    if repaired is None:
        return ParseResult(ast.Module(body=[], type_ignores=[]), whole=False, gaps=everything, refused=refused)
    gaps = tuple(_gaps(text.split("\n"), lines))
    return ParseResult(repaired[0], whole=False, gaps=gaps, text=joined, nodes=repaired[1], refused=refused)


def parse_source(data: bytes) -> ast.Module:
    """Return the tree of a file; raises SyntaxError or ValueError as Python's parser, and for what takes too long."""
    if without_costly_parts(data.decode("utf-8", "replace"))[1]:
        raise SyntaxError("it takes too long to parse")
    return ast.parse(data)


def without_costly_parts(text: str) -> tuple[str, tuple[int, ...]]:
    """Return the text with imports and f-strings that can't be parsed in time made invalid, and their first lines."""
    spans = []
    if text.count(".") > _DOTS:
        imports = (m for pattern in _DOTTED_IMPORTS for m in pattern.finditer(text))
        spans += [m.span("name") for m in imports if m["name"].count(".") > _DOTS]
    if text.count("{") > _FIELDS:
        for found in _FSTRING.finditer(text):
            end = _end_of_string(text, found.end(), found["quote"])
            if text.count("{", found.end(), end) > _FIELDS:
                spans.append((found.start(), end))
    parts, lines, at, line = [], [], 0, 1
    for start, end in sorted(spans):
        if start < at:
            continue
        line += text.count("\n", at, start)
        lines.append(line)
        newlines = text.count("\n", start, end)
        parts += [text[at:start], " $ ", "\n" * newlines]
        line, at = line + newlines, end
    return ("".join([*parts, text[at:]]), tuple(lines)) if spans else (text, ())


def _end_of_string(text: str, begin: int, quote: str) -> int:
    """Return where a string ends that begins here, or would begin if this were not inside another."""
    if len(quote) == 3:
        end = text.find(quote, begin)
        return len(text) if end < 0 else end + 3
    closed = _SHORT[quote].match(text, begin)
    return closed.end() if closed else begin


def _tree(text: str, former: Former | None) -> tuple[ast.Module, NodeIndex | None] | None:
    """Return the tree of a valid text, and its index if it is made of the former one."""
    if former is not None and (tree := parse_again(former, text, _try)) is not None:
        return tree, former.index
    whole = _try(text)
    return (whole, None) if whole is not None else None


def _gaps(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield runs of lines that were replaced, including blank lines and comments between them."""
    replaced = [
        (number, not new.startswith(old.rstrip()))
        for number, (old, new) in enumerate(zip(before, after, strict=True), 1)
        if _indent(old) >= 0
    ]
    for is_replaced, run in groupby(replaced, key=lambda row: row[1]):
        if is_replaced:
            numbers = [number for number, _ in run]
            yield numbers[0], numbers[-1]


def _try(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


class _Repair:
    """Replaces the unparsable statements of one text."""

    def __init__(self, text: str) -> None:
        text = _MERGE.sub("", text)
        self.lines = text.split("\n")
        inside = bytearray(len(self.lines) + 1)
        bare, line, at = [], 0, 0
        for found in _STRING.finditer(text):
            bare += [text[at : found.start()], "\n" * (more := found[0].count("\n"))]
            line += text.count("\n", at, found.start())
            inside[line + 1 : line + 1 + more] = b"\1" * more
            line, at = line + more, found.end()
        self.bare = "".join([*bare, text[at:]]).split("\n")
        """The lines without strings and comments."""
        self.widths = [-1 if inside[i] else _indent(line) for i, line in enumerate(self.lines)]
        """Indentation of the lines that can begin a statement; -1 for all others."""

    def lines_that_parse(self) -> list[str]:
        """Return the same number of lines, each statement of which can be parsed."""
        self._block(0, len(self.lines), 0, 0)
        return self.lines

    def _parses(self, lines: Sequence[str], indent: int) -> bool:
        return _try("\n".join(["if 1:", *lines] if indent else lines)) is not None

    def _block(self, low: int, high: int, indent: int, depth: int) -> None:
        starts = self._starts(low, high, indent)
        for start, end in zip(starts, [*starts[1:], high], strict=True):
            if 0 <= self.widths[start] < indent:  # less indented than its block: it can't be kept in its column
                self._drop(start, end, indent)
            elif not self._parses(self.lines[start:end], indent):
                self._statement(start, end, indent, depth)

    def _starts(self, low: int, high: int, indent: int) -> list[int]:
        """Return where the statements of a block begin; clauses and decorated definitions belong to the one before."""
        starts, decorated = [low], False
        for i in range(low, high):
            if not 0 <= self.widths[i] <= indent:
                continue
            bare = self.lines[i].lstrip()
            if i > low and not _GOES_ON.match(bare) and not (decorated and _DECORATED.match(bare)):
                starts.append(i)
            decorated = bare.startswith("@")
        return starts

    def _head_end(self, head: int, end: int, indent: int) -> int:
        """Return the line after a head, which may span several lines until its brackets are closed."""
        open_ones = 0
        for i in range(head, min(end, head + _LONG_HEAD)):
            line = self.bare[i]
            if i > head and 0 <= self.widths[i] <= indent and not _GOES_ON.match(self.lines[i].lstrip()):
                break
            if i > head and _STATEMENT.match(line):
                break
            open_ones += sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
            if open_ones <= 0:
                return i + 1
        return head + 1

    def _statement(self, start: int, end: int, indent: int, depth: int) -> None:
        """Repair a statement that can't be parsed, clause by clause, or drop it."""
        heads: list[tuple[int, int]] = []
        for i in range(start, end):
            if 0 <= self.widths[i] <= indent and (not heads or i >= heads[-1][1]):
                heads.append((i, self._head_end(i, end, indent)))
        if not heads or depth > _DEEPEST:
            self._drop(start, end, indent)
            return
        before = ""
        for (head, body), stop in zip(heads, [*(h for h, _ in heads[1:]), end], strict=True):
            before = self._clause(head, body, stop, indent, before)
            if before != _SIMPLE:
                self._body(body, stop, indent, depth)

    def _clause(self, head: int, body: int, end: int, indent: int, before: str) -> str:
        """Repair the head of a clause, or a simple statement; return the word that an `else` could belong to."""
        words, lead = self.lines[head:body], " " * indent
        first = self.lines[head].lstrip()
        if first.startswith("@"):
            if not self._parses([*words, f"{lead}def f(): pass"], indent) or not self._decorates(body, end):
                self.lines[head:body] = [""] * (body - head)
            return _SIMPLE
        word = next(iter(re.findall(r"[a-z]+", first)), "")
        deeper = any(w > indent for w in self.widths[body:end])
        if not deeper and not self.bare[body - 1].rstrip().endswith(":"):
            if not self._parses(words, indent):
                self._drop(head, end, indent)
            return _SIMPLE
        goes_on = word in ("else", "elif") and before
        if self._parses([*([f"{lead}if 1: pass"] if goes_on else []), *words, f"{lead} pass"], indent):
            return word if word in ("if", "elif", "for", "while") else ""
        self._drop(head, body, indent)
        self.lines[head] = f"{lead}if 1:"
        return "if"

    def _decorates(self, body: int, end: int) -> bool:
        following = next((self.lines[i].lstrip() for i in range(body, len(self.lines)) if self.widths[i] >= 0), "")
        return bool(_DECORATED.match(following))

    def _body(self, low: int, high: int, indent: int, depth: int) -> None:
        """Repair the block below a head, which needs at least one statement."""
        inner = next((w for w in self.widths[low:high] if w > indent), -1)
        if inner < 0:
            self.lines[low - 1] += " pass"
            return
        self._block(low, high, inner, depth + 1)
        if not any(_indent(line) >= 0 for line in self.lines[low:high]):
            self.lines[low] = " " * inner + "pass"

    def _drop(self, start: int, end: int, indent: int) -> None:
        """Replace lines by `pass` and empty lines."""
        self.lines[start:end] = [" " * indent + "pass", *[""] * (end - start - 1)]


def _indent(line: str) -> int:
    """Return the width of a line's indentation; -1 for a blank line or a comment."""
    bare = line.lstrip()
    return -1 if not bare or bare[0] == "#" else len(line) - len(bare)
