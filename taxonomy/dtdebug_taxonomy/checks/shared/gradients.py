"""Gradients between the backward pass and the step: calls that reduce, clip and use them."""

from __future__ import annotations

import ast
import re

from dtdebug_taxonomy.checks.shared.names import OPTIMIZERS
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

GRADIENT = re.compile(r"\.grad(\.data)?$")
CLIPS = tuple(
    f"torch.nn.utils.{home}{name}" for home in ("", "clip_grad.") for name in ("clip_grad_norm_", "clip_grad_value_")
)
NEAR = 40
"""Maximum number of statements between the parts of one step."""
_OPTIMIZER = re.compile(r"(^|_)opt(im(izer)?)?s?(_|\d|$)", re.IGNORECASE)
_MEASURES = re.compile(r"inf\b|1e\d\d?\b", re.IGNORECASE)


def steps(code: Code, statement: ast.stmt) -> bool:
    """True if a statement is only a step of an optimizer."""
    owner = stepped_object(statement)
    if owner is None:
        return False
    made = code.made_by(owner)
    return bool(made and made <= OPTIMIZERS) or bool(_OPTIMIZER.search(dotted_name(owner).rsplit(".", 1)[-1]))


def stepped_object(statement: ast.stmt) -> ast.expr | None:
    """Return the object whose `step` a statement calls."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "step":
        return None
    return call.func.value


def calls_method(code: Code, statement: ast.stmt, *names: str) -> bool:
    """True if a statement calls a method of one of these names."""
    return any(isinstance(c.func, ast.Attribute) and c.func.attr in names for c in code.inside(statement, ast.Call))


def only_measures(code: Code, clip: ast.Call) -> bool:
    """True if the limit is absent or infinite, so that only the norm is wanted."""
    limit = code.argument(clip, "max_norm", 1) or code.argument(clip, "clip_value", 1)
    return limit is None or bool(_MEASURES.search(code.source_of(limit)))
