"""Losses divided by the number of micro-steps before Accelerate divides them again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.accumulating import ACCELERATOR, accumulation_steps
from dtdebug_taxonomy.checks.shared.fixing import statement_lines
from dtdebug_taxonomy.source.python.bindings import surely_before
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span


def check(code: Code) -> Iterator[Hit]:
    """Report the division."""
    number = accumulation_steps(code)
    if number is None or code.role == "test":
        return
    written = _last(code, number)
    for call in code.methods("backward"):
        if not call.args or ACCELERATOR not in code.made_by(call.func.value):  # type: ignore[attr-defined]
            continue
        for division, by, whole in _divisions(code, call):
            if _last(code, by) == written or dotted_name(by).endswith(".gradient_accumulation_steps"):
                yield Hit(
                    code.span(division),
                    "accelerator.backward() divides the loss by gradient_accumulation_steps, too: the gradients come "
                    "out that many times too small.",
                    _fix(code, division, by, whole),
                )


def _divisions(code: Code, call: ast.Call) -> Iterator[tuple[ast.AST, ast.expr, ast.expr | None]]:
    """Yield the divisions of the loss before a backward pass: (node, divisor, dividend or None)."""
    loss = call.args[0]
    if isinstance(loss, ast.BinOp) and isinstance(loss.op, ast.Div):
        yield loss, loss.right, loss.left
    if not isinstance(loss, ast.Name):
        return
    for binding in code.bound(loss):
        node, value = binding.node, binding.value
        if surely_before(code, node, call) is not True:
            continue
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
            yield node, node.value, None
        elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div):
            yield value, value.right, value.left


def _last(code: Code, node: ast.expr) -> str:
    """Return the unqualified name of a number: `args.steps` and `self.args.steps` are the same."""
    return dotted_name(node).rpartition(".")[2] or code.source_of(node)


def _fix(code: Code, division: ast.AST, by: ast.expr, whole: ast.expr | None) -> Fix | None:
    """Return a fix that leaves the division to Accelerate."""
    statement = code.statement(division)
    alone = isinstance(statement, ast.AugAssign) or (
        isinstance(statement, ast.Assign)
        and statement.value is division
        and [dotted_name(t) for t in statement.targets] == [dotted_name(whole)]
    )
    if alone:
        lines = statement_lines(code, statement) if len(code.block(statement)) > 1 else None
        edits = (Edit(lines, ""),) if lines else ()
    else:
        end = code.span(by).end
        edits = (Edit(Span(code.span(whole).end, end), ""),) if whole and code.span(division).end == end else ()
    return Fix("Leave the division to Accelerate", edits, safe=False) if edits else None
