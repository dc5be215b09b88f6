"""Checkpoints that every rank writes to the same file."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.everyone import for_all, is_shared
from dtdebug_taxonomy.checks.mending import named
from dtdebug_taxonomy.checks.names import FULLY_SHARD, INIT
from dtdebug_taxonomy.checks.wrapping import DDPS, FSDP1
from dtdebug_taxonomy.source.names import dotted
from dtdebug_taxonomy.source.python import Code
from dtdebug_taxonomy.source.text import Span

_SHARDED = ("deepspeed", "torch.distributed.checkpoint", "megatron")


def check(code: Code) -> Iterator[Hit]:
    """Reports the call."""
    if not code.calls(*DDPS, INIT) or code.calls(*FSDP1, *FULLY_SHARD) or code.imports_any(*_SHARDED):
        return
    for call in code.calls("torch.save"):
        path = code.argument(call, "f", 1)
        if path is None or not _is_one_file(code, path) or not for_all(code, call):
            continue
        yield Hit(
            code.span(call),
            "Every rank writes this file: they overwrite each other, and what is left can be cut off or mixed.",
            _fix(code, call),
        )


def _is_one_file(code: Code, path: ast.expr) -> bool:
    """Whether all ranks surely write to the same path."""
    known = not isinstance(path, ast.Call) or dotted(path.func).endswith(("join", "Path", "format", "str"))
    return known and is_shared(code, path)


def _fix(code: Code, call: ast.Call) -> Fix | None:
    """Puts a statement of one line under a condition on the rank."""
    statement, span = code.statement(call), code.span(code.statement(call))
    place = code.text.place(span.start)
    indent = code.text.line(place.line)[: place.column - 1]
    if not isinstance(statement, ast.Expr) or indent.strip() or "torch.distributed" not in code.imports.values():
        return None
    if code.text.place(span.end).line != place.line:
        return None
    get_rank, imports = named(code, "torch.distributed.get_rank")
    head = f"if {get_rank}() == 0:\n{indent}    "
    return Fix("Save on rank 0 only", (*imports, Edit(Span(span.start, span.start), head)))
