"""Finds collectives that a call leads to in another module or in a method, by following the project."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from dtdebug_taxonomy.checks.shared.diverging import Diverging, collective_helpers, condition, is_sure, last_name
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.project import FoundDefinition, Project
from dtdebug_taxonomy.source.python.syntax import Function

_DEEPEST = 4
"""Maximum depth of nested calls to follow."""


def diverging_elsewhere(code: Code) -> list[Diverging]:
    """Return calls under a condition on the rank that lead to a collective which other code makes for all ranks."""
    found: list[Diverging] | None = code.__dict__.get("_diverging_elsewhere")
    if found is None:
        found = code.__dict__["_diverging_elsewhere"] = list(_diverging_elsewhere(code))
    return found


def _diverging_elsewhere(code: Code) -> Iterator[Diverging]:
    project = code.project
    if project is None:
        return
    alike: dict[str, list[ast.AST]] = {}
    for call in code.nodes(ast.Call):
        if not guards(code).around(call):
            continue
        local = code.local_function(call)
        if local in collective_helpers(code) or (local is None and not project.may_hold(code, call.func)):
            continue
        defined = FoundDefinition(code, local) if local is not None else project.resolve_call(code, call)
        origin = reached_collective(project, defined, _DEEPEST) if defined is not None else None
        if defined is None or origin is None:
            continue
        name = last_name(code, call)
        if not alike.get(name):
            alike[name] = [c for c in code.nodes(ast.Call) if last_name(code, c) == name]
        if (guard := condition(code, call, alike[name])) is not None:
            place = f" in {_module(defined)}" if defined.code is not code else ""
            yield Diverging(call, f"{name}(), which calls {origin}(){place},", guard)


def reached_collective(project: Project, defined: FoundDefinition, left: int) -> str | None:
    """Return the default-group collective that a function definitely makes, directly or through others."""
    code, node = defined
    known: dict[tuple[ast.AST, int], tuple[str | None, set[str]]] = code.__dict__.setdefault("_reached", {})
    if (node, left) not in known:
        known[node, left] = None, set()  # stops at recursion
        if not isinstance(node, ast.ClassDef):
            known[node, left] = project.noting(partial(_find_collective, project, code, node, left))
    origin, consulted = known[node, left]
    project.consulted |= consulted
    return origin


def _find_collective(project: Project, code: Code, function: Function, left: int) -> str | None:
    if code.role == "test" or not code.is_plain(function):
        return None
    own = collective_helpers(code)
    if function in own:
        return last_name(code, own[function])
    if not left:
        return None
    for call in code.inside(function, ast.Call):
        if not dotted_name(call.func) or code.function(call) is not function:
            continue
        defined = project.resolve_call(code, call)
        if defined is None or defined.node is function:
            continue
        origin = reached_collective(project, defined, left - 1)
        if origin is not None and is_sure(code, call) and not guards(code).around(call):
            return origin
    return None


def _module(defined: FoundDefinition) -> str:
    return defined.code.path.rpartition("/")[2]
