"""Losses computed with the model inside the wrapper."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.flow import reaches_backward, without_grad
from dtdebug_taxonomy.checks.shared.preparing import PREPARED
from dtdebug_taxonomy.checks.shared.wrappers import may_wrap
from dtdebug_taxonomy.checks.shared.wrapping import DDPS, asks_wrap, bare_before, wrap_of
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_WRAPS = DDPS | {PREPARED}


def check(code: Code) -> Iterator[Hit]:
    """Report `.module` in the call of the model."""
    if not may_wrap(code, _WRAPS):
        return
    if code.role == "test" or _reduces_by_hand(code):
        return
    for call in [*code.methods("module"), *code.methods("forward")]:
        inner = call.func
        if isinstance(inner, ast.Attribute) and inner.attr == "forward":
            inner = inner.value
        if not isinstance(inner, ast.Attribute) or inner.attr != "module":
            continue
        wrap = wrap_of(code, inner.value, _WRAPS)
        if wrap is None or asks_wrap(code, call, wrap) or without_grad(code, call):
            continue
        if _also_called(code, call, dotted_name(inner.value)) or not reaches_backward(code, call):
            continue
        outer, module = code.span(inner.value), code.span(call.func)
        yield Hit(
            Span(outer.end, module.end),
            "The loss is computed with the model inside the wrapper, so DistributedDataParallel never sees the "
            "backward pass: gradients are not averaged and the ranks drift apart.",
            Fix("Call the wrapper", (Edit(Span(outer.end, module.end), ""),)),
        )
    yield from _bare(code)


def _reduces_by_hand(code: Code) -> bool:
    """True if the program averages the gradients itself."""
    return any("grad" in code.source_of(a).lower() for c in code.methods("all_reduce", "allreduce") for a in c.args[:1])


def _bare(code: Code) -> Iterator[Hit]:
    """Report the same for an inner model with its own name: the wrapped one, or `bare = ddp.module`."""
    for outer, inner in set(_pairs(code)):
        for call in code.nodes(ast.Call):
            if dotted_name(call.func) != inner or not _is_inner(code, call.func) or without_grad(code, call):
                continue
            if not _also_called(code, call, outer) and reaches_backward(code, call):
                yield Hit(
                    code.span(call.func),
                    f"The loss is computed with {inner}, the model inside {outer}: DistributedDataParallel never sees "
                    "the backward pass, so gradients are not averaged and the ranks drift apart.",
                    Fix("Call the wrapper", (Edit(code.span(call.func), outer),)),
                )


def _pairs(code: Code) -> Iterator[tuple[str, str]]:
    """Yield the names of wrappers and of the models inside them."""
    found: list[tuple[ast.AST, ast.expr | None]] = [(w, code.argument(w, "module", 0)) for w in code.calls(*DDPS)]
    for node, model in found:
        assign = code.parent[node]
        outer = dotted_name(assign.targets[0]) if isinstance(assign, ast.Assign) else ""
        if outer and dotted_name(model) not in {"", outer}:
            yield outer, dotted_name(model)
    for assign in code.nodes(ast.Assign):
        value = assign.value
        if isinstance(value, ast.Attribute) and value.attr == "module" and dotted_name(value):
            yield dotted_name(value.value), dotted_name(assign.targets[0])


def _is_inner(code: Code, name: ast.expr) -> bool:
    """True if a name is definitely the model inside a wrapper."""
    if bare_before(code, name, DDPS):
        return True
    values = code.values(name)
    value = values[0] if len(values) == 1 else None
    return isinstance(value, ast.Attribute) and value.attr == "module" and bool(wrap_of(code, value.value, DDPS))


def _also_called(code: Code, call: ast.Call, name: str) -> bool:
    """True if the wrapper itself runs forward in the same function, which sets up its reduction."""
    function = code.function(call)
    return any(
        dotted_name(c.func) == name and code.function(c) is function for c in code.nodes(ast.Call) if c is not call
    )
