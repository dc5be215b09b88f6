"""Truth values in quotes, of which some readers take each for true."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy import facts
from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.source.deepspeed import configurations
from dtdebug_taxonomy.source.python import Code
from dtdebug_taxonomy.source.source import Source

_TEXTS = {"true": "true", "false": "false"}


def check(source: Source) -> Iterator[Hit]:
    """Reports "true" and "false" as texts for keys that are truth values."""
    for root in configurations(source):
        for path, entry in root.walk():
            row = facts.deepspeed_config().keys.get(path)
            value = entry.node.value
            if row is None or row.type != "boolean" or not isinstance(value, str) or value.lower() not in _TEXTS:
                continue
            right = value.lower().capitalize() if isinstance(source, Code) else value.lower()
            quoted = source.cut(entry.node.span)[:1] in {'"', "'"}
            yield Hit(
                entry.node.span,
                f"{path} is a string, not a boolean: Transformers takes every string for true, {value!r} too.",
                Fix(f"Write {right}", (Edit(entry.node.span, right),)) if quoted else None,
            )
