"""Calls of Horovod, from any framework's module."""

from __future__ import annotations

import ast

from dtdebug_taxonomy.source.python.code import Code

MODULES = tuple(
    f"horovod.{m}" for m in ("torch", "tensorflow", "tensorflow.keras", "keras", "mxnet", "tensorflow.tfkeras")
)


def calls(code: Code, *names: str) -> list[ast.Call]:
    """Return the calls of Horovod's functions with these unqualified names."""
    return code.calls(*(f"{module}.{name}" for module in MODULES for name in names))


def prefix(code: Code, call: ast.Call) -> str:
    """Return the qualifier of the called function, with the dot (`hvd.`); empty if it was imported directly."""
    return f"{code.source_of(call.func.value)}." if isinstance(call.func, ast.Attribute) else ""
