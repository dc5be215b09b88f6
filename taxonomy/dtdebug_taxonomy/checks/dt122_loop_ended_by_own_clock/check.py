"""Loops in which the ranks wait for each other and that each rank ends by its own clock."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.divergence.decisions import of_check
from dtdebug_taxonomy.source.python.code import Code


def check(code: Code) -> Iterator[Hit]:
    """Report the condition."""
    for found in of_check(code, "DT122"):
        yield Hit(
            code.span(found.node),
            "Each rank asks its own clock here, so one ends the loop a round before another, which then waits for it.",
        )
