"""`break` under a condition on the rank, in a loop in which the ranks wait for each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.stepping import agrees, synchronising_calls
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import Guard, guards


def check(code: Code) -> Iterator[Hit]:
    """Report the `break`."""
    leaves = [b for b in code.nodes(ast.Break) if code.role != "test" and guards(code).around(b, early=False)]
    if not leaves:
        return
    waiting = synchronising_calls(code)
    for leave in leaves:
        loop = next(a for a in code.ancestors(leave) if isinstance(a, ast.For | ast.AsyncFor | ast.While))
        guard = _guard(code, leave, loop)
        if guard is None or not any(loop in set(code.ancestors(t)) for t in waiting):
            continue
        if guards(code).has_counterpart(leave, leaves) or any(
            agrees(code, c) for c in code.inside(guard.node, ast.Call)
        ):
            continue
        yield Hit(
            code.span(leave),
            f"This loop is left {guard.test.words}: the other ranks go on, and wait for it in their next step.",
        )


def _guard(code: Code, leave: ast.AST, loop: ast.AST) -> Guard | None:
    """Return the condition on the main process around a `break`, inside its loop."""
    within = (g for g in guards(code).around(leave, early=False) if loop in set(code.ancestors(g.node)))
    return next((g for g in within if g.test.value == "0" and g.test.which in {"global", "local"}), None)
