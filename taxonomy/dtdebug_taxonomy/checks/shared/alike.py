"""Values that are the same on all ranks, and names that are bound on every path."""

from __future__ import annotations

import ast
import re

from dtdebug_taxonomy.source.python.bindings import surely_before
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import is_size, rank, several

_OPTIONS = re.compile(r"(\w+\.)*_?(args?|cfg|conf|config|opts?|options|hparams|hps|params|flags|FLAGS|settings)")
"""Objects that hold what the command line or a file says."""
_COUNTS = re.compile(r"(\w+_)?(i|it|n|step|steps|epoch|epochs|iter|iters|iteration|idx|index)(_\w+)?")
_COUNTED = frozenset(("sync_gradients", "training"))
"""Attributes of frameworks' objects that follow the number of the step."""
_ALIKE_CALLS = frozenset(
    (
        "int",
        "bool",
        "float",
        "str",
        "min",
        "max",
        "round",
        "abs",
        "isinstance",
        "hasattr",
        "getattr",
        "range",
        "enumerate",
    )
)
_OPERATORS = (
    *(
        ast.BoolOp,
        ast.BinOp,
        ast.UnaryOp,
        ast.Compare,
        ast.IfExp,
        ast.Tuple,
        ast.List,
        ast.Set,
        ast.Dict,
        ast.FormattedValue,
    ),
    ast.JoinedStr,
)
_DEEPEST = 4


def is_alike(code: Code, node: ast.expr | None, depth: int = _DEEPEST) -> bool:
    """True if an expression has the same value on all ranks, by this file: constants, options, counted steps."""
    if node is None or depth < 0:
        return False
    if isinstance(node, ast.Constant) or is_size(code, node) or several(code, node) is not None:
        return True
    if rank(code, node):
        return False
    if isinstance(node, _OPERATORS):
        return all(is_alike(code, n, depth) for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr))
    if isinstance(node, ast.Subscript):
        return is_alike(code, node.value, depth - 1) and is_alike(code, node.slice, depth - 1)
    if isinstance(node, ast.Call):
        known = code.name(node.func) in _ALIKE_CALLS or code.name(node.func) == "argparse.ArgumentParser"
        return known and all(is_alike(code, a, depth - 1) for a in (*node.args, *(k.value for k in node.keywords)))
    name = dotted_name(node)
    owner, _, last = name.rpartition(".")
    if not name or (owner and _OPTIONS.fullmatch(owner)):
        return bool(name)
    return _is_alike_name(code, node, last, depth)


def _is_alike_name(code: Code, node: ast.expr, last: str, depth: int) -> bool:
    bound = code.bound(node)
    if not bound:
        return (
            isinstance(node, ast.Name) or last in _COUNTED or bool(_COUNTS.fullmatch(last) or _OPTIONS.fullmatch(last))
        )
    for b in bound:
        if b.how == "argument":
            if not (_COUNTS.fullmatch(last) or _OPTIONS.fullmatch(last)) and not _are_alike(code, node, depth):
                return False
        elif b.how == "loop":
            if not _is_counted(code, b.node, node):
                return False
        elif isinstance(b.node, ast.AugAssign):
            if not is_alike(code, b.node.value, depth - 1):
                return False
        elif b.how not in {"import", "definition"} and not is_alike(code, b.value, depth - 1):
            return False
    return True


def _are_alike(code: Code, node: ast.expr, depth: int) -> bool:
    """True if the values that callers in this file pass are known, and alike."""
    values = [v for v in code.values(node) if v is not None]
    return bool(values) and all(v is not node and is_alike(code, v, depth - 1) for v in values)


def _is_counted(code: Code, loop: ast.AST, node: ast.expr) -> bool:
    """True for the number of a turn: ranks that are in the same turn have the same one."""
    if not isinstance(loop, ast.For | ast.AsyncFor) or not isinstance(loop.iter, ast.Call):
        return False
    called = code.name(loop.iter.func).rpartition(".")[2]
    if called in {"range", "trange", "count"}:
        return True
    first = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) and loop.target.elts else None
    return called == "enumerate" and dotted_name(first) == dotted_name(node)


def is_bound(code: Code, name: ast.expr) -> bool:
    """True if a name is bound on every path to its place, as far as this file binds it at all."""
    bound = code.bound(name)
    around = {id(a) for a in code.ancestors(name)}
    if not bound or isinstance(name, ast.Attribute):
        return True
    for b in bound:
        if b.how in {"argument", "import", "definition"} or code.function(b.node) is not code.function(name):
            return True
        if id(b.node) in around and b.how in {"loop", "with"}:
            return True
        if id(b.node) not in around and code.order[b.node] < code.order[name] and surely_before(code, b.node, name):
            return True
    return False
