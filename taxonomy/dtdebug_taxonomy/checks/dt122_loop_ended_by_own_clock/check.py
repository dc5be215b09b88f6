"""Loops in which the ranks wait for each other and that each rank ends by its own clock."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.stepping import is_agreed, synchronising_calls
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards

_CLOCKS = {
    *("time.time", "time.monotonic", "time.perf_counter", "time.time_ns", "time.monotonic_ns", "time.perf_counter_ns"),
    *("datetime.datetime.now", "datetime.datetime.utcnow"),
}
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def check(code: Code) -> Iterator[Hit]:
    """Report the condition."""
    if code.role == "test" or not code.calls(*_CLOCKS):
        return
    loops = {a for t in synchronising_calls(code) for a in code.ancestors(t) if isinstance(a, _LOOPS)}
    for loop in sorted(loops, key=code.order.__getitem__):
        for test in _ends(code, loop):
            if _by_the_clock(code, test) and not is_agreed(code, [test], test):
                yield Hit(
                    code.span(test),
                    "Each rank asks its own clock here, so one ends the loop a round before another, which then waits "
                    "for it.",
                )


def _ends(code: Code, loop: ast.AST) -> Iterator[ast.expr]:
    """Yield the conditions by which a loop is left, on any rank."""
    if isinstance(loop, ast.While):
        yield loop.test
    for condition in code.inside(loop, ast.If):
        nearest = next((a for a in code.ancestors(condition) if isinstance(a, _LOOPS)), None)
        if isinstance(condition.body[-1], ast.Break) and nearest is loop and not guards(code).around(condition):
            yield condition.test


def _by_the_clock(code: Code, test: ast.expr, depth: int = 2) -> bool:
    if any(code.name(c.func) in _CLOCKS for c in code.inside(test, ast.Call)):
        return True
    values = (v for n in code.inside(test, ast.Name) for v in code.values(n) if v is not None and v is not n)
    return depth > 0 and any(_by_the_clock(code, v, depth - 1) for v in values)
