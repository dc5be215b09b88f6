"""Names that only rank 0 assigns and all ranks use later."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.source.python.bindings import Binding
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import Guard, guards
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS

_DECIDE = (ast.If, ast.IfExp, ast.Try, ast.While, ast.Match, ast.BoolOp, ast.ExceptHandler)


def check(code: Code) -> Iterator[Hit]:
    """Report the first use."""
    if code.role == "test":
        return
    for (scope, name), bound in code.bindings.items():
        if "." in name or not isinstance(scope, (ast.Module, *FUNCTIONS)) or bound[0].how not in {"assign", "with"}:
            continue
        if (guard := _only_by_first(code, bound)) is None:
            yield from _none_elsewhere(code, scope, name, bound)
            continue
        use = next((n for n in _uses(code, scope, name) if _for_others(code, n, guard, bound)), None)
        if use is not None:
            line = code.text.place(code.span(bound[0].node).start).line
            rank = "local rank 0" if guard.test.which == "local" else "rank 0"
            yield Hit(
                code.span(use),
                f"Only {rank} gives {name} a value, at line {line}: the other ranks end here with a NameError, and "
                f"{rank} waits for them in its next collective.",
            )


def _none_elsewhere(code: Code, scope: ast.AST, name: str, bound: list[Binding]) -> Iterator[Hit]:
    """Yield the first use of an attribute of a name that is None elsewhere: `EMA(model) if rank == 0 else None`."""
    value = bound[0].value
    if len(bound) != 1 or not isinstance(value, ast.IfExp) or not isinstance(bound[0].node, ast.Assign):
        return
    test = guards(code).test(value.test)
    empty = isinstance(value.orelse, ast.Constant) and value.orelse.value is None
    if test is None or not empty or test.value != "0" or not test.equal or test.which not in {"global", "local"}:
        return
    guard = Guard(test, bound[0].node)
    for use in _uses(code, scope, name):
        if isinstance(code.parent[use], ast.Attribute) and _for_others(code, use, guard, bound):
            line = code.text.place(code.span(value).start).line
            yield Hit(
                code.span(use),
                f"On all ranks but 0 {name} is None, by line {line}: they end here with an AttributeError, and rank 0 "
                "waits for them in its next collective.",
            )
            return


def _only_by_first(code: Code, bound: list[Binding]) -> Guard | None:
    """Return the condition on rank 0 around all bindings of a name."""
    found: Guard | None = None
    for binding in bound:
        around = guards(code).around(binding.node)
        if binding.how not in {"assign", "with", "other"} or len(around) != 1 or around[0].early:
            return None
        guard = around[0]
        if not isinstance(guard.node, ast.If) or guard.node.orelse or not _is_first(guard):
            return None
        if code.source_of(guard.node).startswith("elif"):
            return None
        found = found or guard
    return found


def _is_first(guard: Guard) -> bool:
    return guard.test.value == "0" and guard.test.equal and guard.test.which in {"global", "local"}


def _uses(code: Code, scope: ast.AST, name: str) -> Iterator[ast.Name]:
    for node in _names(code).get(name, ()):
        if isinstance(node.ctx, ast.Load) and code.scope(node) is scope:
            yield node


def _names(code: Code) -> dict[str, list[ast.Name]]:
    found: dict[str, list[ast.Name]] | None = code.__dict__.get("_names_by_id")
    if found is None:
        found = code.__dict__["_names_by_id"] = {}
        for node in code.nodes(ast.Name):
            found.setdefault(node.id, []).append(node)
    return found


def _for_others(code: Code, use: ast.Name, guard: Guard, bound: list[Binding]) -> bool:
    """True if the other ranks reach a use: every condition around it is around the binding's condition too."""
    if code.order[use] <= code.order[bound[0].node] or guards(code).around(use):
        return False
    outer = set(code.ancestors(guard.node))
    for up in code.ancestors(use):
        if isinstance(up, _DECIDE) and up not in outer:
            return False
        if isinstance(up, ast.comprehension | ast.Lambda):
            return False
    if any(dotted_name(n) == "locals" for n in (c.func for c in code.nodes(ast.Call))):
        return False
    return _reached_after(code, use, guard)


def _reached_after(code: Code, use: ast.Name, guard: Guard) -> bool:
    """True if no exit between the two, such as a return, keeps the other ranks away."""
    statement: ast.stmt = guard.node  # type: ignore[assignment]
    block = code.block(statement)
    here = {use, *code.ancestors(use)}
    after = block[block.index(statement) + 1 :]
    for later in after:
        if later in here:
            return True
        if any(isinstance(n, ast.Return | ast.Break | ast.Continue | ast.Raise) for n in ast.walk(later)):
            return False
    return False
