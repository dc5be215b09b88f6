"""Gradients that are cleared between the backward pass and the step that should use them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.fixing import statement_lines
from dtdebug_taxonomy.checks.shared.gradients import NEAR, calls_method, stepped_object, steps
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_KEEPS_WEIGHTS = re.compile(r"warm_?up|profil|bench|dry_?run", re.IGNORECASE)
"""Names of functions that run a step only to measure its time."""


def check(code: Code) -> Iterator[Hit]:
    """Report the call that clears, if it and the step follow the backward pass in one block."""
    for call in code.methods("zero_grad") if code.role != "test" else ():
        statement, home = code.parent[call], code.function(call)
        if home is not None and _KEEPS_WEIGHTS.search(home.name):
            continue
        if not isinstance(statement, ast.Expr) or not isinstance(call.func, ast.Attribute):
            continue
        block = code.block(statement)
        at = block.index(statement) if statement in block else 0
        backward = next(
            (s for s in reversed(block[max(0, at - NEAR) : at]) if calls_method(code, s, "backward", "step")), None
        )
        if backward is None or not isinstance(backward, ast.Expr) or not calls_method(code, backward, "backward"):
            continue
        if not any(_uses(code, s, call.func.value) for s in block[at + 1 : at + 2]):
            continue
        yield Hit(
            code.span(call),
            "This throws the gradients of the backward pass away, and the step that follows has none: "
            "the weights stay as they are, or move by momentum and weight decay alone.",
            _fix(code, statement, backward),
        )


def _uses(code: Code, statement: ast.stmt, cleared: ast.expr) -> bool:
    """True if a statement steps the optimizer that was cleared and computes no gradients itself."""
    if not steps(code, statement) or not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    owner = stepped_object(statement)
    return owner is not None and dotted_name(owner) == dotted_name(cleared) != "" and not statement.value.args


def _fix(code: Code, statement: ast.stmt, backward: ast.stmt) -> Fix | None:
    lines, before = statement_lines(code, statement), statement_lines(code, backward)
    if lines is None or before is None:
        return None
    return Fix(
        "Clear them before the backward pass",
        (Edit(Span(before.start, before.start), code.cut(lines)), Edit(lines, "")),
    )
