"""Reductions of a table, one for each key, whose keys only some ranks fill in."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.arguments import keyword
from dtdebug_taxonomy.checks.shared.diverging import collectives, diverging, last_name
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import Guard, guards
from dtdebug_taxonomy.source.python.names import dotted_name

_LOGS = ("log", "log_dict")
_VIEWS = {"items", "values", "keys"}
_FILLS = {"update", "setdefault", "append", "extend", "add"}
_STEPS = {"training_step", "validation_step", "test_step"}
"""Hooks of Lightning that get a batch of the rank's own as their first argument."""


def check(code: Code) -> Iterator[Hit]:
    """Report the call that reduces, or the loop over the reductions."""
    if code.role == "test":
        return
    logs = [c for c in code.methods(*_LOGS) if _is_reduced(code, c)]
    for call, what, guard in diverging(code, logs):
        yield Hit(
            code.span(call),
            f"{what} runs {guard.test.words}, but `sync_dist=True` reduces over all ranks: it waits for the others.",
        )
    for call in logs:
        table = code.argument(call, "dictionary", 0) if last_name(code, call) == "log_dict" else None
        if table is not None and (found := _filling_statement(code, call, table)) is not None:
            yield Hit(code.span(call), _message(code, *found, "`sync_dist=True` reduces each key over all ranks"))
        if (test := _test_of_the_batch(code, call, logs)) is not None:
            line = code.text.place(code.span(test).start).line
            yield Hit(
                code.span(call),
                f"Each rank decides at line {line} by its own batch whether it logs this, but `sync_dist=True` reduces "
                "what is logged over all ranks: they wait for each other, or reduce different values together.",
            )
    for loop, call in _loops(code):
        if (found := _filling_statement(code, loop, loop.iter)) is not None:
            name = last_name(code, call)
            yield Hit(code.span(loop.iter), _message(code, *found, f"{name}() runs once for each of its items"))


def _message(code: Code, name: str, guard: Guard, store: ast.AST, then: str) -> str:
    line = code.text.place(code.span(store).start).line
    return f"`{name}` is filled {guard.test.words} (line {line}), and {then}: the other ranks have nothing to reduce."


def _is_reduced(code: Code, call: ast.Call) -> bool:
    """True if Lightning reduces what is logged over the ranks."""
    given = keyword(call, "sync_dist")
    alone = keyword(call, "rank_zero_only")
    return given is not None and code.constant(given.value) is True and alone is None


def _loops(code: Code) -> Iterator[tuple[ast.For, ast.Call]]:
    """Yield the innermost loop around each collective that all ranks must make."""
    for call in collectives(code):
        loop = next((a for a in code.ancestors(call) if isinstance(a, ast.For)), None)
        if loop is not None and code.function(loop) is code.function(call):
            yield loop, call


def _filling_statement(code: Code, use: ast.AST, table: ast.expr) -> tuple[str, Guard, ast.AST] | None:
    """Return (name, condition, place) where a table that is used by all ranks was filled by some of them."""
    name = _name_of(table)
    if not name:
        return None
    home = code.function(use)
    here = {g.node for g in guards(code).around(use)}
    for store in _stores(code, home if home is not None else code.tree, name):
        if code.order[store] > code.order[use] or code.function(store) is not home:
            continue
        guard = next((g for g in guards(code).around(store, early=False) if g.node not in here), None)
        if guard is not None and guard.test.which != "group" and not _is_agreed(code, name, store, use):
            orelse = guard.node.orelse if isinstance(guard.node, ast.If) else []
            other = {n for s in orelse for n in ast.walk(s)}
            if not any(s in other for s in _stores(code, home if home is not None else code.tree, name)):
                return name, guard, store
    return None


def _name_of(table: ast.expr) -> str:
    if isinstance(table, ast.Call):
        if isinstance(table.func, ast.Attribute) and table.func.attr in _VIEWS and not table.args:
            return dotted_name(table.func.value)
        named = dotted_name(table.func) in {"sorted", "list", "enumerate"} and len(table.args) == 1
        return _name_of(table.args[0]) if named else ""
    return dotted_name(table)


def _stores(code: Code, home: ast.AST, name: str) -> Sequence[ast.AST]:
    """Return the statements that add items to a table."""
    found: list[ast.AST] = [
        s for s in code.inside(home, ast.Subscript) if isinstance(s.ctx, ast.Store) and dotted_name(s.value) == name
    ]
    found += [
        c
        for c in code.inside(home, ast.Call)
        if isinstance(c.func, ast.Attribute) and c.func.attr in _FILLS and dotted_name(c.func.value) == name
    ]
    return found


def _is_agreed(code: Code, name: str, store: ast.AST, use: ast.AST) -> bool:
    """True if the table is bound or exchanged again in between."""
    between = range(code.order[store] + 1, code.order[use])
    bound = (n for n in code.nodes(ast.Name) if n.id == name and isinstance(n.ctx, ast.Store))
    passed = (
        n
        for c in collectives(code)
        for a in (*c.args, *(k.value for k in c.keywords))
        for n in code.inside(a, ast.Name, ast.Attribute)
        if dotted_name(n) == name and c is not use
    )
    return any(code.order[n] in between for n in (*bound, *passed))


def _test_of_the_batch(code: Code, call: ast.Call, logs: Sequence[ast.Call]) -> ast.expr | None:
    """Return the condition on the rank's own batch around a call, unless the other branch logs the same name."""
    home = code.function(call)
    if not isinstance(home, ast.FunctionDef) or home.name not in _STEPS or len(home.args.args) < 2:
        return None
    own = {home.args.args[1].arg}
    for node in sorted(code.inside(home, ast.Assign), key=code.order.__getitem__):
        if any(n.id in own for n in code.inside(node.value, ast.Name)):
            own |= {n.id for t in node.targets for n in code.inside(t, ast.Name)}
    inner: ast.AST = call
    for up in code.ancestors(call):
        if up is home:
            return None
        if isinstance(up, ast.If) and inner is not up.test:
            reads = any(n.id in own for n in code.inside(up.test, ast.Name))
            if reads and not _is_fixed(code, up.test) and not _has_same(code, call, up, logs):
                return up.test
        inner = up
    return None


def _is_fixed(code: Code, test: ast.expr) -> bool:
    """True if a condition asks what is the same for all batches: a type, a key, whether something is there."""
    if any(isinstance(n.ops[0], ast.Is | ast.IsNot | ast.In | ast.NotIn) for n in code.inside(test, ast.Compare)):
        return True
    return isinstance(test, ast.Name) or any(
        dotted_name(c.func) in {"isinstance", "hasattr", "len"} for c in code.inside(test, ast.Call)
    )


def _has_same(code: Code, call: ast.Call, branch: ast.If, logs: Sequence[ast.Call]) -> bool:
    name = code.argument(call, "name", 0)
    inside = {n for s in branch.body for n in ast.walk(s)}
    return name is not None and any(
        other is not call
        and (other in inside) is not (call in inside)
        and branch in set(code.ancestors(other))
        and code.source_of(code.argument(other, "name", 0) or other) == code.source_of(name)
        for other in logs
    )
