"""DeepSpeed engines: results of `deepspeed.initialize`, and variables named like them."""

from __future__ import annotations

import ast
import re

from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_INITIALIZE = "deepspeed.initialize"
_NAME = re.compile(r"_*(\w+_)?(engine|deepspeed|ds)(_model|_engine)?_*|_*(model|net|module)_engine|model_wrapped")


def made_by_deepspeed(code: Code, node: ast.expr, depth: int = 3) -> bool:
    """True if an expression is the engine that `deepspeed.initialize` returns first."""
    if isinstance(node, ast.Subscript):
        made = code.values(node.value) if dotted_name(node.value) else [node.value]
        return code.constant(node.slice) == 0 and all(_initializes(code, m) for m in made)
    if not depth or not dotted_name(node):
        return False
    bound = [b for b in code.bound(node) if not _is_nothing(b.value)]
    return bool(bound) and all(
        _first_of(code, b.node, node) or (b.value is not None and made_by_deepspeed(code, b.value, depth - 1))
        for b in bound
    )


def is_engine(code: Code, node: ast.expr) -> bool:
    """True if an expression is a DeepSpeed engine, by its value, or by its name if the value is unknown."""
    if made_by_deepspeed(code, node):
        return True
    last = node.attr if isinstance(node, ast.Attribute) else dotted_name(node)
    return bool(_NAME.fullmatch(last)) and not any(
        isinstance(v, ast.Call) and not code.name(v.func).startswith("deepspeed.") for v in code.values(node)
    )


def _is_nothing(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _initializes(code: Code, node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and code.name(node.func) == _INITIALIZE


def _first_of(code: Code, node: ast.AST, name: ast.expr) -> bool:
    """True for `engine, optimizer, _, _ = deepspeed.initialize(...)` if the name is the first target."""
    if not isinstance(node, ast.Assign) or not _initializes(code, node.value):
        return False
    return any(
        isinstance(t, ast.Tuple | ast.List) and bool(t.elts) and dotted_name(t.elts[0]) == dotted_name(name)
        for t in node.targets
    )
