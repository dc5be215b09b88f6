"""The parts of an expression whose values were made elsewhere in the program."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator

from dtdebug.account import evaluate, scopes
from dtdebug.account.objects import MISSING
from dtdebug.account.scopes import Scope
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.stacks.frames import is_library


def leaves(node: ast.expr | None, scope: Scope) -> list[ast.expr]:
    """Return the parts of an expression whose value was made elsewhere: names, attributes, items, own calls."""
    if node is None:
        return []
    targets = [each.target for each in ast.walk(node) if isinstance(each, ast.comprehension)]
    bound = {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    found = [each for each in _leaves(node, scope) if not (isinstance(each, ast.Name) and each.id in bound)]
    return [each for each in found if _root(each) not in bound]


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _leaves(node: ast.AST | None, scope: Scope) -> Iterator[ast.expr]:
    match node:
        case None | ast.Lambda():
            return
        case ast.Name():
            yield from () if _is_outside(node.id, scope) else (node,)
        case ast.Attribute() if dotted_name(node):
            outside = isinstance(node.value, ast.Name) and _is_outside(node.value.id, scope)
            yield from () if outside else (node,)
        case ast.Subscript(slice=ast.Constant() | ast.Name()):
            yield node
            yield from () if dotted_name(node.value).endswith("environ") else _leaves(node.slice, scope)
        case ast.Call():
            yield from _of_call(node, scope)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            for child in (
                *node.generators,
                *(each for each in ast.iter_child_nodes(node) if each not in node.generators),
            ):
                yield from _leaves(child, scope)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _leaves(child, scope)


def _of_call(node: ast.Call, scope: Scope) -> Iterator[ast.expr]:
    name = dotted_name(node.func)
    last = name.rpartition(".")[2]
    if name.endswith(evaluate.ENVIRONMENT) or last in evaluate.WORLD:
        yield node
        return
    own = scope.program.code.local_function(node) if scope.program is not None and scope.user else None
    if own is not None or (scope.user and isinstance(node.func, ast.Name) and _is_imported_own(name, scope)):
        yield node
        return
    if isinstance(node.func, ast.Attribute) and _is_own_method(node.func, scope):
        yield node
        return
    yield from operands_of(node, scope)


def _is_own_method(node: ast.Attribute, scope: Scope) -> bool:
    """True if an attribute is called that is a method of a class of the program, as far as its name shows."""
    if not scope.user or scope.program is None:
        return False
    if isinstance(node.value, ast.Call):  # of an object that is made right there
        name = dotted_name(node.value.func)
        return name in scope.program.code.imports or any(c.name == name for c in scope.program.code.nodes(ast.ClassDef))
    if not dotted_name(node) or _is_object(node, scope):
        return False
    if isinstance(node.value, ast.Name) and (node.value.id == "super" or _is_outside(node.value.id, scope)):
        return False
    programs = (scope.program, *(each.program for each in scope.callers if each.user and each.program is not None))
    return any(p.code.class_of(f) is not None for p in programs for f in p.code.functions.get(node.attr, ()))


def operands_of(node: ast.Call, scope: Scope) -> Iterator[ast.expr]:
    """Yield what a call that is not entered gets, and the object whose method it is."""
    whole = isinstance(node.func, ast.Attribute) and _is_object(node.func, scope)
    called = scope.value(node.func) if isinstance(node.func, ast.Name) else MISSING
    if whole or (
        called is not MISSING and scopes.is_plain_value(called)
    ):  # what is called makes the value, what it gets only goes in
        yield node.func
    for part in (*node.args, *(k.value for k in node.keywords)):
        yield from _leaves(part, scope)
    if isinstance(node.func, ast.Attribute):
        yield from () if whole else _leaves(node.func.value, scope)
    elif isinstance(node.func, ast.Name) and called is MISSING and not _is_outside(node.func.id, scope):
        yield node.func


def _is_object(node: ast.Attribute, scope: Scope) -> bool:
    """True if an attribute holds an object that is called, such as a layer, and is no method."""
    value = scope.value(node)
    if value is not MISSING:
        return scopes.is_plain_value(value)
    home = (
        scope.program.code.class_of(node) if scope.program is not None and node in scope.program.code.parent else None
    )
    return (
        home is not None and scope.program is not None and bool(scope.program.bindings.get((home, dotted_name(node))))
    )


def _is_imported_own(name: str, scope: Scope) -> bool:
    """True if a function comes from a module beside the program: one that torch or the standard library has not."""
    imported = scope.program.code.imports.get(name, "") if scope.program is not None else ""
    value = scope.value(ast.Name(name))
    if value is not MISSING:
        return type(value) is types.FunctionType and not is_library(value.__code__.co_filename)
    return bool(imported) and "torch" not in imported


def _is_outside(name: str, scope: Scope) -> bool:
    """True for a name that is imported, built in, or a function or class."""
    value = scope.value(ast.Name(name))
    if value is not MISSING:
        return not scopes.is_plain_value(value)
    if scope.program is None:
        return False
    code = scope.program.code
    bound = {n for s, n in scope.program.bindings if n == name}
    if name in code.imports or name in code.functions or any(c.name == name for c in code.nodes(ast.ClassDef)):
        return not bound or name in code.imports or name in code.functions
    return name in dir(__builtins__) and not bound
