"""Progress bars that all ranks draw, in functions that leave other output to rank 0."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Fix, Hit
from dtdebug_taxonomy.checks.arguments import add
from dtdebug_taxonomy.checks.everyone import beside_a_guard
from dtdebug_taxonomy.checks.ranks_seen import depends_on_rank
from dtdebug_taxonomy.source.guards import Guard
from dtdebug_taxonomy.source.python import Code

_BARS = tuple(
    f"tqdm.{home}{name}" for home in ("", "auto.", "std.", "notebook.", "autonotebook.") for name in ("tqdm", "trange")
)


def check(code: Code) -> Iterator[Hit]:
    """Reports the bar."""
    if code.role == "test":
        return
    for call in code.calls(*_BARS):
        if code.argument(call, "disable") is not None or code.argument(call, "position") is not None:
            continue
        if code.has_unpacking(call) or any(depends_on_rank(code, k.value) for k in call.keywords):
            continue  # `desc=f"rank {rank}"`: one for each is meant
        if (guard := beside_a_guard(code, call)) is None:
            continue
        line = code.text.place(code.span(guard.node).start).line
        yield Hit(
            code.span(call),
            f"Every rank draws this bar, unlike what line {line} leaves to rank 0: the bars write over each other.",
            _fix(code, call, guard),
        )


def _fix(code: Code, call: ast.Call, guard: Guard) -> Fix | None:
    """Takes the condition that the function has already, where its names mean the same before the bar."""
    if not isinstance(guard.node, ast.If):
        return None
    test = guard.node.test
    if isinstance(test, ast.BoolOp) or code.function(guard.node) is not code.function(call):
        return None
    for name in code.inside(test, ast.Name):
        before = [b for b in code.bound(name) if b.how == "assign"]
        if any(code.order[b.node] > code.order[call] for b in before):
            return None
    return Fix("Draw it on rank 0 only", (add(code, call, f"disable=not ({code.source_of(test)})"),))
