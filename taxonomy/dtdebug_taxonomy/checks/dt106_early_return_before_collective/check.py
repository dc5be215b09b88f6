"""Collectives that come after some ranks have left the function, the loop or the program."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.diverging import collectives, diverging
from dtdebug_taxonomy.source.python import Code


def check(code: Code) -> Iterator[Hit]:
    """Reports the collective, or the call of a local function that makes it."""
    if code.role == "test":
        return  # they diverge on purpose
    for call, what, guard in diverging(code, collectives(code)):
        if guard.early:
            line = code.text.place(code.span(guard.node).start).line
            yield Hit(
                code.span(call),
                f"{what} runs {guard.test.words}, for the others have left at line {line}: "
                "they never call it, so these wait for them until the timeout.",
            )
