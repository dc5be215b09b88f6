"""`break` under a condition on the rank, in a loop in which the ranks wait for each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.fixing import conditional, deeper, has_group, indent_of, own_lines, written_name
from dtdebug_taxonomy.checks.shared.leaving import leaving
from dtdebug_taxonomy.checks.shared.names import DIST
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import Guard, guards
from dtdebug_taxonomy.source.text import Span


def check(code: Code) -> Iterator[Hit]:
    """Report the `break`."""
    if code.role == "test":
        return  # they diverge on purpose
    for leave, guard, _ in leaving(code, ast.Break):
        yield Hit(
            code.span(leave),
            f"This loop is left {guard.test.words}: the other ranks go on, and wait for it in their next step.",
            _decide_for_all(code, leave, guard),
        )


def _decide_for_all(code: Code, leave: ast.stmt, guard: Guard) -> Fix | None:
    """Return a fix after which rank 0 tells the others that it leaves; None where not all ranks may come to it."""
    node = guard.node
    if not isinstance(node, ast.If) or guard.test.which != "global" or not has_group(code):
        return None
    in_loop = isinstance(code.parent[node], ast.For | ast.AsyncFor | ast.While)
    if not in_loop or guards(code).around(node, early=False) or not code.source_of(node).startswith("if"):
        return None
    send, imports = written_name(code, DIST + "broadcast_object_list")
    name = "stop" if not any(n.id == "stop" for n in code.nodes(ast.Name)) else "stop_now"
    edits = _ask_once(code, leave, node, name, send) or _note(code, leave, node, name, send)
    return Fix("Let rank 0 decide for all ranks", (*imports, *edits), safe=False) if edits else None


def _ask_once(code: Code, leave: ast.stmt, node: ast.If, name: str, send: str) -> tuple[Edit, ...]:
    """Send what rank 0 answers to `if rank == 0 and done:`."""
    test, alone = node.test, node.body[:-1]
    if node.orelse or node.body[-1] is not leave or not (isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)):
        return ()
    ranked = next((v for v in test.values if guards(code).test(v) is not None), None)
    if ranked is None or None in [own_lines(code, s) for s in node.body] or test.lineno == leave.lineno:
        return ()
    text, start, indent = code.source_of(test), code.span(node).start, indent_of(code, node)
    if "\n" in text:
        return ()
    return (
        Edit(Span(start, start), f"{name} = [{text}]\n{indent}{send}({name}, src=0)\n{indent}"),
        Edit(code.span(test), f"{name}[0]"),
        *(conditional(code, alone, code.source_of(ranked)) if alone else ()),
    )


def _note(code: Code, leave: ast.stmt, node: ast.If, name: str, send: str) -> tuple[Edit, ...]:
    """Note in the conditions of rank 0 that it leaves, and send that behind them; nothing may follow the `break`."""
    inner: ast.AST = leave
    for up in code.ancestors(leave):
        if not isinstance(up, ast.If) or up.orelse or up.body[-1] is not inner:
            return ()
        if up is node:
            break
        inner = up
    if own_lines(code, node) is None or own_lines(code, leave) is None or node.lineno == leave.lineno:
        return ()
    (start, end), indent = code.span(node), indent_of(code, node)
    last = code.text.end_of_line(code.text.place(end).line)
    left = f"if {name}[0]:\n{deeper(indent)}break"
    return (
        Edit(Span(start, start), f"{name} = [False]\n{indent}"),
        Edit(code.span(leave), f"{name}[0] = True"),
        Edit(Span(last, last), f"\n{indent}{send}({name}, src=0)\n{indent}{left}"),
    )
