"""The variables of UCX, from the tables of its sources: each transport has a prefix, and those of what it extends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_CONSTANT_USE = re.compile(r"\{\s*(\w+_PREFIX)")
_TABLE = re.compile(r"ucs_config_field_t\s+(?P<name>\w+)\[\]\s*=\s*\{(?P<body>.*?)\n\};", re.DOTALL)
_FIELD = re.compile(
    r'\{\s*"(?P<name>[A-Z0-9_]*)",\s*(?P<default>"[^"]*"|\w+)(?P<rest>(?:(?!\n\s*\{\s*["A-Z]).)*)', re.DOTALL
)
_NESTED = re.compile(r"UCS_CONFIG_TYPE_TABLE\((\w+)\)")
_REGISTERED = re.compile(
    r"(?:UCS_CONFIG_(?:REGISTER|DECLARE)_TABLE|UCS_CONFIG_ADD_TABLE)\(\s*(?P<table>\w+),[^,]*,\s*(?P<prefix>\"\w*\"|\w+)"
    r"|UCT_TL_DEFINE_ENTRY\([^;]*?(?P<prefix2>\"\w+_\"|\w+_PREFIX),\s*(?P<table2>\w+)"
    r"|\.prefix\s*=\s*(?P<prefix3>\"\w*\"|\w+),\s*\.table\s*=\s*(?P<table3>\w+)",
)
_POOL = re.compile(r'UCT_IFACE_MPOOL_CONFIG_FIELDS\("(\w*)"')
_OF_POOLS = ("MAX_BUFS", "BUFS_GROW", "MAX_CHUNK_SIZE", "GROW_FACTOR")
_CONSTANT = re.compile(r'#define\s+(\w+_PREFIX)\s+"(\w+)"')


def ucx(clone: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Each variable with the file and the default; a field of a nested table also with the prefix of its own."""
    tables: dict[str, tuple[str, str]] = {}
    used: list[tuple[str, str]] = []
    constants: dict[str, str] = {}
    for file in sorted((clone / "src").rglob("*.[ch]")):
        text = file.read_text(encoding="utf-8", errors="replace")
        where = str(file.relative_to(clone))
        constants.update(_CONSTANT.findall(text))
        tables.update((m["name"], (m["body"], where)) for m in _TABLE.finditer(text))
        for m in _REGISTERED.finditer(text):
            table = m["table"] or m["table2"] or m["table3"]
            used.append((table, m["prefix"] or m["prefix2"] or m["prefix3"]))
    constants["NULL"] = ""
    tables = {
        name: (_CONSTANT_USE.sub(lambda m: f'{{"{constants.get(m[1], "")}"', body), w)
        for name, (body, w) in tables.items()
    }
    for table, prefix in used:
        spelt = prefix.strip('"') if prefix.startswith('"') else constants.get(prefix)
        if spelt is not None:
            yield from _fields(tables, table, {spelt})


def _fields(
    tables: dict[str, tuple[str, str]], table: str, prefixes: set[str], left: int = 8
) -> Iterator[tuple[str, dict[str, str]]]:
    body, where = tables.get(table, ("", ""))
    for own in _POOL.findall(body):
        for prefix in sorted(prefixes):
            yield from ((f"UCX_{prefix}{own}{part}", {"where": where}) for part in _OF_POOLS)
    for field in _FIELD.finditer(body):
        nested = _NESTED.search(field["rest"])
        if nested and left:
            own = {field["name"]} if field["name"] else set()
            yield from _fields(tables, nested[1], prefixes | own, left - 1)
        elif field["name"] and not nested:
            default = field["default"].strip('"') if field["default"].startswith('"') else ""
            for prefix in sorted(prefixes):
                yield f"UCX_{prefix}{field['name']}", {"where": where, "default": default}
