"""Reads a program's source without running it: ranks that it names, and lines whose value decides a branch."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from dtdebug_taxonomy import named_files
from dtdebug_taxonomy.source.python.lenient_parser import parse_source


def parsed_file(path: Path | str) -> ast.Module | None:
    """Return the parsed file, or None if it can't be parsed."""
    data = named_files.read_source(path)
    try:
        return parse_source(data) if data is not None else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def rank_numbers(module: ast.Module) -> set[int]:
    """Return the integers that the program compares or divides with: ranks that it may treat specially."""
    found = set()
    for node in ast.walk(module):
        parts: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod | ast.FloorDiv):
            parts = [node.right]
        for part in parts:
            inner = part.elts if isinstance(part, ast.Tuple | ast.List | ast.Set) else [part]
            found |= {n.value for n in inner if isinstance(n, ast.Constant) and type(n.value) is int}
    return found


def deciding(places: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return the lines, of those that read a value from a tensor, whose value decides a branch.

    A line that only prints or stores it does not count. A file that can't be read counts.
    """
    trees: dict[str, ast.Module | None] = {}
    found = []
    for file, line in places:
        if not file:
            continue
        if file not in trees:
            trees[file] = parsed_file(file)
        module = trees[file]
        if module is None or _decides(module, line):
            found.append((file, line))
    return found


def _decides(module: ast.Module, line: int) -> bool:
    tests = list(_tests(module))
    if any(test.lineno <= line <= (test.end_lineno or test.lineno) for test in tests):
        return True
    tested = {name.id for test in tests for name in ast.walk(test) if isinstance(name, ast.Name)}
    tested |= {part.attr for test in tests for part in ast.walk(test) if isinstance(part, ast.Attribute)}
    statements = [
        n for n in ast.walk(module) if isinstance(n, ast.stmt) and _covers(n, line) and not hasattr(n, "body")
    ]
    for statement in statements:
        if isinstance(statement, ast.Return):
            return True
        names = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        names |= {n.attr for n in ast.walk(statement) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
        if names & tested:
            return True
    return False


def _covers(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _tests(module: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(module):
        if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
            yield node.test
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
            yield node
        elif isinstance(node, ast.Match):
            yield node.subject
