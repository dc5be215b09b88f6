"""Collectives under a condition on the rank, so that some ranks never call them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Fix, Hit
from dtdebug_taxonomy.checks.divergence.decisions import of_check
from dtdebug_taxonomy.checks.shared.diverging import collective_helpers, collectives, diverging, last_name
from dtdebug_taxonomy.checks.shared.elsewhere import diverging_elsewhere
from dtdebug_taxonomy.checks.shared.lifting import lift_call
from dtdebug_taxonomy.source.python.code import Code


def check(code: Code) -> Iterator[Hit]:
    """Report the call under the condition: the collective itself, or a local function that makes it."""
    if code.role == "test":
        return  # they diverge on purpose
    calls = collectives(code)
    for call, what, guard in (*diverging(code, calls, collective_helpers(code)), *diverging_elsewhere(code)):
        if not guard.early:
            yield Hit(
                code.span(call),
                f"{what} runs {guard.test.words}: the other ranks never call it, so it waits for them "
                "until the timeout.",
                _fix(code, call, calls) if call in calls or code.local_function(call) else None,
            )
    for found in of_check(code, "DT101"):
        where = found.guard.test.words if found.guard else "on some ranks only"
        yield Hit(
            code.span(found.node),
            f"This leads to {found.call}() and runs {where}: the other ranks never call it, so it waits for them "
            "until the timeout.",
        )


def _fix(code: Code, call: ast.Call, calls: list[ast.Call]) -> Fix | None:
    fix = lift_call(code, call, f"Call {last_name(code, call)}() on every rank", calls)
    return fix._replace(safe=False) if fix else None
