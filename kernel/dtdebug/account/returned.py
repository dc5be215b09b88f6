"""Values that living objects still hold of functions that have returned: the object of a method, kept parameters."""

from __future__ import annotations

import ast

from dtdebug.account import scopes
from dtdebug.account.objects import MISSING, attribute, bases, class_of_value, name_of
from dtdebug.account.scopes import Scope
from dtdebug.account.sources import Program
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS


def object_of(owner: object) -> dict[str, object]:
    """Return the object of a method by its name in the method; nothing if it is not known."""
    return {} if owner is MISSING or not scopes.is_plain_value(owner) else {"self": owner}


def of_method(call: ast.Call, function: ast.AST, program: Program | None, caller: Scope) -> dict[str, object]:
    """Return the object whose method a call entered."""
    if program is None or not isinstance(call.func, ast.Attribute) or not isinstance(function, FUNCTIONS):
        return {}
    first = next(iter((*function.args.posonlyargs, *function.args.args)), None)
    owner = caller.value(call.func.value)
    if first is None or first.arg != "self" or owner is MISSING:
        return {}
    defined = program.code.class_of(function)
    own = defined is not None and defined.name in map(name_of, bases(class_of_value(owner)))
    return object_of(owner) if own else {}


def of_constructor(method: ast.AST, program: Program, owner: object) -> dict[str, object]:
    """Return an object, and the parameters of its `__init__` that it keeps as they were: `self.config = config`."""
    found = object_of(owner)
    defined = program.code.class_of(method)
    if not isinstance(method, FUNCTIONS) or method.name != "__init__" or defined is None or not found:
        return found
    for row in method.body:
        match row:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=ast.Name(id=given)
            ) if len(program.bindings.get((defined, f"self.{name}"), ())) == 1 == len(
                program.bindings.get((method, given), ())
            ) and scopes.parameter(Scope(program.file, 0, "", node=method), given):
                found[given] = attribute(owner, name)
    return {name: value for name, value in found.items() if value is not MISSING}
