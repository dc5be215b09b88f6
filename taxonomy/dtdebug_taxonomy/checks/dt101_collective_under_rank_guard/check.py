"""Collectives of torch that a condition on the rank keeps some ranks from calling."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.names import COLLECTIVES
from dtdebug_taxonomy.source.guards import Guard, calls_under, guards
from dtdebug_taxonomy.source.python import Code, Function


def check(code: Code) -> Iterator[Hit]:
    """Reports the call under the condition: the collective itself, or a local function that makes it."""
    calls = [c for c in code.calls(*COLLECTIVES) if not code.argument(c, "group")]
    for call in calls:
        name = code.name(call.func).rsplit(".", 1)[-1]
        same: list[ast.AST] = [c for c in calls if code.name(c.func) == code.name(call.func)]
        yield from _hit(code, call, same, f"{name}()")
    for function, inner in _helpers(code, calls).items():
        callers = code.callers.get(function, [])
        for call in callers:
            yield from _hit(code, call, list(callers), f"{function.name}(), which calls {inner}(),")


def _hit(code: Code, call: ast.Call, same: list[ast.AST], what: str) -> Iterator[Hit]:
    around = [g for g in guards(code).around(call) if g.test.which != "group"]
    if not around or guards(code).paired(call, same):
        return
    yield Hit(
        code.span(call),
        f"{what} {_runs_on(around[0])}: the other ranks never call it, so these wait for them until the timeout.",
    )


def _runs_on(guard: Guard) -> str:
    test = guard.test
    rank = {"global": "rank", "local": "local rank"}.get(test.which, test.which)
    if test.value.startswith("<"):
        return f"runs only where {rank} {test.value}" if test.equal else f"does not run where {rank} {test.value}"
    return f"runs only on {rank} {test.value}" if test.equal else f"runs on all ranks but {rank} {test.value}"


def _helpers(code: Code, calls: list[ast.Call]) -> dict[Function, str]:
    """Local functions in which a collective is called on all ranks that come there."""
    found: dict[Function, str] = {}
    for call in calls:
        function = code.function(call)
        if function is not None and call in calls_under(code, function) and not guards(code).around(call):
            found.setdefault(function, code.name(call.func).rsplit(".", 1)[-1])
    return found
