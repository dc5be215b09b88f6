"""Errors of the backward pass, such as out of memory, after which one rank continues on its own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.stepping import backwards, in_step, is_agreed
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import several
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS
from dtdebug_taxonomy.source.text import Span

_BROAD = {
    "Exception",
    "BaseException",
    "RuntimeError",
    "torch.cuda.OutOfMemoryError",
    "torch.OutOfMemoryError",
    "torch.AcceleratorError",
    "MemoryError",
}
_TRAINING = re.compile(r"(?i)optim|\bstep|_step|update|loss|train")
_MAKES_UP = re.compile(r"backward|dummy|fake|sync|reduce")
_ENDS = {"sys.exit", "exit", "quit", "os._exit", "os.abort", "os.kill", "torch.distributed.destroy_process_group"}


def check(code: Code) -> Iterator[Hit]:
    """Report the `except`."""
    if not code.nodes(ast.Try) or not in_step(code):
        return
    seen: set[ast.ExceptHandler] = set()
    for backward in backwards(code):
        inner: ast.AST = backward
        for up in code.ancestors(backward):
            if isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                break
            if isinstance(up, ast.Try) and inner in up.body and _trains(code, up):
                for handler in up.handlers:
                    if handler not in seen and _is_broad(code, handler) and _continues_alone(code, handler):
                        seen.add(handler)
                        yield _hit(code, handler)
            inner = up


def _trains(code: Code, node: ast.AST) -> bool:
    """True if the backward pass belongs to a training rather than to a measurement of one module."""
    function = code.function(node)
    return bool(_TRAINING.search(code.source_of(function) if function else code.text))


def _hit(code: Code, handler: ast.ExceptHandler) -> Hit:
    start = code.span(handler).start
    span = code.span(handler.type) if handler.type else Span(start, start + len("except"))
    if _is_at_end(code, handler):
        return Hit(
            span,
            "After this error the rank ends with status 0, which the launcher takes for success: the others wait for "
            "it in their next collective until the timeout. Raise it again after it is logged.",
        )
    return Hit(
        span,
        "After this error the rank goes on without the backward pass that the others are in: "
        "they wait for its gradients, or average them with those of another step.",
    )


def _is_at_end(code: Code, handler: ast.ExceptHandler) -> bool:
    """True if nothing of the program follows after a handler."""
    inner: ast.AST = code.parent[handler]
    for up in code.ancestors(inner):
        block = code.block(inner) if isinstance(inner, ast.stmt) else []
        if isinstance(up, (*FUNCTIONS, ast.For, ast.While)) or block[-1:] != [inner]:
            return False
        inner = up
    return not code.parent[handler].finalbody  # type: ignore[attr-defined]


def _is_broad(code: Code, handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(code.name(k) in _BROAD for k in kinds)


def _continues_alone(code: Code, handler: ast.ExceptHandler) -> bool:
    """True if the rank may continue after the error without notifying the others."""
    if _stops(code, handler.body):
        return False
    calls = [c for s in handler.body for c in code.inside(s, ast.Call)]
    if any(getattr(c.func, "attr", "") == "backward" for c in calls):
        return False  # another way to the same gradients
    flags = [n for s in handler.body for n in code.inside(s, ast.Name) if isinstance(n.ctx, ast.Store)]
    if any(is_agreed(code, [call]) for call in calls) or (flags and is_agreed(code, list(flags))):
        return False
    return not _makes_up(code, handler, {f.id for f in flags})


def _makes_up(code: Code, handler: ast.ExceptHandler, flags: set[str]) -> bool:
    """True if a later `if` on a name that the handler sets runs another backward pass or notifies the others."""
    return any(
        flags & {n.id for n in code.inside(condition.test, ast.Name)}
        and any(_MAKES_UP.search(code.source_of(c.func)) for s in condition.body for c in code.inside(s, ast.Call))
        for condition in code.nodes(ast.If)
        if code.order[condition] > code.order[handler] and code.function(condition) is code.function(handler)
    )


def _stops(code: Code, block: list[ast.stmt]) -> bool:
    """True if a block definitely ends the program, or at least this rank."""
    for statement in block:
        if _stops_at(code, statement):
            return True
        if any(code.inside(statement, ast.Continue, ast.Return, ast.Break)):
            return False
    return False


def _stops_at(code: Code, statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If):
        asked = statement.test.values if isinstance(statement.test, ast.BoolOp) else [statement.test]
        always = any(several(code, a) for a in asked) and not _is_and(statement.test)
        return _stops(code, statement.body) and (always or _stops(code, statement.orelse))
    if isinstance(statement, ast.With | ast.Try):
        return _stops(code, statement.body)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        func = statement.value.func
        return code.name(func) in _ENDS or dotted_name(func) in _ENDS
    return isinstance(statement, ast.Raise)


def _is_and(test: ast.expr) -> bool:
    return isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)
