"""Running totals that are summed over the ranks in every iteration of the loop that adds to them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.accumulating import loop_of
from dtdebug_taxonomy.checks.shared.diverging import last_name
from dtdebug_taxonomy.checks.shared.names import DIST
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_SUMS = {DIST + "all_reduce": 1, DIST + "reduce": 2}


def check(code: Code) -> Iterator[Hit]:
    """Report the sum."""
    adds = [a for a in code.nodes(ast.AugAssign) if isinstance(a.op, ast.Add) and dotted_name(a.target)]
    for call in code.calls(*_SUMS) if adds and code.role != "test" else ():
        loop, name = loop_of(code, call), dotted_name(code.argument(call, "tensor", 0))
        op = code.argument(call, "op", _SUMS[code.name(call.func)])
        if loop is None or not name or (op is not None and not code.name(op).endswith(".SUM")):
            continue
        if not any(dotted_name(a.target) == name and loop_of(code, a) is loop for a in adds):
            continue
        if not _starts_anew(code, loop, name):
            yield Hit(
                code.span(call),
                f"{last_name(code, call)}() leaves the sum of all ranks in {name}, and the next round adds to that: "
                "earlier rounds are counted again with each one. Sum it up once, after the loop.",
            )


def _starts_anew(code: Code, loop: ast.For | ast.While, name: str) -> bool:
    """True if the total is reset or divided in an iteration, or the iteration may leave the loop."""
    for node in code.inside(loop, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Call, ast.Break, ast.Return):
        if isinstance(node, ast.Break | ast.Return):
            return True
        if isinstance(node, ast.Call):
            owner, _, last = dotted_name(node.func).rpartition(".")
            if owner == name and last.endswith("_"):
                return True
        elif isinstance(node, ast.AugAssign):
            if dotted_name(node.target) == name and not isinstance(node.op, ast.Add):
                return True
        else:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(dotted_name(n) == name for t in targets for n in code.inside(t, ast.Name, ast.Attribute)):
                return True
    return False
