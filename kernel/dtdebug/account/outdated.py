"""Finds objects of classes that a later cell of the notebook has defined again: they keep the code of the older one."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from dtdebug.account.objects import MISSING, is_class, item, members, module_of, name_of, parts_of
from dtdebug.account.scopes import Scope
from dtdebug.account.sources import Program, cells_of, program_of
from dtdebug.account.values import named, one_line
from dtdebug_taxonomy.model.account import Outdated, Place

_MOST_PARTS, _MOST_NAMES = 64, 64
_HOLDERS = frozenset({"dataset", "module", "base_dataloader", "model", "loader", "sampler"})
"""Attributes by which loaders, wrappers and data sets hold what they were made of."""
_OF_PYTHON = frozenset({
    "__dict__", "__weakref__", "__module__", "__doc__", "__qualname__", "__firstlineno__", "__static_attributes__",
    "__annotations__", "__annotate_func__", "__annotations_cache__",
})  # fmt: skip


class _Held(NamedTuple):
    """An object that the failing line uses, and the expression for it."""

    name: str
    value: Any


def outdated_objects(stack: Sequence[Scope]) -> tuple[Outdated, ...]:
    """Return the object of an older class that the failing line of the program uses, or whose method is on the stack.

    A class that was run again without a change has the same code, and counts for nothing.
    """
    users = [scope for scope in stack if scope.user and scope.live]
    if not users:
        return ()
    world = users[-1].world
    for held in (*_of_line(users[-1]), *_of_methods(users)):
        kind = type(held.value)
        newer = item(world, name_of(kind)) if module_of(kind) == item(world, "__name__") else MISSING
        if newer is not MISSING and is_class(newer) and newer is not kind and _is_other(kind, newer):
            found = _outdated(held, kind, newer, world)
            return (found,) if found is not None else ()
    return ()


def _of_line(scope: Scope) -> Iterator[_Held]:
    """Yield what the statement at the failing line names, the loops that give these names, and the parts of both."""
    program = scope.program
    statement = program.code.statement(scope.call) if program is not None and scope.call is not None else None
    if program is None or statement is None:
        return
    heads = [statement.iter] if isinstance(statement, ast.For) else [statement]
    names = {n.id: n for head in heads for n in ast.walk(head) if isinstance(n, ast.Name)}
    up: ast.AST | None = statement
    while up is not None:
        if isinstance(up, ast.For) and any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(up.target)):
            names |= {n.id: n for n in ast.walk(up.iter) if isinstance(n, ast.Name)}
        up = program.code.parent.get(up)
    for name, node in names.items():
        value = scope.value(node)
        if value is not MISSING:
            yield _Held(name, value)
            yield from _parts(_Held(name, value), depth=2)


def _parts(whole: _Held, depth: int) -> Iterator[_Held]:
    """Yield the parts of loaders, wrappers and data sets."""
    for name, part in islice(parts_of(whole.value), _MOST_PARTS):
        if name in _HOLDERS:
            held = _Held(f"{whole.name}.{name}", part)
            yield held
            if depth > 1:
                yield from _parts(held, depth - 1)


def _of_methods(users: Sequence[Scope]) -> Iterator[_Held]:
    for scope in reversed(users):
        own = item(scope.local, "self")
        if own is not MISSING:
            yield _Held("self", own)


def _is_other(old: type, new: type) -> bool:
    """True if the classes differ in a name or in the code of a method."""
    was, now = members(old), members(new)
    names = _names(was)
    return names != _names(now) or any(_code(was[name]) != _code(now[name]) for name in names)


def _names(stored: dict[str, Any]) -> set[str]:
    return {name for name in stored if type(name) is str and name not in _OF_PYTHON}


def _code(value: Any) -> object:
    if type(value) in (staticmethod, classmethod):
        value = value.__func__
    return _plain(value.__code__) if type(value) is types.FunctionType else type(value) is type


def _plain(code: types.CodeType) -> tuple[object, ...]:
    """Return what a function does, without the lines at which it stands."""
    inner = tuple(_plain(c) if type(c) is types.CodeType else repr(c) for c in code.co_consts)
    return code.co_code, code.co_names, code.co_varnames, inner


def _outdated(held: _Held, kind: type, newer: type, world: Any) -> Outdated | None:
    """Return what is known of the object, if the cell is found that defines its class again."""
    name = name_of(kind)
    own = _name_of_object(held.value, world)
    made: Place | None = None
    for file, text in cells_of(world):  # the newest first
        program = program_of(file, text)
        defined = next((n for n in program.tree.body if isinstance(n, ast.ClassDef) and n.name == name), None)
        if defined is not None:
            there = _place(program, defined)
            made = _making(own, world, before=file) if own else None
            gains = sorted(_names(members(newer)) - _names(members(kind)))
            return Outdated(
                value=named(own or held.name, held.value), kind=name, made=made, defined=there,
                has=tuple(dict.fromkeys((*gains, *sorted(_set_in(defined)))))[:_MOST_NAMES],
            )  # fmt: skip
    return None


def _name_of_object(value: Any, world: Any) -> str:
    """Return the notebook's own name of an object."""
    names = (n for n, each in list(dict.items(world)) if each is value and type(n) is str and not n.startswith("_"))
    return next(names, "")


def _making(name: str, world: Any, before: str) -> Place | None:
    """Return the newest line at the margin of a cell that made an object, if the class was defined after it."""
    is_older = False
    for file, text in cells_of(world):
        if file == before:
            is_older = True
        program = program_of(file, text)
        rows = [n for n in program.tree.body if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call)]
        row = next((n for n in rows if any(isinstance(t, ast.Name) and t.id == name for t in n.targets)), None)
        if row is not None:
            return _place(program, row) if is_older else None
    return None


def _set_in(defined: ast.ClassDef) -> set[str]:
    """Return the attributes that the methods of a class set on `self`."""
    return {
        n.attr
        for n in ast.walk(defined)
        if isinstance(n, ast.Attribute)
        and isinstance(n.ctx, ast.Store)
        and isinstance(n.value, ast.Name)
        and n.value.id == "self"
    }


def _place(program: Program, node: ast.stmt) -> Place:
    return Place(file=one_line(program.file), line=node.lineno, code=one_line(program.line(node.lineno)))
