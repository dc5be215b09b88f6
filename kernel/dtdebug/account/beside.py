"""Reads the other names of the function that raised: what could have stood at the line instead."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from dtdebug.account.configs import entry_of, keys_of
from dtdebug.account.objects import MISSING, attribute, is_exactly, is_tensor, item, parts_of, stored_in_class
from dtdebug.account.places import place
from dtdebug.account.scopes import Scope
from dtdebug.account.sources import Program
from dtdebug.account.values import named, one_line
from dtdebug_taxonomy.model.account import MAX_BESIDE, Link, Place

_SIZED = (str, list, tuple)
_LACKS = re.compile(r"object has no attribute '(?P<name>\w{1,80})'")
_MOST = 200
"""Maximum number of names that are looked at."""
_LONG = 64
"""Maximum length of a string or container that is taken for a setting, not for data."""


def names_beside(scope: Scope) -> tuple[Link, ...]:
    """Return the names that were bound once, above the line that raised, with their values; the nearest first."""
    return tuple(sorted(_names(scope), key=lambda link: -link.place.line)[:MAX_BESIDE]) if scope.live else ()


def holders_beside(scope: Scope, message: str) -> Iterator[Link]:
    """Yield the parts of an object that have the attribute which it lacks: `loader.sampler` has `set_epoch`."""
    for node in _lacking(scope, message):
        for name, part in parts_of(scope.value(node.value)):
            if _has(part, node.attr):
                words = f"{ast.unparse(node.value)}.{name}"
                yield Link(value=named(words, part), how="attribute", place=place(scope, node))


def keys_unread(scope: Scope, message: str) -> Iterator[Link]:
    """Yield the keys that the program asks for nowhere, of a mapping that lacks one; in a file, if they are there."""
    if scope.program is None or not scope.live or scope.call is None:
        return
    for node in ast.walk(scope.call):
        table = scope.value(node.value) if isinstance(node, ast.Subscript) else MISSING
        if not isinstance(node, ast.Subscript) or not is_exactly(table, (dict,)) or len(table) > _LONG:
            continue
        if repr(scope.value(node.slice) if not isinstance(node.slice, ast.Constant) else node.slice.value) != message:
            continue
        asked = {text for file in {s.program for s in (scope, *scope.callers) if s.program} for text in _asked(file)}
        for key in [k for k in table if type(k) is str and k not in asked]:
            held = entry_of((*keys_of(node.value), key), table[key], scope, table)
            at = place(scope, node)
            at = Place(file=one_line(held.file), line=held.line, code=one_line(held.code)) if held is not None else at
            shown = named(f"{ast.unparse(node.value)}[{key!r}]", table[key])
            yield Link(value=shown, how="attribute" if held is None else "file", place=at)


def _asked(program: Program) -> Iterator[str]:
    """Yield the strings and attributes of a program, without keys at which it only puts something."""
    put = {id(key) for each in program.code.nodes(ast.Dict) for key in each.keys}
    put |= {id(n.slice) for n in program.code.nodes(ast.Subscript) if isinstance(n.ctx, ast.Store)}
    yield from (n.value for n in program.code.nodes(ast.Constant) if type(n.value) is str and id(n) not in put)
    yield from (n.attr for n in program.code.nodes(ast.Attribute))


def wrappers_beside(scope: Scope, message: str) -> Iterator[Link]:
    """Yield the objects that hold the one which lacks an attribute, and have it: `ddp` has `no_sync`, its model not."""
    for node in _lacking(scope, message):
        inner = scope.value(node.value)
        around = _around(node.value, scope) if inner is not MISSING else ()
        for words, outer in around:
            holds = outer is not inner and any(part is inner for _, part in parts_of(outer))
            if holds and _has(outer, node.attr):
                yield Link(value=named(words, outer), how="attribute", place=place(scope, node))


def _lacking(scope: Scope, message: str) -> Iterator[ast.Attribute]:
    """Yield the expressions of the failed call that ask an object for the attribute which it lacks."""
    lacks = _LACKS.search(message) if scope.live else None
    if lacks is None or scope.call is None:
        return
    for node in ast.walk(scope.call):
        if isinstance(node, ast.Attribute) and node.attr == lacks["name"]:
            yield node


def _has(owner: Any, name: str) -> bool:
    """True if an object or its class stores an attribute."""
    return attribute(owner, name) is not MISSING or stored_in_class(owner, name) is not MISSING


def _around(node: ast.expr, scope: Scope) -> Iterator[tuple[str, Any]]:
    """Yield the names of a frame with their values, and what the object of an attribute stores."""
    if isinstance(node, ast.Attribute) and (owner := scope.value(node.value)) is not MISSING:
        yield from ((f"{ast.unparse(node.value)}.{name}", part) for name, part in parts_of(owner))
    for table in (scope.local, scope.world):
        yield from ((name, part) for name, part in islice(table.items(), _MOST) if type(name) is str)


def _names(scope: Scope) -> Iterator[Link]:
    program = scope.program
    if program is None:
        return
    for (home, name), rows in program.bindings.items():
        if name.startswith("_"):
            continue  # what is not to be used
        row = rows[0]
        once = home is (scope.node or program.tree) and len(rows) == 1 and row.how in {"assign", "argument"}
        value = item(scope.local, name) if once and getattr(row.node, "lineno", 0) < scope.line else MISSING
        if is_exactly(value, _SIZED) and len(value) > _LONG:
            continue
        if value is not MISSING and (is_tensor(value) or is_exactly(value, (int, *_SIZED))):
            yield Link(value=named(name, value), how="assigned", place=place(scope, row.node))
