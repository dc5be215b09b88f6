"""`fully_shard` of a model before that of the layers in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.fixing import indent_of, statement_lines
from dtdebug_taxonomy.checks.shared.names import FULLY_SHARD
from dtdebug_taxonomy.source.python.bindings import surely_before
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span


def check(code: Code) -> Iterator[Hit]:
    """Report the call for the whole model."""
    calls = code.calls(*FULLY_SHARD)
    for whole in calls:
        model = dotted_name(code.argument(whole, "module", 0))
        if not model or code.role == "test":
            continue
        below = (c for c in calls if code.order[c] > code.order[whole] and surely_before(code, whole, c))
        later = [c for c in below if _is_in(code, c, model)]
        if later:
            yield Hit(
                code.span(whole),
                "The model takes all parameters of its layers here, and these are sharded only afterwards (line "
                f"{code.text.place(code.span(later[0]).start).line}): the first step fails. Layers come first.",
                _fix(code, whole, later[-1]),
            )


def _is_in(code: Code, call: ast.Call, model: str) -> bool:
    """True if a call is for a part of a model: `model.head`, or an item of a loop over `model.layers`."""
    part = code.argument(call, "module", 0)
    written = dotted_name(part)
    if written.startswith(f"{model}."):
        return True
    if not isinstance(part, ast.Name):
        return False
    loops = (a for a in code.ancestors(call) if isinstance(a, ast.For))
    loop = next((f for f in loops if part.id in {n.id for n in code.inside(f.target, ast.Name)}), None)
    if loop is None:
        return False
    return dotted_name(loop.iter) == model or any(
        dotted_name(n).startswith(f"{model}.") for n in code.inside(loop.iter, ast.Attribute)
    )


def _fix(code: Code, whole: ast.Call, last: ast.Call) -> Fix | None:
    """Return a fix that moves the statement below the last one for a layer, in the same block."""
    moved = code.statement(whole)
    end = next((s for s in code.block(moved) if s is code.statement(last) or s in set(code.ancestors(last))), None)
    if end is None or not isinstance(moved, ast.Expr):
        return None
    lines, below = statement_lines(code, moved), statement_lines(code, end)
    if lines is None or below is None or not code.text[: below.end].endswith("\n"):
        return None
    text = indent_of(code, moved) + code.cut(lines).strip() + "\n"
    return Fix("Shard the layers first", (Edit(lines, ""), Edit(Span(below.end, below.end), text)))
