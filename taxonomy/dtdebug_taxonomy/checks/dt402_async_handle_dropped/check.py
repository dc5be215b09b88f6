"""Asynchronous communication calls whose handle is neither kept nor waited for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared import horovod
from dtdebug_taxonomy.checks.shared.arguments import keyword, remove
from dtdebug_taxonomy.checks.shared.asynchronous import POINT_TO_POINT, asynchronous
from dtdebug_taxonomy.checks.shared.names import DIST
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS
from dtdebug_taxonomy.source.text import Span

_SYNCHRONIZE = (DIST + "barrier", "torch.cuda.synchronize", "torch.accelerator.synchronize", "torch.npu.synchronize")
_SYNC_NAME = re.compile(r"(^|_)(sync|synchroni[sz]e|barrier|wait|wait_all|waitall)(_|$)", re.IGNORECASE)
"""Names of the program's own functions that wait for pending calls: `sync_all()`."""
_ELSEWHERE = re.compile(r"coalesc|raises", re.IGNORECASE)
"""Contexts that wait for all calls in them, and those of tests that expect an error."""


def check(code: Code) -> Iterator[Hit]:
    """Report the call."""
    for call in asynchronous(code):
        if _is_dropped(code, call) and not _waits_otherwise(code, call) and not _carries_nothing(code, call):
            name = code.name(call.func).rsplit(".", 1)[-1]
            yield Hit(
                code.span(call),
                f"The handle of this asynchronous {name}() is dropped: the tensor may be read or "
                "overwritten before the communication has finished.",
                _fix(code, call),
            )


def _is_dropped(code: Code, call: ast.Call) -> bool:
    up = code.parent[call]
    if isinstance(up, ast.Expr):
        return True
    if isinstance(up, ast.ListComp | ast.GeneratorExp) and up.elt is call:
        return isinstance(code.parent[up], ast.Expr)
    if isinstance(up, ast.Assign) and len(up.targets) == 1 and isinstance(up.targets[0], ast.Name):
        return up.targets[0].id != "_" and not any(_loads(code, up.targets[0].id, code.scope(up)))
    if (
        isinstance(up, ast.Call)
        and isinstance(up.func, ast.Attribute)
        and up.func.attr == "append"
        and isinstance(up.func.value, ast.Name)
        and isinstance(code.parent[up], ast.Expr)
    ):
        name = up.func.value.id
        made_here = any(b.how == "assign" for b in code.bound(up.func.value))
        return made_here and all(_appends(code, use) for use in _loads(code, name, code.scope(up)))
    return False


def _carries_nothing(code: Code, call: ast.Call) -> bool:
    """True if a call only opens a connection: the tensors that it sends are empty and unnamed."""
    given = call.args[0] if call.args else None
    listed = given.elts if isinstance(given, ast.List) else ()
    made = [v for element in listed for v in (code.values(element) if isinstance(element, ast.Name) else [element])]
    if not made or not all(isinstance(v, ast.Call) and code.name(v.func) == DIST + "P2POp" for v in made):
        return False
    tensors = [code.argument(v, "tensor", 1) for v in made if isinstance(v, ast.Call)]
    calls = [[code.name(c.func) for c in code.inside(t, ast.Call)] if t is not None else [] for t in tensors]
    return all("torch.empty" in names for names in calls)


def _loads(code: Code, name: str, home: ast.AST) -> Iterator[ast.Name]:
    """Yield the places in a scope, nested scopes included, that read a name."""
    for node in code.nodes(ast.Name):
        read = node.id == name and isinstance(node.ctx, ast.Load)
        if read and (home is code.tree or any(a is home for a in code.ancestors(node))):
            yield node


def _appends(code: Code, use: ast.Name) -> bool:
    up = code.parent[use]
    return isinstance(up, ast.Attribute) and up.attr in {"append", "clear"}


def _waits_otherwise(code: Code, call: ast.Call) -> bool:
    """True if a group waits for all its calls, or a device-wide wait or a later barrier follows."""
    for up in code.ancestors(call):
        if isinstance(up, ast.With) and any(_ELSEWHERE.search(code.source_of(i.context_expr)) for i in up.items):
            return True
        if isinstance(up, FUNCTIONS):
            break
    home = code.function(call)
    own = (c for c in code.nodes(ast.Call) if isinstance(c.func, ast.Name) and _SYNC_NAME.search(c.func.id))
    if any(code.order[c] > code.order[call] and code.function(c) is home for c in own):
        return True
    later = [c for c in code.calls(*_SYNCHRONIZE) if code.order[c] > code.order[call] and code.function(c) is home]
    return any(code.constant(code.argument(c, "async_op", 1)) is not True for c in later)


def _fix(code: Code, call: ast.Call) -> Fix | None:
    if not isinstance(code.parent[call], ast.Expr):
        return None
    given = keyword(call, "async_op")
    if given is not None:
        return Fix("Let it wait: without async_op=True", (remove(code, given),))
    span = code.span(call)
    if code.name(call.func) in POINT_TO_POINT[:2]:
        return Fix("Wait for it", (Edit(Span(span.end, span.end), ".wait()"),))
    prefix = horovod.prefix(code, call)
    if prefix and code.name(call.func).startswith("horovod.torch"):
        start = Edit(Span(span.start, span.start), f"{prefix}synchronize(")
        return Fix("Wait for it", (start, Edit(Span(span.end, span.end), ")")))
    return None
