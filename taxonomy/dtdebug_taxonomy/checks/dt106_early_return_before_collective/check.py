"""Collectives that follow an exit by some ranks from the function, the loop or the program."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.diverging import collective_helpers, collectives, diverging, last_name
from dtdebug_taxonomy.checks.shared.elsewhere import diverging_elsewhere
from dtdebug_taxonomy.checks.shared.leaving import leaving
from dtdebug_taxonomy.checks.shared.lifting import move_call_up
from dtdebug_taxonomy.checks.shared.names import INIT
from dtdebug_taxonomy.source.python.code import Code


def check(code: Code) -> Iterator[Hit]:
    """Report the collective, or the call of a local function that makes it."""
    if code.role == "test":
        return  # they diverge on purpose
    calls = collectives(code)
    for call, what, guard in (*diverging(code, calls, collective_helpers(code)), *diverging_elsewhere(code)):
        if guard.early and not _joins_later(code, guard.node, call):
            line = code.text.place(code.span(guard.node).start).line
            yield Hit(
                code.span(call),
                f"{what} runs {guard.test.words}, since the others have left at line {line}: "
                "they never call it, so it waits for them until the timeout.",
                move_call_up(code, call, f"Call {last_name(code, call)}() before they leave")
                if call in calls
                else None,
            )
    for node, guard, missed in leaving(code, ast.Return, ast.Continue):
        line = code.text.place(code.span(missed).start).line
        yield Hit(
            code.span(node),
            f"This is reached {guard.test.words}, in some runs: the other ranks go on to {last_name(code, missed)}() "
            f"at line {line} and wait for these there until the timeout.",
        )


def _joins_later(code: Code, leave: ast.AST, call: ast.Call) -> bool:
    """True if the group is created between an exit and a call, so that the ranks that left are not in it."""
    return any(
        code.order[leave] < code.order[c] < code.order[call] and code.function(c) is code.function(call)
        for c in code.calls(INIT)
    )
