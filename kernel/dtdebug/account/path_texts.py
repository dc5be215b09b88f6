"""Paths as the text of a program tells them: the constant parts of an f-string, a join or a helper, and the rest."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dtdebug.account.sources import Program
from dtdebug_taxonomy.source.python.names import dotted_name, last_name
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS, Function

_DEEPEST = 8
_JOINS = frozenset({"join", "joinpath", "Path", "PurePath", "PosixPath"})
_SAME = frozenset({"str", "fspath", "abspath", "realpath", "expanduser", "resolve", "absolute", "as_posix"})
_FROM_ROOT = frozenset({"abspath", "realpath", "expanduser", "resolve", "absolute"})
_PLACE = re.compile(r"%[-+ #0]?\d{0,4}(?:\.\d{1,4})?[sdifrx]|\{[^{}]{0,40}\}")
_FEWEST = 3
"""Minimum number of letters and digits of a file's name that the program must write down itself."""


class Open(NamedTuple):
    """Part of a path that the text does not give, with the expression for it."""

    words: str
    home: ast.AST | None = None
    """Function or class whose own names it depends on."""


Piece = str | Open


@dataclass(frozen=True)
class Here:
    """Function in which an expression stands, with what its parameters were given."""

    program: Program
    function: ast.AST | None = None
    given: Mapping[str, tuple[Piece, ...]] = field(default_factory=dict)


def pieces(node: ast.expr | None, here: Here, deep: int = 0) -> tuple[Piece, ...]:
    """Return the parts of a path."""
    if node is None or deep > _DEEPEST:
        return (Open(""),) if node is None else _open(node, here)
    match node:
        case ast.Constant(value=str() as text):
            return (text,)
        case ast.JoinedStr(values=values):
            return _merge([each for value in values for each in pieces(value, here, deep + 1)])
        case ast.FormattedValue(value=value, format_spec=None):
            return pieces(value, here, deep + 1)
        case ast.BinOp(left=left, op=ast.Add() | ast.Div() as op, right=right):
            between = ["/"] if isinstance(op, ast.Div) else []
            return _merge([*pieces(left, here, deep + 1), *between, *pieces(right, here, deep + 1)])
        case ast.BinOp(left=ast.Constant(value=str() as text), op=ast.Mod()):
            return _fill(text, _open(node, here)[0])
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as text), attr="format")):
            return _fill(text, _open(node, here)[0])
        case ast.Call():
            return _call(node, here, deep)
        case ast.Name(id=name) if name in here.given:
            return here.given[name]
        case ast.Name() | ast.Attribute():
            only = _only_value(node, here)
            return pieces(only, here, deep + 1) if only is not None else _open(node, here)
    return _open(node, here)


def _open(node: ast.expr, here: Here) -> tuple[Piece, ...]:
    """Return an expression as a part that is not known; the same words in another function are another part."""
    names = [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]
    home = here.function if any((here.function, name) in here.program.bindings for name in names) else None
    if "self" in names and isinstance(here.function, FUNCTIONS):
        home = here.program.code.class_of(here.function)
    return (Open(ast.unparse(node), home),)


def _fill(text: str, filler: Piece) -> tuple[Piece, ...]:
    return _merge([each for part in _PLACE.split(text) for each in (filler, part)][1:])


def _call(node: ast.Call, here: Here, deep: int) -> tuple[Piece, ...]:
    name = last_name(node)
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if name == "joinpath" and owner is not None:
        return _join([owner, *node.args], here, deep)
    if name in _JOINS and node.args and not isinstance(owner, ast.Constant):
        return _join(node.args, here, deep)
    if name in _SAME and (node.args or owner is not None):
        inner = node.args[0] if node.args else owner
        start: list[Piece] = [Open(name)] if name in _FROM_ROOT else []
        return _merge([*start, *pieces(inner, here, deep + 1)])
    function = here.program.code.local_function(node)
    returned = here.program.code.returned_values(node) if function is not None else []
    if function is not None and len(returned) == 1:
        return pieces(returned[0], pass_paths(node, function, here, deep), deep + 1)
    return _open(node, here)


def _join(nodes: Sequence[ast.expr], here: Here, deep: int) -> tuple[Piece, ...]:
    parts = [["/", *pieces(each, here, deep + 1)] for each in nodes]
    return _merge([each for part in parts for each in part][1:])


def pass_paths(call: ast.Call, function: Function, here: Here, deep: int = 0, program: Program | None = None) -> Here:
    """Return a function with the paths that a call passes to it."""
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    names = names[1:] if names[:1] in (["self"], ["cls"]) else names
    rows = [*zip(names, call.args, strict=False), *((k.arg, k.value) for k in call.keywords if k.arg)]
    given = {name: pieces(each, here, deep + 1) for name, each in rows if not isinstance(each, ast.Starred)}
    return Here(program or here.program, function, given)


def _only_value(node: ast.Name | ast.Attribute, here: Here) -> ast.expr | None:
    """Return what a name or `self.attribute` is bound to, if there is one such place."""
    name, code = dotted_name(node), here.program.code
    function = here.function if isinstance(here.function, FUNCTIONS) else None
    scopes: list[ast.AST] = [function] if function is not None else []
    if name.startswith("self.") and function is not None:
        scopes = [home] if (home := code.class_of(function)) is not None else []
    elif isinstance(node, ast.Attribute):
        return None
    else:
        scopes.append(here.program.tree)
    rows = next((found for scope in scopes if (found := here.program.bindings.get((scope, name)))), [])
    return rows[0].value if len(rows) == 1 and rows[0].how == "assign" else None


def _merge(parts: Sequence[Piece]) -> tuple[Piece, ...]:
    found: list[Piece] = []
    for each in parts:
        if isinstance(each, str) and found and isinstance(found[-1], str):
            found[-1] += each
        elif each != "":
            found.append(each)
    return tuple(found)


def fits(parts: Sequence[Piece], path: str) -> bool:
    """True if a path can be one that the parts make, and they write down what tells its name from others."""
    path = posixpath.normpath(path)
    name = posixpath.basename(path)
    texts = [posixpath.normpath(parts[0])] if len(parts) == 1 and isinstance(parts[0], str) else list(parts)
    last = [text.rpartition("/")[2] for text in texts if isinstance(text, str)][-1:]
    if not last or sum(c.isalnum() for c in last[0].partition(".")[0] + last[0]) < _FEWEST or last[0] not in name:
        return False
    at = 0
    for n, each in enumerate(texts):
        if isinstance(each, Open):
            continue
        text = each.removeprefix("./") if n == 0 else each
        if n == len(texts) - 1:
            return path.endswith(text) and len(path) - len(text) >= at and (n > 0 or path == text)
        found = path.find(text, at)
        if found < 0 or (n == 0 and found):
            return False
        at = found + len(text)
    return True
