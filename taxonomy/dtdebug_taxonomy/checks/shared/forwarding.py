"""Finds where a model runs: calls of its names, and of local functions that call their argument."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from dtdebug_taxonomy.checks.shared.diverging import condition
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name


def forwards(code: Code, names: set[str]) -> Iterator[tuple[ast.Call, ast.expr, Sequence[ast.AST]]]:
    """Yield the calls that run a model of these names: (call, model, calls that do the same)."""
    calls = code.nodes(ast.Call) if names else []
    same: dict[str, list[ast.AST]] = {}
    for call in calls:
        if (written := _called_name(call)) in names:
            same.setdefault(written, []).append(call)
    for call in calls:
        written = _called_name(call)
        if written in names:
            yield call, _model(call), same[written]
        elif function := code.local_function(call):
            for name, value in _passed_arguments(code, call, function):
                if dotted_name(value) in names and _calls(code, function, name):
                    yield call, value, code.callers[function]


def names_of(code: Code, given: Iterable[str]) -> set[str]:
    """Return all names of a model in this file, including those of parameters that it is passed for."""
    found = set(given)
    for function, callers in code.callers.items() if found else ():
        for call in callers:
            found |= {name for name, value in _passed_arguments(code, call, function) if dotted_name(value) in found}
    return found


def results(code: Code, call: ast.Call, depth: int = 2) -> set[str]:
    """Return the names that a call's result is assigned to, also by callers of a function that returns it."""
    statement = code.statement(call)
    if isinstance(statement, ast.Assign):
        return {dotted_name(t) for t in statement.targets} - {""}
    function = code.function(call) if isinstance(statement, ast.Return) and depth else None
    callers = code.callers.get(function, ()) if function is not None else ()
    return {name for c in callers for name in results(code, c, depth - 1)}


def _model(call: ast.Call) -> ast.expr:
    return call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "forward" else call.func


def _called_name(call: ast.Call) -> str:
    return dotted_name(_model(call))


def _passed_arguments(
    code: Code, call: ast.Call, function: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[tuple[str, ast.expr]]:
    """Yield the parameters of a function with the values that a call passes."""
    positions = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    if positions and positions[0] in {"self", "cls"} and isinstance(code.parent.get(function), ast.ClassDef):
        positions = positions[1:]
    yield from zip(positions, (a for a in call.args if not isinstance(a, ast.Starred)), strict=False)
    yield from ((k.arg, k.value) for k in call.keywords if k.arg)


def _calls(code: Code, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    """True if a function calls its argument, whatever the rank."""
    return any(_called_name(c) == name and condition(code, c) is None for c in code.inside(function, ast.Call))
