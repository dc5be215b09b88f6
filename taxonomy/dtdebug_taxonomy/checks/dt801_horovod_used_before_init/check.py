"""Calls of Horovod in programs that never call `init()`, or call it later."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared import horovod
from dtdebug_taxonomy.checks.shared.fixing import indent_of
from dtdebug_taxonomy.checks.shared.ranks_seen import is_reached
from dtdebug_taxonomy.source.python.bindings import surely_before
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.text import Span

_NEED = (
    *("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size", "DistributedOptimizer"),
    *("broadcast_parameters", "broadcast_optimizer_state", "broadcast_variables", "broadcast_global_variables"),
    *("allreduce", "allreduce_", "allgather", "broadcast", "broadcast_", "broadcast_object", "alltoall", "barrier"),
)
_SETS_UP = re.compile(r"init|set_?up|hvd|horovod", re.IGNORECASE)


def check(code: Code) -> Iterator[Hit]:
    """Report the first call that needs Horovod to be initialised."""
    uses = [c for c in horovod.calls(code, *_NEED) if is_reached(code, c)]
    if not uses:
        return
    starts = horovod.calls(code, "init")
    if not starts:
        here = [c for c in uses if _is_run_here(code, c)]
        if here and not _started_elsewhere(code):
            yield _hit(code, here[0], "nothing here calls init()", fix=True)
        return
    for use in uses:
        if code.scope(use) is code.tree and all(_comes_later(code, s, use) for s in starts):
            yield _hit(code, use, "init() is called further down", fix=False)
            return
        if all(code.scope(s) is code.scope(use) and surely_before(code, use, s) for s in starts) and all(
            code.order[s] > code.order[use] for s in starts
        ):
            yield _hit(code, use, "init() is called further down", fix=False)
            return


def _hit(code: Code, use: ast.Call, why: str, *, fix: bool) -> Hit:
    name = code.name(use.func).rsplit(".", 1)[-1]
    return Hit(
        code.span(use),
        f"{name}() needs Horovod to be initialized and {why}: it ends with "
        '"Horovod has not been initialized; use hvd.init()".',
        _fix(code, use) if fix else None,
    )


def _is_run_here(code: Code, use: ast.AST, depth: int = 5) -> bool:
    """True if this file itself reaches a call; calls reached only from other files may be initialised there."""
    function = code.function(use)
    if function is None:
        return True
    return depth > 0 and any(_is_run_here(code, c, depth - 1) for c in code.callers.get(function, ()))


def _started_elsewhere(code: Code) -> bool:
    """True if a function of another module may initialise Horovod."""
    return any(
        _SETS_UP.search(full) and not full.startswith(("horovod", "torch", "tensorflow", "os"))
        for local, full in code.imports.items()
    ) or any(c.func.attr == "init" for c in code.methods("init") if isinstance(c.func, ast.Attribute))


def _comes_later(code: Code, start: ast.Call, use: ast.Call) -> bool:
    """True if an `init()` runs only after a statement of the module."""
    function = code.function(start)
    if function is None:
        return code.order[start] > code.order[use]
    callers = code.callers.get(function, [])
    return bool(callers) and all(code.scope(c) is code.tree and code.order[c] > code.order[use] for c in callers)


def _fix(code: Code, use: ast.Call) -> Fix | None:
    prefix, statement = horovod.prefix(code, use), code.statement(use)
    start = code.span(statement).start
    line = code.text.starts[code.text.place(start).line - 1]
    if not prefix or code.text[line:start].strip() or code.text[start:].startswith("elif"):
        return None
    return Fix("Call init() before", (Edit(Span(line, line), f"{indent_of(code, statement)}{prefix}init()\n"),))
