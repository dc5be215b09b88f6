"""Losses and accuracies that are summed over the ranks and shown without a division."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.fixing import indent_of, statement_lines, written_name
from dtdebug_taxonomy.checks.shared.names import DIST
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_SUMS = {DIST + "all_reduce": 1, DIST + "reduce": 2}
_MEAN = re.compile(
    r"(^|_)(loss(es)?|acc|acc_?\d|accuracy|error_rate|ppl|perplexity|lr|mean|avg|average)(_|$|\d)", re.IGNORECASE
)
_COUNT = re.compile(r"sum|total|count|num|correct|hits|n_", re.IGNORECASE)
_SHOWS = re.compile(r"^(print|info|debug|log|log_?metrics?|add_scalars?|write|append|update|set_postfix|log_dict)$")


class _Uses:
    """Names and values in one function, collected once for all collectives in it."""

    def __init__(self, code: Code, home: ast.AST) -> None:
        self._assigned = [
            (code.order[a], _names(code, a.value), {dotted_name(t) for t in a.targets} - {""})
            for a in code.inside(home, ast.Assign)
        ]
        self._divided = [_names(code, c.target) for c in code.inside(home, ast.AugAssign) if _divides(c.op)]
        self._divided += [_names(code, b.left) for b in code.inside(home, ast.BinOp) if _divides(b.op)]
        given = [*(n.value for n in code.inside(home, ast.Return)), *(n.value for n in code.inside(home, ast.Yield))]
        self._divided += [_names(code, value) for value in given if value is not None]
        self._shown = [
            (code.order[c], {n for a in (*c.args, *c.keywords) for n in _names(code, a)})
            for c in code.inside(home, ast.Call)
            if _SHOWS.match(c.func.attr if isinstance(c.func, ast.Attribute) else dotted_name(c.func))
        ]

    def is_divided(self, name: str, elsewhere: list[set[str]]) -> bool:
        """True if a division, a mean or a return (the caller may divide) uses the value."""
        names = self._follow_names(name)
        return any(not names.isdisjoint(taken) for taken in (*self._divided, *elsewhere))

    def is_shown(self, name: str, after: int) -> bool:
        """True if the value is printed or logged after the reduction."""
        names = self._follow_names(name, after)
        return any(order >= after and not names.isdisjoint(taken) for order, taken in self._shown)

    def _follow_names(self, name: str, after: int = -1) -> set[str]:
        """Return the names that a value has, or that are computed from it."""
        names = {name}
        for order, taken, targets in self._assigned:
            if order > after and not names.isdisjoint(taken):
                names |= targets
        return names


def check(code: Code) -> Iterator[Hit]:
    """Report the collective."""
    sums = [c for c in code.calls(*_SUMS) if _is_sum(code, c)]
    if not sums or code.calls("torch.div", "torch.mean"):
        return
    means = [_names(code, m) for m in code.methods("div", "div_", "mul_", "mean", "true_divide", "divide")]
    homes: dict[ast.AST, _Uses] = {}
    for call in sums:
        home = code.function(call) or code.tree
        if home not in homes:
            homes[home] = _Uses(code, home)
        name = dotted_name(code.argument(call, "tensor", 0))
        if homes[home].is_divided(name, means) or not homes[home].is_shown(name, code.order[call]):
            continue
        yield Hit(
            code.span(call),
            f"{name.rsplit('.', 1)[-1]} is summed over the ranks and shown without a division: "
            "it grows with the number of ranks.",
            _divide(code, call, name),
        )


def _is_sum(code: Code, call: ast.Call) -> bool:
    """True if a loss or the like is summed over all ranks."""
    last = dotted_name(code.argument(call, "tensor", 0)).rsplit(".", 1)[-1]
    op = code.argument(call, "op", _SUMS[code.name(call.func)])
    if not _MEAN.search(last) or _COUNT.search(last) or (op is not None and not code.name(op).endswith(".SUM")):
        return False
    return not code.argument(call, "group") and isinstance(code.parent[call], ast.Expr)


def _divides(op: ast.operator) -> bool:
    return isinstance(op, ast.Div | ast.FloorDiv)


def _names(code: Code, node: ast.AST) -> set[str]:
    return {dotted_name(n) for n in code.inside(node, ast.Name, ast.Attribute)} - {""}


def _divide(code: Code, call: ast.Call, name: str) -> Fix | None:
    statement = code.statement(call)
    lines = statement_lines(code, statement)
    if lines is None or not code.text[: lines.end].endswith("\n") or code.name(call.func) != DIST + "all_reduce":
        return None
    world, edits = written_name(code, DIST + "get_world_size")
    line = f"{indent_of(code, statement)}{name} /= {world}()\n"
    return Fix("Divide it by the number of ranks", (*edits, Edit(Span(lines.end, lines.end), line)))
