"""Values that are reached through another name: `args.rank` of an argument, `config.backend` of an object made here."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtdebug_taxonomy.source.bindings import reaching
from dtdebug_taxonomy.source.names import dotted

if TYPE_CHECKING:
    from dtdebug_taxonomy.source.python import Binding, Code


def through(code: Code, node: ast.expr, name: str, depth: int) -> list[Binding]:
    """The bindings of a dotted name that nothing binds as it is written; none where they can't be told.

    Its longest part that is bound, and only once, is followed: to what a caller passes, or to
    an object of a class of this file.
    """
    head, _, rest = name.rpartition(".")
    while head and head not in {"self", "cls"}:
        found = reaching(code, node, head, depth)
        if found:
            value = found[0].value if len(found) == 1 and found[0].how == "assign" else None
            if value is None or value is node:
                return []
            if dotted(value):
                return reaching(code, value, f"{dotted(value)}.{rest}", depth) if depth else []
            return _of_object(code, value, rest) if isinstance(value, ast.Call) else []
        head, _, last = head.rpartition(".")
        rest = f"{last}.{rest}"
    return []


def class_behind(code: Code, node: ast.expr) -> ast.ClassDef | None:
    """The class of this file of which an expression is surely an object; None if it can't be told."""
    if dotted(node) in {"self", "cls"}:
        return code.class_of(node)
    values = code.values(node)
    made = values[0] if len(values) == 1 else None
    classes = code.at_top.get(dotted(made.func), []) if isinstance(made, ast.Call) else []
    return classes[0] if len(classes) == 1 and isinstance(classes[0], ast.ClassDef) else None


def made_elsewhere(code: Code, owner: ast.ClassDef) -> bool:
    """Whether objects of a class get their arguments where this file does not tell: another class stands on it."""
    return any(dotted(b).rpartition(".")[2] == owner.name for c in code.nodes(ast.ClassDef) for b in c.bases)


def _of_object(code: Code, made: ast.Call, attribute: str) -> list[Binding]:
    """What binds an attribute of an object of this file's class that nothing outside of the class sets."""
    classes = code.at_top.get(dotted(made.func), [])
    if len(classes) != 1 or not isinstance(owner := classes[0], ast.ClassDef) or _set_outside(code, owner, attribute):
        return []
    found = code.bindings.get((owner, f"self.{attribute}"))
    if found:
        return found
    found = code.bindings.get((owner, attribute), [])
    if not any("dataclass" in code.source_of(d) for d in owner.decorator_list):
        return found
    if made.args or code.has_unpacking(made):
        return []
    given = code.argument(made, attribute)
    return [b._replace(value=given if given is not None else _default(code, b.value)) for b in found]


def _set_outside(code: Code, owner: ast.ClassDef, attribute: str) -> bool:
    return any(
        n.attr == attribute and isinstance(n.ctx, ast.Store) and code.class_of(n) is not owner
        for n in code.nodes(ast.Attribute)
    )


def _default(code: Code, value: ast.expr | None) -> ast.expr | None:
    """The value of a field of a dataclass: `field(default=1)`, `field(default_factory=lambda: 1)`."""
    if not isinstance(value, ast.Call) or code.name(value.func) != "dataclasses.field":
        return value
    factory = code.argument(value, "default_factory")
    return factory.body if isinstance(factory, ast.Lambda) else code.argument(value, "default")
