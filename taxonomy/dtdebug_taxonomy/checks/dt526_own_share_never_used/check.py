"""Share of the data of a rank that is computed and then not used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import is_size, rank


def check(code: Code) -> Iterator[Hit]:
    """Report the name bound to the share."""
    loads: dict[str, list[ast.Name]] | None = None
    for assign in code.nodes(ast.Assign):
        target = assign.targets[0]
        if len(assign.targets) != 1 or not isinstance(target, ast.Name) or not _is_share(code, assign.value):
            continue
        if loads is None:
            loads = {}
            for name in code.nodes(ast.Name):
                if isinstance(name.ctx, ast.Load):
                    loads.setdefault(name.id, []).append(name)
        if _may_be_read(code, assign, loads.get(target.id, ())):
            continue
        yield Hit(
            code.span(target),
            f"Nothing uses {target.id} after this, which is the part of the data that this rank should work on: all "
            "ranks go through the same data.",
        )


def _is_share(code: Code, value: ast.expr) -> bool:
    """True for `indices.split(n // world_size)[rank]` and `data[rank::world_size]`."""
    if not isinstance(value, ast.Subscript):
        return False
    index = value.slice
    if isinstance(index, ast.Slice):
        step = index.step is not None and is_size(code, index.step)
        return step and index.lower is not None and rank(code, index.lower) in {"global", "local"}
    if rank(code, index) not in {"global", "local"} or not isinstance(value.value, ast.Call):
        return False
    parts = [*value.value.args, *(k.value for k in value.value.keywords)]
    named = dotted_name(value.value.func).rpartition(".")[2] or getattr(value.value.func, "attr", "")
    return any(word in named for word in ("split", "chunk", "partition", "shard")) and any(
        is_size(code, n) for p in parts for n in code.inside(p, ast.Name, ast.Attribute, ast.Call)
    )


def _may_be_read(code: Code, assign: ast.Assign, loads: list[ast.Name] | tuple[()]) -> bool:
    """True if the name may be read after its binding."""
    home = code.scope(assign)
    loops = {a for a in code.ancestors(assign) if isinstance(a, ast.For | ast.While | ast.AsyncFor)}
    own = set(code.inside(assign.value, ast.Name))
    for name in reversed(loads):
        if name in own:
            continue
        if code.scope(name) is not home or code.order[name] > code.order[assign]:
            return True
        if loops and loops.intersection(code.ancestors(name)):
            return True
    return False
