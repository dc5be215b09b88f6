"""Forward passes through `DistributedDataParallel` on some ranks only, as in a validation by rank 0."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.diverging import condition
from dtdebug_taxonomy.checks.wrapping import DDPS, asks_wrap, wrap_of
from dtdebug_taxonomy.source.names import dotted
from dtdebug_taxonomy.source.python import Code
from dtdebug_taxonomy.source.text import Span

_WHY = "each forward pass of DistributedDataParallel first broadcasts the buffers, and waits for the other ranks."


def check(code: Code) -> Iterator[Hit]:
    """Reports the model where it is called, or passed to a function that calls it."""
    names = _names(code)
    if not names:
        return
    calls = code.nodes(ast.Call)
    forwards: dict[str, list[ast.AST]] = {}
    for call in calls:
        if (written := _called(call)) in names:
            forwards.setdefault(written, []).append(call)
    for call in calls:
        written = _called(call)
        model = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "forward" else call.func
        if written in names and (hit := _hit(code, call, model, forwards[written])):
            yield hit
        elif function := code.called(call):
            alike: Sequence[ast.AST] = code.callers[function]
            for name, value in _passed(code, call, function):
                if dotted(value) in names and _calls(code, function, name) and (hit := _hit(code, call, value, alike)):
                    yield hit


def _names(code: Code) -> set[str]:
    """The names that a wrapped model has somewhere in this file, as an argument of functions too."""
    found: set[str] = set()
    for call in code.calls(*DDPS):
        found |= _results(code, call)
    for function, callers in code.callers.items() if found else ():
        for call in callers:
            found |= {name for name, value in _passed(code, call, function) if dotted(value) in found}
    return found


def _results(code: Code, call: ast.Call, depth: int = 2) -> set[str]:
    """The names that a call's result is given to, by the callers of a function that returns it too."""
    statement = code.statement(call)
    if isinstance(statement, ast.Assign):
        return {dotted(t) for t in statement.targets} - {""}
    function = code.function(call) if isinstance(statement, ast.Return) and depth else None
    callers = code.callers.get(function, ()) if function is not None else ()
    return {name for c in callers for name in _results(code, c, depth - 1)}


def _called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute) and call.func.attr == "forward":
        return dotted(call.func.value)
    return dotted(call.func)


def _passed(
    code: Code, call: ast.Call, function: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[tuple[str, ast.expr]]:
    """The arguments of a function with what a call passes for them."""
    positions = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    if positions and positions[0] in {"self", "cls"} and isinstance(code.parent.get(function), ast.ClassDef):
        positions = positions[1:]
    yield from zip(positions, (a for a in call.args if not isinstance(a, ast.Starred)), strict=False)
    yield from ((k.arg, k.value) for k in call.keywords if k.arg)


def _calls(code: Code, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    """Whether a function calls its argument, whatever the rank."""
    return any(_called(c) == name and condition(code, c) is None for c in code.inside(function, ast.Call))


def _hit(code: Code, call: ast.Call, model: ast.expr, same: Sequence[ast.AST]) -> Hit | None:
    guard = condition(code, call, same)
    wrap = wrap_of(code, model, DDPS) if guard else None
    if guard is None or wrap is None or asks_wrap(code, call, wrap):
        return None
    if code.constant(code.argument(wrap.call, "broadcast_buffers")) is False:
        return None
    span = code.span(model)
    edit = Edit(Span(span.end, span.end), ".module")
    return Hit(
        span,
        f"{dotted(model)} runs here {guard.test.words}, but {_WHY}",
        Fix("Use the model itself: .module", (edit,)),
    )
