"""Collectives of the default group in functions run by a thread, while the program makes others itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.diverging import collective_helpers, collectives, last_name
from dtdebug_taxonomy.checks.shared.stepping import synchronising_calls
from dtdebug_taxonomy.source.python.code import Code


def check(code: Code) -> Iterator[Hit]:
    """Report the function that is passed to the thread."""
    calls = collectives(code)
    if not calls or code.role == "test":
        return
    through, steps = collective_helpers(code), synchronising_calls(code)
    for started in code.nodes(ast.Call):
        function = _run(code, started)
        found = next((origin for f, origin in through.items() if f.name == function and function), None)
        if found is None or not any(_is_beside(code, c, function) for c in steps):
            continue
        yield Hit(
            code.span(started),
            f"This thread calls {last_name(code, found)}() on the group that the training uses too: "
            "the two interleave differently on each rank, and the ranks wait in different calls. "
            "Give it a group of its own.",
        )


def _is_beside(code: Code, call: ast.AST, function: str) -> bool:
    home = code.function(call)
    return home is None or home.name != function


def _run(code: Code, call: ast.Call) -> str:
    """Return the name of the function that a call runs in a thread."""
    given: ast.expr | None = None
    if code.name(call.func) == "threading.Thread":
        given = code.argument(call, "target", 1)
    elif getattr(call.func, "attr", "") == "submit" and isinstance(call.func, ast.Attribute) and call.args:
        made = code.made_by(call.func.value)
        given = call.args[0] if made == {"concurrent.futures.ThreadPoolExecutor"} else None
    return getattr(given, "attr", "") or getattr(given, "id", "")
