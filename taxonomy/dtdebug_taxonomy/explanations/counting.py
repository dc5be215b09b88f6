"""Finds the line that decides how many elements a container has: of its making, what its length depends on."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from dtdebug_taxonomy.inference.account_call import parse_line
from dtdebug_taxonomy.model.account import Link

_KEEPS = frozenset({"list", "tuple", "sorted", "reversed", "enumerate", "iter", "zip", "tqdm"})
"""Calls whose result has as many elements as their first argument."""


def counting_link(chain: Sequence[Link]) -> Link | None:
    """Return the link of a way back at which the number of elements was decided; None if it is unknown."""
    at, grew = 0, False
    while chain:
        link = chain[at]
        node = _expression(link)
        if grew := _grows(node):
            inner = next((n for n in range(at + 1, len(chain)) if chain[n].depth == link.depth + 1), None)
        else:
            node = _part_as_long(node)
            name = ast.unparse(node) if node is not None else ""
            inside = [n for n in range(at + 1, len(chain)) if chain[n].depth == link.depth + 1]
            inner = next((n for n in inside if chain[n].value.name == name), None)
        if inner is None:
            return link if at and not grew else None
        at = inner
    return None


def counted_by(link: Link) -> str:
    """Return the words of what has as many elements as a link's value, or is their number; empty if unknown."""
    node = _part_as_long(_expression(link))
    return ast.unparse(node) if node is not None else ""


def _expression(link: Link) -> ast.expr | None:
    begin, end = link.place.mark if link.how == "passed" else (0, 0)
    match parse_line(link.place.code[begin:end] if begin < end else link.place.code):
        case ast.Module(body=[ast.Assign(value=value)]):
            return value
        case ast.Module(body=[ast.AnnAssign(value=ast.expr() as value)]):
            return value
        case ast.Module(body=[ast.Expr(value=value)]) | ast.Module(body=[ast.For(iter=value)]):
            return value
        case ast.Module() as tree:
            return next((n.value for n in ast.walk(tree) if isinstance(n, ast.Return)), None)
    return None


def _grows(node: ast.expr | None) -> bool:
    """True for `x.append(y)`, whose first link is what the loop around it goes through."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("append", "add")


def _part_as_long(node: ast.expr | None) -> ast.expr | None:
    """Return the part of an expression that has as many elements as the whole."""
    while True:
        match node:
            case ast.ListComp(generators=[one]) | ast.GeneratorExp(generators=[one]) if not one.ifs:
                node = one.iter
            case ast.Call(func=ast.Name(id=name), args=[first, *_]) if name in _KEEPS:
                node = first
            case ast.Call(func=ast.Name(id="range"), args=[last]):
                node = last
            case ast.Call(func=ast.Attribute(attr="chunk" | "tensor_split"), args=[*_, last]):
                node = last
            case ast.IfExp(body=body, orelse=ast.Constant(value=None)):
                node = body
            case _:
                return node
