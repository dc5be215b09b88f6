"""Comment that suppresses a problem: its place and its form."""

from __future__ import annotations

import ast
import re

from dtdebug_lsp.documents import Document
from dtdebug_lsp.problem import Change, Problem
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.text import Span, Text

_COMMENT = re.compile(r"(?:#|//)\s*dtdebug:\s*ignore(?:\[(?P<ids>[^\]\n]*)\])?")


def suppression(document: Document, problem: Problem) -> Change | None:
    """Return the edit that adds or extends the comment; None if none is possible."""
    text = document.text
    line = _line(document, problem)
    if line is None:
        return None
    start, end = text.starts[line - 1], text.end_of_line(line)
    known = _COMMENT.search(text[start:end])
    if known is not None:
        if known["ids"] is None:
            return None
        ids = known["ids"].strip().rstrip(",")
        return Change(
            document,
            Span(start + known.start("ids"), start + known.end("ids")),
            f"{ids}, {problem.check.id}" if ids else problem.check.id,
        )
    mark = _mark(document)
    if not mark:
        return None
    written = text[start:end]
    end -= len(written) - len(written.rstrip())
    return Change(document, Span(end, text.end_of_line(line)), f"  {mark} dtdebug: ignore[{problem.check.id}]")


def _line(document: Document, problem: Problem) -> int | None:
    """Return the line on which the comment is effective and breaks nothing."""
    text = document.text
    lines = [text.place(problem.span.start).line, text.place(problem.span.end).line]
    source = document.source
    if document.notebook is None and isinstance(source, Code):
        lines += [s.end_lineno or 0 for s in source.statements_at(lines[0]) if not hasattr(s, "body")][:1]
        inside = _inside_strings(source)
        return next((n for n in lines if n and n not in inside and not _continues(text, n)), None)
    if document.path.lower().rpartition("/")[2].startswith("dockerfile") or document.language == "dockerfile":
        lines = [n for n in lines if text.line(n).lstrip().upper().startswith("RUN ")]
    return next((n for n in lines if not _continues(text, n)), None)


def _inside_strings(code: Code) -> set[int]:
    """Return the lines that end inside a multi-line string."""
    strings = [c for c in code.nodes(ast.Constant) if isinstance(c.value, str | bytes)]
    return {
        line for node in [*strings, *code.nodes(ast.JoinedStr)] for line in range(node.lineno, node.end_lineno or 0)
    }


def _continues(text: Text, line: int) -> bool:
    return text.line(line).rstrip().endswith("\\")


def _mark(document: Document) -> str:
    """Return the comment mark; "" for JSON without comments."""
    name = document.path.lower()
    if name.endswith((".json", ".jsonc")) or document.language in {"json", "jsonc"}:
        return "//" if re.search(r"^\s*//", document.text, re.MULTILINE) else ""
    return "#"
