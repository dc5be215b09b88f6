"""Processes that are spawned when the program is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.fixing import statement_lines
from dtdebug_taxonomy.checks.shared.spawning import in_notebook, spawning
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import SCOPES
from dtdebug_taxonomy.source.text import Span


def check(code: Code) -> Iterator[Hit]:
    """Report the statement at module level that spawns, directly or by a local function."""
    if in_notebook(code):
        return
    for call in spawning(code):
        function = code.function(call)
        places = [call] if function is None else code.callers.get(function, [])
        for place in places:
            if code.scope(place) is code.tree and not _is_guarded(code, place):
                yield Hit(
                    code.span(place),
                    "This runs whenever the file is imported, and each spawned process imports it first: it would "
                    "spawn again, and Python stops with 'before the current process has finished its bootstrapping "
                    "phase'.",
                    _fix(code, place),
                )


def _is_guarded(code: Code, node: ast.AST) -> bool:
    """True if a node runs only if the file is the main program, or in a function."""
    for up in code.ancestors(node):
        if isinstance(up, SCOPES) and up is not code.tree:
            return True
        if isinstance(up, ast.If) and any(dotted_name(n) == "__name__" for n in code.inside(up.test, ast.Name)):
            return True
    return any(
        isinstance(s, ast.If) and "__name__" in code.source_of(s.test) and isinstance(s.body[-1], ast.Raise | ast.Expr)
        and "exit" in code.source_of(s)
        for s in code.tree.body
        if code.order[s] < code.order[node]
    )  # fmt: skip


def _fix(code: Code, place: ast.Call) -> Fix | None:
    """Return a fix that puts the statement under `if __name__ == "__main__":`."""
    statement = code.statement(place)
    lines = statement_lines(code, statement)
    if lines is None or code.parent[statement] is not code.tree or not isinstance(statement, ast.Expr):
        return None
    if any(s.end_lineno != s.lineno for s in code.inside(statement, ast.Constant)):
        return None  # a multi-line string would change
    first, last = (code.text.place(o).line for o in code.span(statement))
    edits = [Edit(Span(lines.start, lines.start), 'if __name__ == "__main__":\n    ')]
    starts = [code.text.starts[n - 1] for n in range(first + 1, last + 1) if code.text.line(n).strip()]
    edits += [Edit(Span(start, start), "    ") for start in starts]
    return Fix('Run it only in the program: if __name__ == "__main__"', tuple(edits))
