"""Whether a program may change what it has read: keys that it writes, objects that it updates or hands on."""

from __future__ import annotations

import ast
import re
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from dtdebug_taxonomy.source.names import dotted
from dtdebug_taxonomy.source.values import Valued

_UPDATES = frozenset({"update", "setdefault", "pop", "popitem", "clear", "merge_with", "merge", "merge_from_list"})
_HANDED_ON = re.compile(
    r"merge|overrid|overwrit|update|modif|adjust|fill|apply|resolve|parse|setattr|set_", re.IGNORECASE
)
"""Calls of other modules that may change the configuration which they are given."""


class _Changes(NamedTuple):
    keys: set[str]
    """Of subscripts that are written."""
    attributes: set[str]
    """That are written on anything but `self`."""
    names: set[str]
    """That are updated as a whole, written at a key that is not told, or handed to what may do so."""


def may_change(code: Valued, names: AbstractSet[str], keys: AbstractSet[str], attributes: AbstractSet[str]) -> bool:
    """Whether one of these keys may be written, or one of these names changed as a whole."""
    found: _Changes | None = code.__dict__.get("_changes")
    if found is None:
        found = code.__dict__["_changes"] = _changes(code)
    return bool(keys & found.keys or names & found.names or attributes & found.attributes)


def _changes(code: Valued) -> _Changes:
    found = _Changes(set(), set(), set())
    for subscript in code.nodes(ast.Subscript):
        if isinstance(subscript.ctx, ast.Load):
            continue
        if isinstance(subscript.slice, ast.Constant):
            found.keys.add(str(subscript.slice.value))
        else:
            _whole(code, subscript.value, found)
    for attribute in code.nodes(ast.Attribute):
        if not isinstance(attribute.ctx, ast.Load) and dotted(attribute.value) not in {"self", "cls"}:
            found.attributes.add(attribute.attr)
    for call in code.nodes(ast.Call):
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr in _UPDATES:
            _whole(code, func.value, found)
        last = func.attr if isinstance(func, ast.Attribute) else dotted(func)
        if _HANDED_ON.search(last) and code.called(call) is None:
            for given in (*call.args, *(k.value for k in call.keywords)):
                _whole(code, given, found)
    return found


def _whole(code: Valued, node: ast.expr, found: _Changes) -> None:
    """All names by which an object is known: as it is written, and what callers hand to an argument."""
    while isinstance(node, ast.Subscript):
        node = node.value
    name = dotted(node)
    if not name:
        return
    parts = name.split(".")
    found.names.update(".".join(parts[:n]) for n in range(1, len(parts) + 1) if parts[:n] not in (["self"], ["cls"]))
    if "." not in name:
        found.names.update(dotted(v) for v in code.values(node) if v is not None and dotted(v))
