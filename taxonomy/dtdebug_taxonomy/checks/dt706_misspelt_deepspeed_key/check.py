"""Misspelt keys of a DeepSpeed configuration, and keys in the wrong section."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.near_names import nearest
from dtdebug_taxonomy.knowledge import facts
from dtdebug_taxonomy.source.config.tree import KeyValue, Node
from dtdebug_taxonomy.source.deepspeed import configurations
from dtdebug_taxonomy.source.source import Source

_OLDER = frozenset({"cpu_offload_params", "cpu_offload_use_pin_memory", "offload_params_config"})
_ELSEWHERE = frozenset({"zero_optimization"})
"""Sections with unique keys, so that such a key at the top level is meant for them."""
_FEW = 3
"""Maximum number of unknown keys taken for typos; more of them belong to another program."""
_ENOUGH = 6
"""Minimum letters of a key for a similarity to count."""


def check(source: Source) -> Iterator[Hit]:
    """Compare the keys of each section with those that DeepSpeed knows there."""
    for root in configurations(source):
        yield from _section(source, root, "")


def _section(source: Source, node: Node, path: str) -> Iterator[Hit]:
    table, known = facts.deepspeed_config(), _keys(path)
    if not path and len(node.entries.keys() - known) > len(node.entries.keys() & known) + _FEW:
        return  # a program whose own settings share some names with DeepSpeed
    for key, entry in node.entries.items():
        here = f"{path}.{key}" if path else key
        row = table.keys.get(here)
        if row is not None:
            if not row.open:
                yield from _section(source, entry.node, here)
        elif here not in table.removed and key not in _OLDER and source.cut(entry.key_span) == key:
            meant = nearest(_plain(key), known - node.entries.keys()) if len(key) >= _ENOUGH else None
            if meant is not None:
                yield _misspelt(path, entry, meant)
            elif not path and (section := _section_of(key)):
                yield Hit(
                    entry.key_span,
                    f"{key} belongs into the section {section}: here, at the top, DeepSpeed ignores it.",
                )


def _plain(key: str) -> str:
    return key.replace("-", "_").lower()


def _misspelt(path: str, entry: KeyValue, meant: str) -> Hit:
    then = (
        "DeepSpeed ignores keys that it does not know, so the default holds."
        if not path
        else f"DeepSpeed refuses unknown keys in {path}."
    )
    fix = Fix(f"Write {meant}", (Edit(entry.key_span, meant),), safe=bool(path))
    return Hit(entry.key_span, f"DeepSpeed has no key {entry.key} here, {meant} is meant. {then}", fix)


@lru_cache(maxsize=64)
def _keys(path: str) -> frozenset[str]:
    start = f"{path}." if path else ""
    rows = (k.removeprefix(start) for k in facts.deepspeed_config().keys if k.startswith(start))
    return frozenset(k for k in rows if "." not in k)


def _section_of(key: str) -> str | None:
    return next((s for s in _ELSEWHERE if key in _keys(s) and len(key) >= _ENOUGH), None)
