"""Samplers that split the data between ranks but are not passed to a loader."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.arguments import add, keyword
from dtdebug_taxonomy.checks.shared.names import LOADER, SAMPLER
from dtdebug_taxonomy.source.python.bindings import name_scope
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name


def check(code: Code) -> Iterator[Hit]:
    """Report the call that makes the sampler."""
    if code.role == "test":
        return
    for call in code.calls(SAMPLER):
        statement = code.parent.get(call)
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        name = dotted_name(statement.targets[0])
        if not name or name.startswith("_") or "." in name:
            continue
        scope = name_scope(code, call, name)
        if scope is code.tree and code.role != "program":
            continue
        uses = [n for n in code.inside(scope, ast.Name) if n.id == name and isinstance(n.ctx, ast.Load)]
        if uses and all(_tells_epoch(code, n) for n in uses):
            yield Hit(
                code.span(call),
                f"No loader is given {name}: each rank goes through all of the data, and set_epoch() changes nothing.",
                _fix(code, call, name),
            )
        elif not uses and not _is_global(code, name) and code.calls(LOADER):
            message = f"Nothing uses {name}: each rank goes through all of the data."
            yield Hit(code.span(call), message, _fix(code, call, name))


def _is_global(code: Code, name: str) -> bool:
    return any(name in n.names for n in code.nodes(ast.Global))


def _tells_epoch(code: Code, node: ast.Name) -> bool:
    up = code.parent.get(node)
    return isinstance(up, ast.Attribute) and up.attr == "set_epoch"


def _fix(code: Code, sampler: ast.Call, name: str) -> Fix | None:
    """Return a fix that passes the sampler to the only loader of the same data here, without its own shuffle."""
    data = code.argument(sampler, "dataset", 0)
    loaders = [
        c
        for c in code.calls(LOADER)
        if data is not None
        and (given := code.argument(c, "dataset", 0)) is not None
        and code.source_of(given) == code.source_of(data)
        and code.scope(c) is code.scope(sampler)
        and code.order[c] > code.order[sampler]
    ]
    if len(loaders) != 1 or code.has_unpacking(loaders[0]) or len(loaders[0].args) > 2:
        return None
    if any(keyword(loaders[0], k) for k in ("sampler", "batch_sampler")):
        return None
    shuffle = keyword(loaders[0], "shuffle")
    text = f"sampler={name}"
    edit = Edit(code.span(shuffle), text) if shuffle else add(code, loaders[0], text)
    return Fix("Give it to the loader", (edit,), safe=False)
