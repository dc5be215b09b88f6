"""Calls whose arguments, as the source decides them, are not what the API asks for."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.contract_calls import broken_calls, sentence, started_size
from dtdebug_taxonomy.source.python.code import Code


def check(code: Code) -> Iterator[Hit]:
    """Report the call, once, with the values and where they come from."""
    if code.role == "test":  # which break what they test on purpose
        return
    seen = set()
    for found in broken_calls(code, size=started_size(code)):
        statement = code.statement(found.call)
        if found.contract.check or statement in seen or not (said := sentence(code, found)):
            continue
        seen.add(statement)
        yield Hit(code.span(found.call), said, found.fix)
