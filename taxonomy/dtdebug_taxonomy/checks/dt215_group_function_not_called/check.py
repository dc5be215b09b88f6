"""`if dist.get_rank == 0:`, `if dist.is_initialized:`: the function itself is tested, not its result."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared import horovod
from dtdebug_taxonomy.checks.shared.names import DIST
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.text import Span

_ASKED = {DIST + n for n in ("get_rank", "get_world_size", "is_initialized", "is_available", "get_backend")}
_ASKED |= {f"{m}.{n}" for m in horovod.MODULES for n in ("rank", "size", "local_rank", "local_size", "is_initialized")}
_OWN = {"get_rank", "get_world_size", "get_local_rank", "is_main_process", "is_master", "is_dist_avail_and_initialized"}
"""Functions that programs write themselves for the same purpose; they count if this file defines them."""
_LAST = {name.rpartition(".")[2] for name in _ASKED} | _OWN
_AROUND = {ast.Compare, ast.UnaryOp, ast.BoolOp, ast.If, ast.While, ast.IfExp, ast.Assert}
_IDENTITY = (ast.Is, ast.IsNot, ast.In, ast.NotIn)


def check(code: Code) -> Iterator[Hit]:
    """Report the name of the function."""
    for node in (*code.nodes(ast.Attribute), *code.nodes(ast.Name)):
        if type(code.parent[node]) not in _AROUND or not isinstance(node.ctx, ast.Load) or not _is_function(code, node):
            continue
        compared = _is_compared(code, node)
        if not compared and not _is_tested(code, node):
            continue
        last = code.name(node).rpartition(".")[2]
        what = "is never equal to a number or a name" if compared else "is always true"
        end = code.span(node).end
        yield Hit(
            code.span(node),
            f"This is the function {last} itself, which {what}: it is not called, so the condition is the same on "
            "every rank.",
            Fix("Call it", (Edit(Span(end, end), "()"),), safe=False),
        )


def _is_function(code: Code, node: ast.Attribute | ast.Name) -> bool:
    last = node.attr if isinstance(node, ast.Attribute) else node.id
    if last not in _LAST and last not in code.imports:
        return False
    if code.name(node) in _ASKED:
        return True
    if not isinstance(node, ast.Name) or node.id not in _OWN or node.id not in code.at_top:
        return False
    bound = code.bound(node)
    return bool(bound) and all(isinstance(b.node, ast.FunctionDef) for b in bound)


def _is_compared(code: Code, node: ast.expr) -> bool:
    up = code.parent[node]
    return isinstance(up, ast.Compare) and not any(isinstance(op, _IDENTITY) for op in up.ops)


def _is_tested(code: Code, node: ast.expr) -> bool:
    """True if a node is a condition, or an operand of one."""
    inner: ast.AST = node
    for up in code.ancestors(node):
        if isinstance(up, ast.UnaryOp) and isinstance(up.op, ast.Not):
            return True
        if isinstance(up, ast.If | ast.While | ast.IfExp | ast.Assert):
            return inner is up.test
        if not isinstance(up, ast.BoolOp):
            return False
        inner = up
    return False
