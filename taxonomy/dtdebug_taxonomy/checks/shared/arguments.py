"""Edits to the arguments of one call that leave the rest of the call unchanged."""

from __future__ import annotations

import ast

from dtdebug_taxonomy.checks import Edit
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.text import Span


def add(code: Code, call: ast.Call, text: str) -> Edit:
    """Append an argument after the last one."""
    close = code.span(call).end - 1
    given = [code.span(a) for a in (*call.args, *call.keywords)]
    if not given:
        return Edit(Span(close, close), text)
    end = max(s.end for s in given)
    while code.text[end:close].lstrip().startswith(")"):  # the argument is in parentheses
        end = code.text.index(")", end) + 1
    return Edit(Span(end, end), f", {text}")


def remove(code: Code, argument: ast.expr | ast.keyword) -> Edit:
    """Remove an argument and one adjacent comma."""
    start, end = code.span(argument)
    before = code.text[:start].rstrip()
    if before.endswith(","):
        return Edit(Span(len(before) - 1, end), "")
    rest = code.text[end:]
    if (behind := rest.lstrip()).startswith(","):
        behind = behind[1:].lstrip()
        return Edit(Span(start, len(code.text) - len(behind)), "")
    return Edit(Span(start, end), "")


def keyword(call: ast.Call, name: str) -> ast.keyword | None:
    """Return the `ast.keyword` of that name."""
    return next((k for k in call.keywords if k.arg == name), None)
