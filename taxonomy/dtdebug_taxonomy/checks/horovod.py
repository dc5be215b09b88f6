"""Calls of Horovod, whichever framework's module they come from."""

from __future__ import annotations

import ast

from dtdebug_taxonomy.source.python import Code

MODULES = tuple(
    f"horovod.{m}" for m in ("torch", "tensorflow", "tensorflow.keras", "keras", "mxnet", "tensorflow.tfkeras")
)


def calls(code: Code, *names: str) -> list[ast.Call]:
    """Calls of Horovod's functions by their last name."""
    return code.calls(*(f"{module}.{name}" for module in MODULES for name in names))


def prefix(code: Code, call: ast.Call) -> str:
    """What stands before the function's name, with the dot (`hvd.`); empty where it was imported by itself."""
    return f"{code.source_of(call.func.value)}." if isinstance(call.func, ast.Attribute) else ""
