"""Keys of a sharded checkpoint beside those that a load asks for, as the planner of the load holds both."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from dtdebug.account.objects import MISSING, attribute, is_kind, item
from dtdebug.account.places import place
from dtdebug.account.scopes import Scope
from dtdebug.account.values import masked, named
from dtdebug_taxonomy.model.account import Link

_MOST = 20_000
"""Maximum number of keys that are compared."""
_SHOWN = 8


def keys_beside(stack: Sequence[Scope], scope: Scope) -> Iterator[Link]:
    """Yield the first key that the checkpoint lacks with the one it has instead, and the names at its top."""
    for frame in reversed(stack):
        planner = item(frame.local, "planner") if not frame.user else MISSING
        if planner is MISSING:
            continue
        asked, metadata = attribute(planner, "state_dict"), attribute(planner, "metadata")
        held = _names(attribute(metadata, "state_dict_metadata")) if metadata is not MISSING else []
        missing = [name for name in _names(asked) if name not in {*held}]
        if not held or not missing:
            return
        at = place(scope, ast.Pass(lineno=scope.line))
        near = _alike(missing[0], held)
        yield Link(value=masked(missing[0], repr(near) if near else ""), how="file", place=at)
        tops = list(dict.fromkeys(name.partition(".")[0] for name in held))[:_SHOWN]
        yield Link(value=named("checkpoint", tops), how="file", place=at)
        return


def _names(table: Any) -> list[str]:
    keys = islice(dict.keys(table), _MOST) if is_kind(table, dict) else ()
    return [key for key in keys if type(key) is str]


def _alike(name: str, held: Sequence[str]) -> str:
    """Return the one key that ends as a name does; empty if several end so far, or none does."""
    parts = name.split(".")
    for begin in range(len(parts)):
        end = ".".join(parts[begin:])
        found = [key for key in held if key == end or key.endswith(f".{end}")]
        if found:
            return found[0] if len(found) == 1 else ""
    return ""
