"""Finds where a program sets and reads environment variables."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from dtdebug_taxonomy.model.launch_variables import LOCAL_RANK, LOCAL_WORLD_SIZE, NODE_RANK, NODES, RANK, WORLD_SIZE
from dtdebug_taxonomy.source.python.code import Code

RANKS = {*RANK, *LOCAL_RANK, *NODE_RANK}
SIZES = {*WORLD_SIZE, *LOCAL_WORLD_SIZE, *NODES, "MASTER_PORT"}
RENDEZVOUS = {"MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"}


class Setting(NamedTuple):
    """Assignment to an environment variable."""

    variable: str
    """Name of the variable; empty if it is computed."""
    value: ast.expr
    node: ast.stmt | ast.Call
    only_if_unset: bool = False


class VariableRead(NamedTuple):
    """Expression that reads an environment variable."""

    variable: str
    default: ast.expr | None = None
    must: bool = False
    """True if read as `os.environ["X"]`, an error if it is not set."""


def settings(code: Code) -> Iterator[Setting]:
    """Yield all places that set a variable, grouped by kind."""
    for assign in code.nodes(ast.Assign):
        for target, value in _pairs(assign):
            if isinstance(target, ast.Subscript) and is_environment(code, target.value):
                yield Setting(_text(code, target.slice), value, assign)
    for call in code.methods("setdefault", "__setitem__"):
        if len(call.args) > 1 and _on_environment(code, call.func):
            yield Setting(_text(code, call.args[0]), call.args[1], call, only_if_unset=_last(call) == "setdefault")
    for call in code.methods("update"):
        if _on_environment(code, call.func):
            yield from (Setting(k.arg, k.value, call) for k in call.keywords if k.arg)
            for table in call.args:
                yield from _entries(code, table, call)
    for call in code.calls("os.putenv"):
        if len(call.args) > 1:
            yield Setting(_text(code, call.args[0]), call.args[1], call)


def _pairs(assign: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    for target in assign.targets:
        if isinstance(target, ast.Tuple) and isinstance(assign.value, ast.Tuple):
            yield from zip(target.elts, assign.value.elts, strict=False)
        else:
            yield target, assign.value


def _on_environment(code: Code, func: ast.expr) -> bool:
    return isinstance(func, ast.Attribute) and is_environment(code, func.value)


def _last(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _entries(code: Code, table: ast.expr, call: ast.Call) -> Iterator[Setting]:
    if isinstance(table, ast.Name):
        values = code.values(table)
        table = values[0] if len(values) == 1 and values[0] is not None else table
    if isinstance(table, ast.Dict):
        for key, value in zip(table.keys, table.values, strict=True):
            if key is not None:
                yield Setting(_text(code, key), value, call)
    elif isinstance(table, ast.Call) and code.name(table.func) == "dict":
        yield from (Setting(k.arg, k.value, call) for k in table.keywords if k.arg)


def reading(code: Code, node: ast.expr | None) -> VariableRead | None:
    """Return the variable that an expression reads; None if it reads none or the name is unknown."""
    if isinstance(node, ast.Subscript) and is_environment(code, node.value):
        name = _text(code, node.slice)
        return VariableRead(name, must=True) if name else None
    if not isinstance(node, ast.Call) or not node.args:
        return None
    reads = _last(node) in {"get", "pop", "setdefault"} and _on_environment(code, node.func)
    if not reads and code.name(node.func) != "os.getenv":
        return None
    name = _text(code, node.args[0])
    return VariableRead(name, code.argument(node, "default", 1)) if name else None


def is_environment(code: Code, node: ast.expr) -> bool:
    """True if an expression is `os.environ`, under any name."""
    if code.name(node) == "os.environ":
        return True
    if not isinstance(node, ast.Name):
        return False
    values = code.values(node)
    return len(values) == 1 and values[0] is not None and code.name(values[0]) == "os.environ"


def _text(code: Code, node: ast.expr) -> str:
    value = code.constant(node)
    return value if isinstance(value, str) else ""
