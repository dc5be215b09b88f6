"""Finds in the user's source the line of an operation of the loss."""

from __future__ import annotations

import ast

from dtdebug_taxonomy import named_files

_NEAR = 40
"""Lines above the backward pass in which the loss is expected, if it is not in a function of its own."""


def operation_line(file: str, line: int, op: str) -> int:
    """Return the one line of the function around `line` that has this operation; 0 if there is none or several."""
    raw = named_files.read_source(file) if op and file else None
    if raw is None:
        return 0
    try:
        tree = ast.parse(raw)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return 0
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    inner = {one for one in _lines_of(around[-1], op) if one <= line} if around else set()
    if len(inner) == 1:
        return inner.pop()
    found = _lines_of(tree, op)
    near = {one for one in found if line - _NEAR <= one <= line}
    if len(near) == 1:
        return near.pop()
    return found.pop() if len(found) == 1 else 0


def _lines_of(tree: ast.AST, op: str) -> set[int]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name.rstrip("_") == op:
                found.add(node.lineno)
        elif (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and op == "div") or (
            isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and op == "pow"
        ):
            found.add(node.lineno)
    return found
