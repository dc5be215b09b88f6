"""Gradients that `reduce` sums for one rank in a program that sends nothing back to the others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.fixing import written_name
from dtdebug_taxonomy.checks.shared.gradients import GRADIENT
from dtdebug_taxonomy.checks.shared.names import DIST
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_GIVES_BACK = re.compile(r"broadcast|scatter|all_reduce|all_gather|\bsend\(|isend")


def check(code: Code) -> Iterator[Hit]:
    """Report the call."""
    if _GIVES_BACK.search(code.text):
        return
    for call in code.calls(DIST + "reduce"):
        given = code.argument(call, "tensor", 0)
        if given is None or not GRADIENT.search(dotted_name(given)) or code.argument(call, "group", 3) is not None:
            continue
        yield Hit(
            code.span(call),
            f"reduce() gives the sum of {dotted_name(given)} to one rank alone; the others step with what is left in "
            "theirs, and the weights of the ranks diverge.",
            _fix(code, call, given),
        )


def _fix(code: Code, call: ast.Call, given: ast.expr) -> Fix | None:
    if code.has_unpacking(call) or not isinstance(code.parent[call], ast.Expr):
        return None
    name, imports = written_name(code, DIST + "all_reduce")
    op = code.argument(call, "op", 2)
    more = f", op={code.source_of(op)}" if op is not None else ""
    text = f"{name}({code.source_of(given)}{more})"
    return Fix("Give the sum to all ranks", (*imports, Edit(code.span(call), text)))
