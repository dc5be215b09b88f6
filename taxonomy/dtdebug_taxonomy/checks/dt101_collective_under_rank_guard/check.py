"""Collectives that stand under a condition on the rank, so that some ranks never call them."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.diverging import collectives, diverging
from dtdebug_taxonomy.checks.elsewhere import diverging_elsewhere
from dtdebug_taxonomy.source.python import Code


def check(code: Code) -> Iterator[Hit]:
    """Reports the call under the condition: the collective itself, or a local function that makes it."""
    if code.role == "test":
        return  # they diverge on purpose
    for call, what, guard in (*diverging(code, collectives(code)), *diverging_elsewhere(code)):
        if not guard.early:
            yield Hit(
                code.span(call),
                f"{what} runs {guard.test.words}: the other ranks never call it, so these wait for them "
                "until the timeout.",
            )
