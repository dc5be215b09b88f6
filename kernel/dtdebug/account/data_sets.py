"""The method of a data set that gives the samples of a loader, which runs it in a library or in another process."""

from __future__ import annotations

import ast
from typing import Any

from dtdebug.account.makers import creation, of_class
from dtdebug.account.objects import MISSING, attribute, class_of_value, is_exactly, is_kind, loaded, module_of
from dtdebug.account.scopes import Scope
from dtdebug.account.sources import Sources
from dtdebug_taxonomy.source.python.names import dotted_name, keyword
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS

_WRAPPERS = frozenset({"enumerate", "zip", "tqdm", "iter", "reversed", "list", "islice", "cycle", "next", "trange"})
_LOADERS = ("DataLoader", "StatefulDataLoader")


def sampling_method(node: ast.expr, scope: Scope, sources: Sources) -> Scope | None:
    """Return `__getitem__` of the data set that a loader, or what wraps it, goes through."""
    while isinstance(node, ast.Call) and dotted_name(node.func).rpartition(".")[2] in _WRAPPERS and node.args:
        node = node.args[0]
    local: dict[str, Any] = {}
    own = None
    value = scope.value(node)
    if is_kind(value, loaded("torch.utils.data", "DataLoader")):
        value = attribute(value, "dataset")
        home = scope.program
        kind = class_of_value(value) if value is not MISSING else None
        local = {"self": value}
        if kind is None or home is None or module_of(kind).startswith("torch"):
            return None
        name = type.__dict__["__name__"].__get__(kind)
        own = sources.of_module(module_of(kind), scope.file) if module_of(kind) != "__main__" else None
    else:
        made = creation(node, scope, sources)
        if made is None or dotted_name(made[0].func).rpartition(".")[2] not in _LOADERS:
            return None
        call, scope = made
        given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "dataset"), None)
        inner = creation(given, scope, sources) if given is not None else None
        if inner is None:
            return None
        name, home = dotted_name(inner[0].func), scope.program
    for program in filter(None, (own, home, _program_of(name, scope, sources))):
        for defined in program.code.nodes(ast.ClassDef):
            if defined.name != name:
                continue
            for each in defined.body:
                if isinstance(each, FUNCTIONS) and each.name in ("__getitem__", "__iter__"):
                    last = (each.end_lineno or each.lineno) + 1
                    return Scope(program.file, last, each.name, program=program, node=each, local=local)
    return None


def empty_part(node: ast.expr, scope: Scope, sources: Sources) -> ast.Attribute | None:
    """Return the empty list of an object of the program whose length is the object's own: `__len__` asks for it."""
    value = scope.value(node)
    found = of_class(node, scope, sources) if value is not MISSING and isinstance(node, ast.Name) else None
    for each in found[1].body if found is not None else ():
        if isinstance(each, FUNCTIONS) and each.name == "__len__":
            match each.body[-1]:
                case ast.Return(value=ast.Call(func=ast.Name(id="len"), args=[ast.Attribute(ast.Name("self"), name)])):
                    held = attribute(value, name)
                    return ast.Attribute(node, name) if is_exactly(held, (list, tuple, dict)) and not held else None
    return None


def loading_call(node: ast.expr, scope: Scope, sources: Sources) -> tuple[ast.Call, Scope, ast.expr | None] | None:
    """Return the call that made a loader without a `collate_fn`, and that of another loader of the file."""
    while isinstance(node, ast.Call) and dotted_name(node.func).rpartition(".")[2] in _WRAPPERS and node.args:
        node = node.args[0]
    made = creation(node, scope, sources)
    if made is None or dotted_name(made[0].func).rpartition(".")[2] not in _LOADERS or made[1].program is None:
        return None
    given = [keyword(call, "collate_fn") for call in made[1].program.code.nodes(ast.Call)]
    named = {each.id: each for each in given if isinstance(each, ast.Name)}
    return (*made, next(iter(named.values())) if len(named) == 1 else None)


def _program_of(name: str, scope: Scope, sources: Sources) -> Any:
    """Return the program that a class was imported from."""
    imported = scope.program.code.imports.get(name, "") if scope.program is not None else ""
    module = imported.rpartition(".")[0]
    return sources.of_module(module, scope.file) if module else None
