"""Finds calls that may return a wrapped model: of this file, of Accelerate, of the project's other modules."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial

from dtdebug_taxonomy.checks.shared.forwarding import results
from dtdebug_taxonomy.checks.shared.preparing import PREPARED, PREPARES, prepares
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import Function

_MAKES = re.compile(r"wrap|ddp|fsdp|distribut|parallel|build|make|create|setup|set_up|prepare|init|get|load|model")
"""Names of functions of other modules that may return a wrapped model."""


def code_of(code: Code, call: ast.Call) -> tuple[Code, Function] | None:
    """Return the function that a call refers to and its file, this one or another that the imports lead to."""
    if (function := code.local_function(call)) is not None:
        return code, function
    if code.project is None or not dotted_name(call.func) or not code.project.may_hold(code, call.func):
        return None
    defined = code.project.resolve_call(code, call)
    if defined is None or isinstance(defined.node, ast.ClassDef) or not defined.code.is_plain(defined.node):
        return None
    return defined.code, defined.node


def may_wrap(code: Code, names: set[str]) -> bool:
    """True if a model can come from one of these callables, called here or in the project's modules."""
    key = "_may_wrap", frozenset(names)
    known: dict[object, tuple[bool, set[str]]] = code.__dict__.setdefault("_may_wrap", {})
    if key not in known:
        find = partial(_may_wrap, code, names)
        known[key] = code.project.noting(find) if code.project is not None else (find(), set())
    answer, consulted = known[key]
    if code.project is not None:
        code.project.consulted |= consulted
    return answer


def wrapped_names(code: Code, names: set[str]) -> set[str]:
    """Return the names in this file that may hold a wrapped model, by the calls assigned to them."""
    found = {name for call in code.calls(*names) for name in results(code, call)}
    for assign in code.nodes(ast.Assign):
        if isinstance(assign.value, ast.Call) and not found.issuperset(given := set(_target_names(assign))):
            made = assign.value
            if prepares(made) or _wraps_elsewhere(code, made, names):
                found |= given
    return found


def _target_names(assign: ast.Assign) -> Iterator[str]:
    for target in assign.targets:
        for part in target.elts if isinstance(target, ast.Tuple | ast.List) else (target,):
            if name := dotted_name(part):
                yield name


def _may_wrap(code: Code, names: set[str]) -> bool:
    if code.calls(*names) or (PREPARED in names and code.methods(*PREPARES)):
        return True
    if code.project is None or not code.imports_any("torch", "accelerate"):
        return False
    for call in code.nodes(ast.Call):
        if isinstance(code.parent.get(call), ast.Assign) and _wraps_elsewhere(code, call, names):
            return True
    return False


def _wraps_elsewhere(code: Code, call: ast.Call, names: set[str]) -> bool:
    """True if a call leads to another module of the project that wraps models."""
    if not _MAKES.search(dotted_name(call.func).rpartition(".")[2]):
        return False
    defined = code_of(code, call)
    return defined is not None and defined[0] is not code and bool(defined[0].calls(*names))
