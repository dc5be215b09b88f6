"""`break` under a condition on the rank, in a loop in which the ranks wait for each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.fixing import conditional, has_group, indent_of, own_lines, written_name
from dtdebug_taxonomy.checks.shared.names import DIST
from dtdebug_taxonomy.checks.shared.stepping import agrees, synchronising_calls
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import Guard, guards
from dtdebug_taxonomy.source.text import Span


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
            _decide_for_all(code, leave, guard),
        )


def _decide_for_all(code: Code, leave: ast.Break, guard: Guard) -> Fix | None:
    """Return a fix after which rank 0 tells the others that it leaves; None if the condition is asked in parts."""
    node = guard.node
    if not isinstance(node, ast.If) or node.orelse or node.body[-1] is not leave or guard.test.which != "global":
        return None
    test = code.source_of(node.test)
    in_loop = isinstance(code.parent[node], ast.For | ast.AsyncFor | ast.While)  # else not all ranks may come to it
    if (
        not in_loop
        or guards(code).around(node, early=False)
        or "\n" in test
        or not code.source_of(node).startswith("if")
        or not has_group(code)
    ):
        return None
    alone = node.body[:-1]
    lines = [own_lines(code, s) for s in (*alone, leave)]
    if (
        None in lines
        or code.text.place(code.span(node.test).start).line == code.text.place(code.span(leave).start).line
    ):
        return None
    ranked = next((v for v in getattr(node.test, "values", ()) if guards(code).test(v) is not None), None)
    if ranked is None or not isinstance(node.test.op, ast.And):  # type: ignore[attr-defined]
        return None
    send, imports = written_name(code, DIST + "broadcast_object_list")
    name = "stop" if not any(n.id == "stop" for n in code.nodes(ast.Name)) else "stop_now"
    start, indent = code.span(node).start, indent_of(code, node)
    edits = [
        Edit(Span(start, start), f"{name} = [{test}]\n{indent}{send}({name}, src=0)\n{indent}"),
        Edit(code.span(node.test), f"{name}[0]"),
    ]
    if alone:
        edits += conditional(code, alone, code.source_of(ranked))
    return Fix("Let rank 0 decide for all ranks", (*imports, *edits), safe=False)


def _guard(code: Code, leave: ast.AST, loop: ast.AST) -> Guard | None:
    """Return the condition on the main process around a `break`, inside its loop."""
    within = (g for g in guards(code).around(leave, early=False) if loop in set(code.ancestors(g.node)))
    return next((g for g in within if g.test.value == "0" and g.test.which in {"global", "local"}), None)
