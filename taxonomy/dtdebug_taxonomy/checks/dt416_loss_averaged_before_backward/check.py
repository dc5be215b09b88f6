"""Losses that are summed over the ranks and divided by their number before the backward pass."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.fixing import indent_of, statement_lines
from dtdebug_taxonomy.checks.names import DIST
from dtdebug_taxonomy.checks.stepping import in_step
from dtdebug_taxonomy.source.names import dotted
from dtdebug_taxonomy.source.python import Code
from dtdebug_taxonomy.source.ranks import is_size
from dtdebug_taxonomy.source.text import Span

_SUMS = {DIST + "all_reduce": 1, DIST + "reduce": 2}
_NO_GRADIENT = {"detach", "item", "data", "tensor", "as_tensor", "zeros"}
_LOCAL = "local_loss"


def check(code: Code) -> Iterator[Hit]:
    """Reports the sum."""
    if not in_step(code) or code.role == "test":
        return
    backwards = [(c, loss) for c in code.methods("backward") if (loss := _loss(code, c)) is not None]
    for call in code.calls(*_SUMS) if backwards else ():
        name = dotted(code.argument(call, "tensor", 0))
        if not _is_sum(code, call, name):
            continue
        after = code.order[call]
        division = next((d for d in _divisions(code, call, name) if code.order[d] > after), None)
        backward = _reaches(code, call, name, backwards)
        if division is None or backward is None or code.order[division] > backward[1]:
            continue
        last = code.name(call.func).rpartition(".")[2]
        yield Hit(
            code.span(call),
            f"{last}() passes no gradient, so all that the backward pass sees is the division by the number of ranks: "
            "the gradients are that many times too small, and they are averaged over the ranks once more.",
            _fix(code, call, name, backward[0]),
        )


def _loss(code: Code, backward: ast.Call) -> ast.expr | None:
    """The name on which a backward pass runs: `loss.backward()`, `scaler.scale(loss).backward()`."""
    func = backward.func
    if not isinstance(func, ast.Attribute):
        return None
    given = backward.args[0] if backward.args else func.value
    if isinstance(given, ast.Call) and len(given.args) == 1:
        given = given.args[0]
    return given if isinstance(given, ast.Name) else None


def _is_sum(code: Code, call: ast.Call, name: str) -> bool:
    """Whether a call sums a tensor with a gradient over all ranks, in place."""
    op = code.argument(call, "op", _SUMS[code.name(call.func)])
    if not name.isidentifier() or not isinstance(code.parent[call], ast.Expr):
        return False
    if code.argument(call, "group") is not None or (op is not None and not code.name(op).endswith(".SUM")):
        return False
    values = code.values(code.argument(call, "tensor", 0))
    return not any(v is not None and _NO_GRADIENT & _words(code, v) for v in values)


def _words(code: Code, value: ast.expr) -> set[str]:
    return {getattr(n, "attr", "") or getattr(n, "id", "") for n in code.inside(value, ast.Attribute, ast.Name)}


def _divisions(code: Code, call: ast.Call, name: str) -> Iterator[ast.AST]:
    """The places in the function of a sum at which it is divided by the number of ranks."""
    home = code.function(call) or code.tree
    for changed in code.inside(home, ast.AugAssign):
        if isinstance(changed.op, ast.Div) and dotted(changed.target) == name and _is_size(code, changed.value):
            yield changed
    for division in code.inside(home, ast.BinOp):
        if isinstance(division.op, ast.Div) and dotted(division.left) == name and _is_size(code, division.right):
            up = code.statement(division)
            target = dotted(up.targets[0]) if isinstance(up, ast.Assign) else ""
            if target == name or isinstance(up, ast.Return):
                yield division
    for method in code.inside(home, ast.Call):
        if dotted(method.func) == f"{name}.div_" and method.args and _is_size(code, method.args[0]):
            yield method


def _is_size(code: Code, node: ast.expr) -> bool:
    return is_size(code, node) or (isinstance(node, ast.Call) and code.name(node.func) == DIST + "get_world_size")


def _reaches(
    code: Code, call: ast.Call, name: str, backwards: list[tuple[ast.Call, ast.expr]]
) -> tuple[ast.Call, float] | None:
    """The backward pass on the sum, and up to where in its own function the sum may be divided."""
    home = code.function(call)
    for backward, loss in backwards:
        if code.function(backward) is home and dotted(loss) == name and code.order[backward] > code.order[call]:
            bound = [b for b in code.bound(loss) if code.order[b.node] > code.order[call]]
            if all(b.value is None or not _NO_GRADIENT & _words(code, b.value) for b in bound):
                return backward, code.order[backward]
        values = code.values(loss)
        made = values[0] if len(values) == 1 else None
        if home is None or not isinstance(made, ast.Call) or code.called(made) is not home:
            continue
        returned = [r for r in code.returned(made) if name in {dotted(r), dotted(getattr(r, "left", r))}]
        if returned:
            return backward, max(code.order[r] for r in returned) + 1
    return None


def _fix(code: Code, call: ast.Call, name: str, backward: ast.Call) -> Fix | None:
    """Keeps the rank's own loss for the backward pass; what follows sees the mean, as before."""
    if code.function(call) is not code.function(backward) or _LOCAL in code.text:
        return None
    statement: ast.AST = code.statement(call)
    block = code.block(code.statement(backward))
    while statement not in block:
        statement = code.parent.get(statement, code.tree)
        if isinstance(statement, ast.Module):
            return None
    lines = statement_lines(code, statement) if isinstance(statement, ast.stmt) else None
    loss = _loss(code, backward)
    if lines is None or loss is None:
        return None
    keep = f"{indent_of(code, statement)}{_LOCAL}, {name} = {name}, {name}.detach().clone()\n"
    return Fix(
        "Run backward on the rank's own loss",
        (Edit(Span(lines.start, lines.start), keep), Edit(code.span(loss), _LOCAL)),
    )
