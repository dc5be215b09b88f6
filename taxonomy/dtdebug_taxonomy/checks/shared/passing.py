"""Decides whether a place definitely executes whenever the program is started."""

from __future__ import annotations

import ast

from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS

_MAY_NOT = (
    *(ast.IfExp, ast.BoolOp, ast.Try, ast.ExceptHandler, ast.While, ast.For, ast.Match),
    *(ast.Lambda, ast.ListComp, ast.DictComp, ast.GeneratorExp, ast.ClassDef),
)
"""Constructs whose contents may not execute, or not when the program is started."""


def always_runs(code: Code, node: ast.AST, depth: int = 4) -> bool:
    """True if a place executes whenever the program is started, according to this file."""
    inner: ast.AST = node
    for up in code.ancestors(node):
        if isinstance(up, ast.If):
            main = isinstance(up.test, ast.Compare) and dotted_name(up.test.left) == "__name__" and inner in up.body
            if not main and inner is not up.test:
                return False
        elif isinstance(up, _MAY_NOT):
            return False
        if isinstance(inner, ast.stmt) and not isinstance(up, ast.Module) and _left_before(code, inner):
            return False
        if isinstance(up, FUNCTIONS):
            if not depth or not code.is_plain(up):
                return False
            return any(always_runs(code, c, depth - 1) for c in code.callers.get(up, ())[:8])
        inner = up
    return True


def _left_before(code: Code, statement: ast.stmt) -> bool:
    """True if a statement's block may be left before it."""
    for earlier in code.block(statement):
        if earlier is statement:
            return False
        if isinstance(earlier, ast.If | ast.Try) and any(True for _ in code.inside(earlier, ast.Return, ast.Raise)):
            return True
    return False
