"""Checkpoints that every rank writes to the same file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.mending import named
from dtdebug_taxonomy.checks.names import FULLY_SHARD, INIT
from dtdebug_taxonomy.checks.ranks_seen import depends_on_rank
from dtdebug_taxonomy.checks.wrapping import DDPS, FSDP1
from dtdebug_taxonomy.source.guards import guards
from dtdebug_taxonomy.source.names import dotted
from dtdebug_taxonomy.source.python import Code
from dtdebug_taxonomy.source.syntax import FUNCTIONS, Function
from dtdebug_taxonomy.source.text import Span

_SHARDED = ("deepspeed", "torch.distributed.checkpoint", "megatron")
_ASKS = re.compile(
    r"rank|main|master|primary|chief|leader|zero|root|should|do_save|proc|verbose|first|writer|logger", re.IGNORECASE
)
_OWN = re.compile(
    r"rank|uuid|hostname|pid|tmp|temp|buffer|bytesio|worker|process|device|gpu|shard|(^|_)(fold|trial)(_|$)",
    re.IGNORECASE,
)
_ENTRY = re.compile(r"_*(main|train|run|worker|fit|demo|start|launch|entry)\w*", re.IGNORECASE)


def check(code: Code) -> Iterator[Hit]:
    """Reports the call."""
    if not code.calls(*DDPS, INIT) or code.calls(*FSDP1, *FULLY_SHARD) or code.imports_any(*_SHARDED):
        return
    for call in code.calls("torch.save"):
        path = code.argument(call, "f", 1)
        if path is None or not _is_shared(code, path) or not _for_all(code, call):
            continue
        yield Hit(
            code.span(call),
            "Every rank writes this file: they overwrite each other, and what is left can be cut off or mixed.",
            _fix(code, call),
        )


def _is_shared(code: Code, path: ast.expr) -> bool:
    """Whether all ranks surely write to the same path."""
    values = [path, *(v for n in code.inside(path, ast.Name, ast.Attribute) for v in code.values(n) if v is not None)]
    if any(_OWN.search(code.source_of(v)) or depends_on_rank(code, v) for v in values):
        return False
    return not (isinstance(path, ast.Call) and not dotted(path.func).endswith(("join", "Path", "format", "str")))


def _for_all(code: Code, node: ast.AST, depth: int = 4) -> bool:
    """Whether every rank comes to a place, as far as this file tells."""
    if guards(code).around(node):
        return False
    function: Function | None = None
    inner: ast.AST = node
    for up in code.ancestors(node):
        if isinstance(up, ast.If | ast.IfExp) and inner is not up.test and _asks(code, up.test):
            return False
        if isinstance(inner, ast.stmt) and any(_leaves_by_rank(code, s, inner) for s in code.block(inner)):
            return False
        if isinstance(up, FUNCTIONS):
            function = up
            break
        inner = up
    if function is None:
        return True
    if function.decorator_list or not depth:
        return False
    is_method = isinstance(code.parent.get(function), ast.ClassDef)
    callers = code.callers.get(function) or (code.methods(function.name) if is_method else [])
    if not callers:
        return bool(_ENTRY.fullmatch(function.name)) and not is_method
    return all(_for_all(code, c, depth - 1) for c in callers)


def _asks(code: Code, test: ast.expr) -> bool:
    """Whether a condition may be one on the rank, by the names in it."""
    written = code.source_of(test)
    return bool(_ASKS.search(written)) and "__name__" not in written


def _leaves_by_rank(code: Code, statement: ast.stmt, until: ast.stmt) -> bool:
    if not isinstance(statement, ast.If) or code.order[statement] >= code.order[until]:
        return False
    leaves = isinstance(statement.body[-1], ast.Return | ast.Continue)
    return leaves and _asks(code, statement.test)


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
