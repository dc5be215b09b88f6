"""Gradients that `all_reduce` reduces by maximum, minimum or product, in a program that steps with them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.fixing import indent_of, statement_lines, written_name
from dtdebug_taxonomy.checks.shared.gradients import GRADIENT
from dtdebug_taxonomy.checks.shared.names import DIST
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_NAMES = {"MAX": "maximum", "MIN": "minimum", "PRODUCT": "product"}
_OPERATION = re.compile(r"\.(MAX|MIN|PRODUCT)$")
_COMPARES = re.compile(r"allclose|assert|\.equal\(|isfinite|isnan|isinf", re.IGNORECASE)
_DIVIDES = re.compile(r"\.grad(\.data)?\s*(/|\.div|\.mul)")


def check(code: Code) -> Iterator[Hit]:
    """Report the operation."""
    if code.role == "test" or not code.methods("step"):
        return
    compares: dict[ast.AST, bool] = {}
    divides = bool(_DIVIDES.search(code.text))
    for call in code.calls(DIST + "all_reduce"):
        given, op = code.argument(call, "tensor", 0), code.argument(call, "op", 1)
        word = _OPERATION.search(code.name(op))
        if given is None or op is None or word is None or not GRADIENT.search(dotted_name(given)):
            continue
        home = _home(code, call)
        if home not in compares:
            compares[home] = bool(_COMPARES.search(code.source_of(home)))
        if code.argument(call, "group", 2) is not None or compares[home]:
            continue
        yield Hit(
            code.span(op),
            f"The ranks step with the {_NAMES[word[1]]} of their gradients, element by element: the gradient of the "
            "whole batch is their mean.",
            None if divides else _fix(code, call, given, op),
        )


def _home(code: Code, call: ast.Call) -> ast.AST:
    """Return the function, or the module-level statement, to search for a comparison."""
    function = code.function(call)
    if function is not None:
        return function
    around = [a for a in code.ancestors(call) if isinstance(a, ast.stmt)]
    return around[-1]


def _fix(code: Code, call: ast.Call, given: ast.expr, op: ast.expr) -> Fix | None:
    statement = code.statement(call)
    lines = statement_lines(code, statement)
    if not isinstance(op, ast.Attribute) or not isinstance(code.parent[call], ast.Expr) or lines is None:
        return None
    if not code.cut(lines).endswith("\n"):
        return None
    world, imports = written_name(code, DIST + "get_world_size")
    line = f"{indent_of(code, statement)}{code.source_of(given)} /= {world}()\n"
    sums = Edit(code.span(op), f"{code.source_of(op.value)}.SUM")
    return Fix("Take the mean", (*imports, sums, Edit(Span(lines.end, lines.end), line)))
