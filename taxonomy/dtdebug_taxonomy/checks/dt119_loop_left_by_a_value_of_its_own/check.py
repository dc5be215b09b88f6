"""Training loops that each rank leaves by a value of its own part of the data."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.divergence.decisions import of_check
from dtdebug_taxonomy.source.python.code import Code


def check(code: Code) -> Iterator[Hit]:
    """Report the condition by which the loop is left."""
    for found in of_check(code, "DT119"):
        yield Hit(
            code.span(found.node),
            "Each rank decides this by a value of its own part of the data, so some leave the loop and the "
            "others wait for them in the next step.",
        )
