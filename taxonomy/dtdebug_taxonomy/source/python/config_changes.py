"""Detects whether a program may change data it has read: keys it writes, objects it updates or passes on."""

from __future__ import annotations

import ast
import re
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.values import ValueIndex

_UPDATES = frozenset({"update", "setdefault", "pop", "popitem", "clear", "merge_with", "merge", "merge_from_list"})
_HANDED_ON = re.compile(
    r"merge|overrid|overwrit|update|modif|adjust|fill|apply|resolve|parse|setattr|set_", re.IGNORECASE
)
"""Calls of other modules that may change the configuration passed to them."""


class _Changes(NamedTuple):
    keys: set[str]
    """Keys of subscripts that are written."""
    attributes: set[str]
    """Attributes that are written on anything but `self`."""
    names: set[str]
    """Names that are updated as a whole, written at an unknown key, or passed to a call that may do so."""


def may_change(code: ValueIndex, names: AbstractSet[str], keys: AbstractSet[str], attributes: AbstractSet[str]) -> bool:
    """True if one of these keys or attributes may be written, or one of these names changed as a whole."""
    found: _Changes | None = code.__dict__.get("_changes")
    if found is None:
        found = code.__dict__["_changes"] = _changes(code)
    return bool(keys & found.keys or names & found.names or attributes & found.attributes)


def _changes(code: ValueIndex) -> _Changes:
    found = _Changes(set(), set(), set())
    for subscript in code.nodes(ast.Subscript):
        if isinstance(subscript.ctx, ast.Load):
            continue
        if isinstance(subscript.slice, ast.Constant):
            found.keys.add(str(subscript.slice.value))
        else:
            _whole(code, subscript.value, found)
    for attribute in code.nodes(ast.Attribute):
        if not isinstance(attribute.ctx, ast.Load) and dotted_name(attribute.value) not in {"self", "cls"}:
            found.attributes.add(attribute.attr)
    for call in code.nodes(ast.Call):
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr in _UPDATES:
            _whole(code, func.value, found)
        last = func.attr if isinstance(func, ast.Attribute) else dotted_name(func)
        if _HANDED_ON.search(last) and code.local_function(call) is None:
            for given in (*call.args, *(k.value for k in call.keywords)):
                _whole(code, given, found)
    return found


def _whole(code: ValueIndex, node: ast.expr, found: _Changes) -> None:
    """Add all names of an object: as written, and what callers pass to an argument."""
    while isinstance(node, ast.Subscript):
        node = node.value
    name = dotted_name(node)
    if not name:
        return
    parts = name.split(".")
    found.names.update(".".join(parts[:n]) for n in range(1, len(parts) + 1) if parts[:n] not in (["self"], ["cls"]))
    if "." not in name:
        found.names.update(dotted_name(v) for v in code.values(node) if v is not None and dotted_name(v))
