"""Samplers that split the data between ranks, but that no loader is given."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.names import LOADER, SAMPLER
from dtdebug_taxonomy.source.bindings import home
from dtdebug_taxonomy.source.names import dotted
from dtdebug_taxonomy.source.python import Code


def check(code: Code) -> Iterator[Hit]:
    """Reports the call that makes the sampler."""
    if code.role == "test":
        return
    for call in code.calls(SAMPLER):
        statement = code.parent.get(call)
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        name = dotted(statement.targets[0])
        if not name or name.startswith("_") or "." in name:
            continue
        scope = home(code, call, name)
        if scope is code.tree and code.role != "program":
            continue
        uses = [n for n in code.inside(scope, ast.Name) if n.id == name and isinstance(n.ctx, ast.Load)]
        if uses and all(_tells_epoch(code, n) for n in uses):
            yield Hit(
                code.span(call),
                f"No loader is given {name}: each rank goes through all of the data, and set_epoch() changes nothing.",
            )
        elif not uses and not _is_global(code, name) and code.calls(LOADER):
            yield Hit(code.span(call), f"Nothing uses {name}: each rank goes through all of the data.")


def _is_global(code: Code, name: str) -> bool:
    return any(name in n.names for n in code.nodes(ast.Global))


def _tells_epoch(code: Code, node: ast.Name) -> bool:
    up = code.parent.get(node)
    return isinstance(up, ast.Attribute) and up.attr == "set_epoch"
