"""Finds the `except` that let a name keep a value of no use: what was to give it another one failed in silence.

What was caught is gone: Python keeps no exception that was handled. That it is caught and passed over is in the source.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from dtdebug.account.expressions import is_literal
from dtdebug.account.last_bindings import Making
from dtdebug.account.places import place
from dtdebug.account.sources import Program
from dtdebug_taxonomy.model.account import Link, NamedValue
from dtdebug_taxonomy.source.python.bindings import Binding
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS


def caught_at(name: str, made: Making, depth: int) -> Link | None:
    """Return the link to the lines that failed in silence, so that a name has a value of no use; None if none can have.

    The value was set in the handler, or before the `try` whose body was to set it, or was to be added to in the body.
    """
    program, scope = made.scope.program, made.scope
    if program is None or made.node not in program.code.parent:
        return None
    found = _around(made, program) or _after(name, made, program)
    if found is None:
        return None
    tried, handler = found
    first, last = tried.body[0].lineno, tried.body[-1].end_lineno or 0
    lines = f"line {first}" if first == last else f"lines {first}-{last}"
    at = tried.body[0] if len(tried.body) == 1 else handler
    return Link(value=NamedValue(lines), how="caught", place=place(scope, at), depth=depth)


def _around(made: Making, program: Program) -> tuple[ast.Try, ast.ExceptHandler] | None:
    """Return the `try` in whose handler a value was set, or in which another was to take the place of a literal."""
    name = next((ast.unparse(t) for t in getattr(made.node, "targets", ())), "")
    before = [row for row in _bindings(name, made, program) if row.node is not made.node and row.value is not None]
    inner = made.node
    for up in program.code.ancestors(made.node):
        if isinstance(up, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            return None
        if isinstance(up, ast.Try):
            known = any(is_literal(row.value) and getattr(row.node, "lineno", 0) < up.lineno for row in before)
            kept = inner in up.body and (made.value is None or known)
            own = [h for h in up.handlers if h is inner] or (up.handlers if kept else [])
            return next(((up, h) for h in own if _passes_over(h)), None)
        inner = up
    return None


def _after(name: str, made: Making, program: Program) -> tuple[ast.Try, ast.ExceptHandler] | None:
    """Return the one `try` after a binding, in the same block, whose body binds the name again."""
    block = program.code.block(made.node) if isinstance(made.node, ast.stmt) else ()
    rows = _bindings(name, made, program)
    found = [
        (each, handler)
        for each in block
        if isinstance(each, ast.Try) and made.line < each.lineno < made.scope.line
        and any(each.lineno < getattr(row.node, "lineno", 0) < each.handlers[0].lineno for row in rows if each.handlers)
        for handler in each.handlers
        if _passes_over(handler)
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None


def _bindings(name: str, made: Making, program: Program) -> Sequence[Binding]:
    home = made.scope.node or program.tree
    if name.startswith("self."):
        return program.bindings.get((program.code.class_of(made.node) or home, name), ())
    return program.bindings.get((home, name), ())


def _passes_over(handler: ast.ExceptHandler) -> bool:
    """True if a handler lets the program go on."""
    return not any(isinstance(n, ast.Raise) for n in ast.walk(handler))
