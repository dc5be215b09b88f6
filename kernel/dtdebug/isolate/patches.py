"""The change that was measured as a patch of the user's file: keyword arguments of one call."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path

from dtdebug import state
from dtdebug.clean import clean
from dtdebug_taxonomy.checks.proving import unified

_LIMIT, _SHOWN = 1 << 20, 4_000
_REFUSED = {"num_workers": ("persistent_workers", "prefetch_factor", "timeout", "multiprocessing_context")}
"""Arguments that a loader without workers refuses."""


def patch(path: Path, line: int, calls: Sequence[str], given: Mapping[str, str]) -> str:
    """The patch that gives the call on that line these arguments; empty where that can't be done without doubt.

    `calls`: names of what is called; another name by which the file imports it counts, too.
    """
    try:
        before = state.read_start(path, _LIMIT).decode()
        tree = ast.parse(before)
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return ""
    names = {*calls, *(alias.asname for alias in _imported(tree) if alias.asname and alias.name in calls)}
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_at(node, line, names)]
    if len(found) != 1 or any(keyword.arg is None for keyword in found[0].keywords):
        return ""  # several, or **options that may hold the same name
    after = _changed(before, found[0], given)
    try:
        ast.parse(after)
    except SyntaxError:
        return ""
    diff = unified(path.name, before, after)
    return clean(diff) if len(diff) <= _SHOWN else ""


def _imported(tree: ast.Module) -> list[ast.alias]:
    return [alias for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names]


def _is_at(node: ast.Call, line: int, names: set[str]) -> bool:
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return called in names and node.lineno <= line <= (node.end_lineno or node.lineno)


def _changed(text: str, call: ast.Call, given: Mapping[str, str]) -> str:
    """The text with these keyword arguments in that call: those that stand there replaced, others added at its end."""
    data = text.encode()
    starts = [0]
    for row in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(row))

    def offset(line: int | None, column: int | None) -> int:
        return starts[(line or 1) - 1] + (column or 0)

    edits = []
    present = {keyword.arg: keyword for keyword in call.keywords}
    for name, value in given.items():
        if name in present:
            old = present[name].value
            edits.append((offset(old.lineno, old.col_offset), offset(old.end_lineno, old.end_col_offset), value))
        for refused in _REFUSED.get(name, ()):
            if refused in present:
                at = present[refused]
                begin, end = offset(at.lineno, at.col_offset), offset(at.end_lineno, at.end_col_offset)
                begin = len(data[:begin].rstrip().removesuffix(b","))
                edits.append((begin, end, ""))
    last: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    end = max((offset(node.end_lineno, node.end_col_offset) for node in last), default=-1)
    new = ", ".join(f"{name}={value}" for name, value in given.items() if name not in present)
    if new and end < 0:
        end = offset(call.end_lineno, call.end_col_offset) - 1
        edits.append((end, end, new))
    elif new:
        edits.append((end, end, f", {new}"))
    for begin, stop, value in sorted(edits, reverse=True):
        data = data[:begin] + value.encode() + data[stop:]
    return data.decode()
