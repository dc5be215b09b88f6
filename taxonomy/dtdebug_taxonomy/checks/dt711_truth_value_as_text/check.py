"""Quoted `"false"`, which some readers take for true."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.knowledge import facts
from dtdebug_taxonomy.source.deepspeed import configurations
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.source import Source


def check(source: Source) -> Iterator[Hit]:
    """Report the string for boolean keys; a quoted "true" means the same."""
    for root in configurations(source):
        for path, entry in root.walk():
            row = facts.deepspeed_config().keys.get(path)
            value = entry.node.value
            if row is None or row.type != "boolean" or not isinstance(value, str) or value.lower() != "false":
                continue
            right = "False" if isinstance(source, Code) else "false"
            quoted = source.cut(entry.node.span)[:1] in {'"', "'"}
            yield Hit(
                entry.node.span,
                f"{path} is a string, not a boolean: Transformers takes every string for true, {value!r} too.",
                Fix(f"Write {right}", (Edit(entry.node.span, right),)) if quoted else None,
            )
