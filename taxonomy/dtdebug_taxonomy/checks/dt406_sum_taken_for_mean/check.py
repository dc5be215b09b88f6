"""Losses and accuracies that are summed over the ranks and then shown without a division."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.mending import indent_of, named, statement_lines
from dtdebug_taxonomy.checks.names import DIST
from dtdebug_taxonomy.source.names import dotted
from dtdebug_taxonomy.source.python import Code
from dtdebug_taxonomy.source.text import Span

_SUMS = {DIST + "all_reduce": 1, DIST + "reduce": 2}
_MEAN = re.compile(
    r"(^|_)(loss(es)?|acc|acc_?\d|accuracy|error_rate|ppl|perplexity|lr|mean|avg|average)(_|$|\d)", re.IGNORECASE
)
_COUNT = re.compile(r"sum|total|count|num|correct|hits|n_", re.IGNORECASE)
_SHOWS = re.compile(r"^(print|info|debug|log|log_?metrics?|add_scalars?|write|append|update|set_postfix|log_dict)$")


def check(code: Code) -> Iterator[Hit]:
    """Reports the collective."""
    for call in code.calls(*_SUMS):
        value = code.argument(call, "tensor", 0)
        name = dotted(value)
        last = name.rsplit(".", 1)[-1]
        op = code.argument(call, "op", _SUMS[code.name(call.func)])
        if not _MEAN.search(last) or _COUNT.search(last) or (op is not None and not code.name(op).endswith(".SUM")):
            continue
        if code.argument(call, "group") or not isinstance(code.parent[call], ast.Expr):
            continue
        home = code.function(call) or code.tree
        if _divided(code, home, name) or not _shown(code, home, name, call):
            continue
        yield Hit(
            code.span(call),
            f"{last} is summed over the ranks and shown without a division: it grows with the number of ranks.",
            _divide(code, call, name),
        )


def _divided(code: Code, home: ast.AST, name: str) -> bool:
    """Whether a division, a mean or a return (the caller may divide) takes the value anywhere in the function."""
    names = {name}
    for assign in code.inside(home, ast.Assign):
        if _mentions(code, assign.value, names):
            names |= {dotted(t) for t in assign.targets} - {""}
    for change in code.inside(home, ast.AugAssign):
        if isinstance(change.op, ast.Div | ast.FloorDiv) and _mentions(code, change.target, names):
            return True
    for node in code.inside(home, ast.BinOp):
        if isinstance(node.op, ast.Div | ast.FloorDiv) and _mentions(code, node.left, names):
            return True
    for method in code.methods("div", "div_", "mul_", "mean", "true_divide", "divide"):
        if _mentions(code, method, names):
            return True
    given = [*(n.value for n in code.inside(home, ast.Return)), *(n.value for n in code.inside(home, ast.Yield))]
    return any(_mentions(code, r, names) for r in given if r is not None) or bool(code.calls("torch.div", "torch.mean"))


def _mentions(code: Code, node: ast.AST, names: set[str]) -> bool:
    return any(dotted(n) in names for n in code.inside(node, ast.Name, ast.Attribute))


def _shown(code: Code, home: ast.AST, name: str, after: ast.Call) -> bool:
    """Whether it is printed or logged after the reduction."""
    names = {name}
    for assign in code.inside(home, ast.Assign):
        if code.order[assign] > code.order[after] and _mentions(code, assign.value, names):
            names |= {dotted(t) for t in assign.targets} - {""}
    for call in code.inside(home, ast.Call):
        last = call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)
        if code.order[call] < code.order[after] or not _SHOWS.match(last):
            continue
        if any(_mentions(code, a, names) for a in (*call.args, *call.keywords)):
            return True
    return False


def _divide(code: Code, call: ast.Call, name: str) -> Fix | None:
    statement = code.statement(call)
    lines = statement_lines(code, statement)
    if lines is None or not code.text[: lines.end].endswith("\n") or code.name(call.func) != DIST + "all_reduce":
        return None
    world, edits = named(code, DIST + "get_world_size")
    line = f"{indent_of(code, statement)}{name} /= {world}()\n"
    return Fix("Divide it by the number of ranks", (*edits, Edit(Span(lines.end, lines.end), line)))
