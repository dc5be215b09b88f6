"""Losses that are summed over the ranks and divided by their number before the backward pass."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.fixing import indent_of, statement_lines
from dtdebug_taxonomy.checks.shared.names import DIST
from dtdebug_taxonomy.checks.shared.stepping import in_step
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import is_size
from dtdebug_taxonomy.source.text import Span

_SUMS = {DIST + "all_reduce": 1, DIST + "reduce": 2}
_NO_GRADIENT = {"detach", "item", "data", "tensor", "as_tensor", "zeros"}
_LOCAL = "local_loss"


def check(code: Code) -> Iterator[Hit]:
    """Report the sum."""
    if not in_step(code) or code.role == "test":
        return
    passes = _Passes(code)
    divided: dict[ast.AST, dict[str, list[int]]] = {}
    for call in code.calls(*_SUMS) if passes.any else ():
        name, home = dotted_name(code.argument(call, "tensor", 0)), code.function(call) or code.tree
        if not _is_sum(code, call, name):
            continue
        if home not in divided:
            divided[home] = _divisions(code, home)
        backward = passes.after(call, name)
        places = divided[home].get(name, [])
        after = bisect_right(places, code.order[call])
        if backward is None or after == len(places) or places[after] > backward[1]:
            continue
        last = code.name(call.func).rpartition(".")[2]
        yield Hit(
            code.span(call),
            f"{last}() passes no gradient, so all that the backward pass sees is the division by the number of ranks: "
            "the gradients are that many times too small, and they are averaged over the ranks once more.",
            _fix(code, call, name, backward[0]),
        )


class _Passes:
    """Backward passes of a program, by the loss that they run on."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self._by_name: dict[tuple[ast.AST | None, str], list[tuple[ast.Call, ast.expr]]] = defaultdict(list)
        self._by_maker: dict[ast.AST, list[tuple[ast.Call, ast.Call]]] = defaultdict(list)
        for call in code.methods("backward"):
            loss = _loss(call)
            if loss is None:
                continue
            self._by_name[code.function(call), dotted_name(loss)].append((call, loss))
            values = code.values(loss)
            if len(values) == 1 and isinstance(made := values[0], ast.Call) and (maker := code.local_function(made)):
                self._by_maker[maker].append((call, made))
        self.any = bool(self._by_name)

    def after(self, call: ast.Call, name: str) -> tuple[ast.Call, int] | None:
        """Return the backward pass on a sum, and the last position in its function at which the sum may be divided."""
        code, home = self.code, self.code.function(call)
        passes = self._by_name.get((home, name), [])
        place = bisect_right(passes, code.order[call], key=lambda p: code.order[p[0]])
        if place < len(passes):
            backward, loss = passes[place]
            bound = [b for b in code.bound(loss) if code.order[b.node] > code.order[call]]
            kept = all(b.value is None or not _NO_GRADIENT & _words(code, b.value) for b in bound)
            return (backward, code.order[backward]) if kept else None
        if home is None:
            return None
        for backward, made in self._by_maker.get(home, ())[:1]:
            returned = [
                r for r in code.returned_values(made) if name in {dotted_name(r), dotted_name(getattr(r, "left", r))}
            ]
            if returned:
                return backward, max(code.order[r] for r in returned) + 1
        return None


def _loss(backward: ast.Call) -> ast.expr | None:
    """Return the name that a backward pass runs on: `loss.backward()`, `scaler.scale(loss).backward()`."""
    func = backward.func
    if not isinstance(func, ast.Attribute):
        return None
    given = backward.args[0] if backward.args else func.value
    if isinstance(given, ast.Call) and len(given.args) == 1:
        given = given.args[0]
    return given if isinstance(given, ast.Name) else None


def _is_sum(code: Code, call: ast.Call, name: str) -> bool:
    """True if a call sums a tensor with a gradient over all ranks, in place."""
    op = code.argument(call, "op", _SUMS[code.name(call.func)])
    if not name.isidentifier() or not isinstance(code.parent[call], ast.Expr):
        return False
    if code.argument(call, "group") is not None or (op is not None and not code.name(op).endswith(".SUM")):
        return False
    values = code.values(code.argument(call, "tensor", 0))
    return not any(v is not None and _NO_GRADIENT & _words(code, v) for v in values)


def _words(code: Code, value: ast.expr) -> set[str]:
    return {getattr(n, "attr", "") or getattr(n, "id", "") for n in code.inside(value, ast.Attribute, ast.Name)}


def _divisions(code: Code, home: ast.AST) -> dict[str, list[int]]:
    """Return, by name, the positions in a function at which values are divided by the number of ranks."""
    found: dict[str, list[int]] = defaultdict(list)
    for node in code.inside(home, ast.AugAssign, ast.BinOp, ast.Call):
        if isinstance(node, ast.AugAssign):
            name, by = dotted_name(node.target), node.value if isinstance(node.op, ast.Div) else None
        elif isinstance(node, ast.BinOp):
            name, by = dotted_name(node.left), node.right if isinstance(node.op, ast.Div) else None
            up = code.statement(node)
            if not isinstance(up, ast.Return) and not (
                isinstance(up, ast.Assign) and dotted_name(up.targets[0]) == name
            ):
                continue
        else:
            owner, _, last = dotted_name(node.func).rpartition(".")
            name, by = owner, node.args[0] if last == "div_" and node.args else None
        if name and by is not None and is_size(code, by):
            found[name].append(code.order[node])
    return {name: sorted(places) for name, places in found.items()}


def _fix(code: Code, call: ast.Call, name: str, backward: ast.Call) -> Fix | None:
    """Return a fix that keeps the rank's own loss for the backward pass; later code sees the mean as before."""
    if code.function(call) is not code.function(backward) or _LOCAL in code.text:
        return None
    statement: ast.AST = code.statement(call)
    block = code.block(code.statement(backward))
    while statement not in block:
        statement = code.parent.get(statement, code.tree)
        if isinstance(statement, ast.Module):
            return None
    lines = statement_lines(code, statement) if isinstance(statement, ast.stmt) else None
    loss = _loss(backward)
    if lines is None or loss is None:
        return None
    keep = f"{indent_of(code, statement)}{_LOCAL}, {name} = {name}, {name}.detach().clone()\n"
    return Fix(
        "Run backward on the rank's own loss",
        (Edit(Span(lines.start, lines.start), keep), Edit(code.span(loss), _LOCAL)),
    )
