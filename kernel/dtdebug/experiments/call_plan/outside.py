"""Lines whose calls depend on values, which no plan can foresee."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePath

from dtdebug.experiments.collectives import source_branches

_RANGE = re.compile(r"(?P<file>.+):(?P<first>\d{1,9})-(?P<last>\d{1,9})")


class Outside:
    """Ranges of lines."""

    def __init__(self, ranges: Iterable[str]) -> None:
        """Take ranges such as `train.py:40-44`; others are left out."""
        found = [m for m in map(_RANGE.fullmatch, ranges) if m is not None]
        self._ranges = [(PurePath(m["file"]).parts, int(m["first"]), int(m["last"])) for m in found]

    def holds(self, file: str, line: int) -> bool:
        """True if a line is in one of the ranges."""
        parts = PurePath(file).parts if self._ranges else ()
        return any(first <= line <= last and parts[-len(name) :] == name for name, first, last in self._ranges)


def branches(file: str, line: int) -> list[tuple[int, int]]:
    """Return the first and last lines of what a value read on a line decides: branches, and functions they call."""
    module = source_branches.parsed_file(file)
    if module is None:
        return []
    statements = list(_decided_statements(module, line))
    called = {
        c.func.id for s in statements for c in ast.walk(s) if isinstance(c, ast.Call) and isinstance(c.func, ast.Name)
    }
    elsewhere = {
        c.func.id
        for c in ast.walk(module)
        if isinstance(c, ast.Call) and isinstance(c.func, ast.Name) and not any(_is_within(c, s) for s in statements)
    }
    functions = [f for f in ast.walk(module) if isinstance(f, ast.FunctionDef) and f.name in called - elsewhere]
    return [(s.lineno, s.end_lineno or s.lineno) for s in (*statements, *functions)]


def _decided_statements(module: ast.Module, line: int) -> Iterator[ast.stmt]:
    names = {
        n.id
        for s in ast.walk(module)
        if isinstance(s, ast.Assign | ast.AnnAssign | ast.AugAssign) and s.lineno <= line <= (s.end_lineno or s.lineno)
        for n in ast.walk(s)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    for statement in ast.walk(module):
        if isinstance(statement, ast.If | ast.While):
            test = statement.test
        elif isinstance(statement, ast.For):
            test = statement.iter
        else:
            continue
        used = {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}
        if test.lineno <= line <= (test.end_lineno or test.lineno) or used & names:
            yield statement


def _is_within(node: ast.expr, statement: ast.stmt) -> bool:
    return statement.lineno <= node.lineno <= (statement.end_lineno or statement.lineno)
