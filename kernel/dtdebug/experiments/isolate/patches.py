"""Writes a measured change as a patch of the user's file: keyword arguments of one call."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path

from dtdebug.privacy.sanitize import clean
from dtdebug.storage import state_dir
from dtdebug_taxonomy.checks.run.proving import format_patch
from dtdebug_taxonomy.source.text import Text

_LIMIT, _SHOWN = 1 << 20, 4_000
_REFUSED = {"num_workers": ("persistent_workers", "prefetch_factor", "timeout", "multiprocessing_context")}
"""Arguments that a loader without workers rejects."""


def patch(path: Path, line: int, calls: Sequence[str], given: Mapping[str, str]) -> str:
    """Return the patch that gives these arguments to the call on that line, or "" if that is ambiguous.

    `calls`: names of the called function; aliases under which the file imports it count, too.
    """
    try:
        before = state_dir.read_start(path, _LIMIT).decode()
        tree = ast.parse(before)
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return ""
    names = {*calls, *(alias.asname for alias in _import_aliases(tree) if alias.asname and alias.name in calls)}
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_at(node, line, names)]
    if len(found) != 1 or any(keyword.arg is None for keyword in found[0].keywords):
        return ""  # several, or **options that may contain the same name
    after = _set_arguments(before, found[0], given)
    try:
        ast.parse(after)
    except SyntaxError:
        return ""
    diff = format_patch(path.name, before, after)
    return clean(diff) if len(diff) <= _SHOWN else ""


def _import_aliases(tree: ast.Module) -> list[ast.alias]:
    return [alias for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names]


def _is_at(node: ast.Call, line: int, names: set[str]) -> bool:
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return called in names and node.lineno <= line <= (node.end_lineno or node.lineno)


def _set_arguments(text: str, call: ast.Call, given: Mapping[str, str]) -> str:
    """Return the text with these keyword arguments in that call: present ones replaced, others appended."""
    places = Text(text)

    def begin(node: ast.expr | ast.keyword) -> int:
        return places.offset_of_byte(node.lineno, node.col_offset)

    def end(node: ast.expr | ast.keyword) -> int:
        return places.offset_of_byte(node.end_lineno or node.lineno, node.end_col_offset or 0)

    edits = []
    present = {keyword.arg: keyword for keyword in call.keywords}
    for name, value in given.items():
        if name in present:
            old = present[name].value
            edits.append((begin(old), end(old), value))
        for refused in _REFUSED.get(name, ()):
            if refused in present:
                start = len(text[: begin(present[refused])].rstrip().removesuffix(","))
                edits.append((start, end(present[refused]), ""))
    last: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    after = max(map(end, last), default=-1)
    new = ", ".join(f"{name}={value}" for name, value in given.items() if name not in present)
    if new and after < 0:
        edits.append((end(call) - 1, end(call) - 1, new))
    elif new:
        edits.append((after, after, f", {new}"))
    for start, stop, value in sorted(edits, reverse=True):
        text = text[:start] + value + text[stop:]
    return text
