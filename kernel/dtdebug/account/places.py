"""Places in the user's program, with the source line or the whole statement of several lines."""

from __future__ import annotations

import ast

from dtdebug.account.scopes import Scope
from dtdebug.account.values import one_line
from dtdebug.privacy.sanitize import mask, plain
from dtdebug_taxonomy.model.account import MAX_TEXT, Place
from dtdebug_taxonomy.source.joined_lines import Joined, join_lines
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS


def place(scope: Scope, node: ast.AST) -> Place:
    """Return the place of an expression or statement."""
    line = getattr(node, "lineno", scope.line)
    code = scope.source(line)
    mark = (0, 0)
    if scope.program is not None and isinstance(node, ast.expr) and node.end_lineno == line:
        raw = scope.program.code.text.line(line)
        indent = len(raw) - len(raw.lstrip())
        first = len(raw.encode()[: node.col_offset].decode(errors="ignore")) - indent
        last = len(raw.encode()[: node.end_col_offset].decode(errors="ignore")) - indent
        mark = (first, last) if 0 <= first < last else mark
    joined = _join(scope, node, line)
    if joined is not None and mask(joined.text) == joined.text:
        code, shown = joined.text, plain(joined.text)
        if isinstance(node, ast.expr):
            mark = _mark_in(joined, node, scope)
    else:
        shown = one_line(code, 2 * MAX_TEXT)
    function = scope.function if isinstance(scope.node, (*FUNCTIONS, ast.Lambda)) else ""
    return Place(
        file=one_line(scope.file), line=line, function=function, code=shown, mark=mark if shown == code else (0, 0)
    )


def _join(scope: Scope, node: ast.AST, line: int) -> Joined | None:
    """Return the statement that begins on a line and has several, as one line."""
    program = scope.program
    if program is None or not (scope.user and (getattr(node, "end_lineno", None) or line) > line):
        return None
    whole: ast.AST | None = node if isinstance(node, ast.stmt) else None
    if whole is None and node in program.code.parent:
        whole = program.code.statement(node)
    if not isinstance(whole, ast.stmt) or whole.lineno != line or hasattr(whole, "body"):
        return None
    return join_lines([program.code.text.line(n) for n in range(line, (whole.end_lineno or line) + 1)])


def _mark_in(joined: Joined, node: ast.expr, scope: Scope) -> tuple[int, int]:
    last = (node.end_lineno or node.lineno) - node.lineno
    begin, end = joined.column(0, node.col_offset), joined.column(last, (node.end_col_offset or 0) - 1)
    return (begin, end + 1) if 0 <= begin < end else (0, 0)
