"""Ranks of several machines that are sent to localhost for their rendezvous."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.environment import settings
from dtdebug_taxonomy.checks.shared.names import INIT
from dtdebug_taxonomy.checks.shared.values import is_number
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_HERE = re.compile(r"^(localhost|127\.0\.0\.1|::1)$")
_TCP_HERE = re.compile(r"^tcp://(localhost|127\.0\.0\.1|\[::1\])[:/]")
_NODES = re.compile(r"^(n_?nodes|num_?nodes|n_nodes|nodes|node_?count|num_machines|n_machines|machines|nnode)$")
_NODE = re.compile(r"^(node_?rank|node_?id|nr|machine_?rank|node_?index)$")


def check(code: Code) -> Iterator[Hit]:
    """Report the address."""
    places = [
        s.value
        for s in settings(code)
        if s.variable == "MASTER_ADDR" and not s.only_if_unset and not _is_conditional(code, s.node)
    ]
    places = [p for p in places if _HERE.match(_text(p))]
    for call in code.calls(INIT):
        method = code.argument(call, "init_method", 1)
        if method is not None and _TCP_HERE.match(_text(method)):
            places.append(method)
    if not places or not _several(code):
        return
    for place in places:
        yield Hit(
            code.span(place),
            "The program counts ranks over several machines and sends all of them to meet at localhost: those of other "
            "machines wait at their own address until the timeout.",
        )


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0]
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _is_conditional(code: Code, node: ast.AST) -> bool:
    """True if it is set only under a condition on the machines, or only if it is not set yet."""
    return any(
        isinstance(a, ast.If)
        and re.search(r"environ|node|machine|single|local|slurm", code.source_of(a.test), re.IGNORECASE)
        for a in code.ancestors(node)
    )


def _several(code: Code) -> bool:
    """True if a rank or the number of ranks is computed from the machines."""
    for operation in code.nodes(ast.BinOp):
        if not isinstance(operation.op, ast.Mult):
            continue
        for side, other in ((operation.left, operation.right), (operation.right, operation.left)):
            last = dotted_name(side).rsplit(".", 1)[-1].lower()
            if not last or (is_number(code, other) and code.constant(other) in {0, 1}):
                continue
            if (_NODES.match(last) and code.constant(side) not in {0, 1}) or (
                _NODE.match(last) and code.constant(side) != 0
            ):
                return True
    return False
