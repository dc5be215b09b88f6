"""Losses computed with the model inside the wrapper."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.flow import reaches_backward, without_grad
from dtdebug_taxonomy.checks.shared.preparing import PREPARED
from dtdebug_taxonomy.checks.shared.wrappers import may_wrap
from dtdebug_taxonomy.checks.shared.wrapping import DDPS, Wrap, asks_wrap, bare_before, wrap_of
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS, Function
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
    yield from _methods(code)


def _methods(code: Code) -> Iterator[Hit]:
    """Report another method of the inner model that runs its layers, and gives the loss."""
    for call in code.nodes(ast.Call):
        inner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if not isinstance(inner, ast.Attribute) or inner.attr != "module" or call.func.attr == "forward":  # type: ignore[attr-defined]
            continue
        wrap = wrap_of(code, inner.value, _WRAPS)
        if wrap is None or asks_wrap(code, call, wrap) or without_grad(code, call):
            continue
        name = call.func.attr  # type: ignore[attr-defined]
        if not _runs_layers(wrap, name) or _wrapper_runs(code, dotted_name(inner.value)):
            continue
        if reaches_backward(code, call):
            yield Hit(
                code.span(call.func),
                f"The loss is computed by {name}() of the model inside the wrapper, so DistributedDataParallel never "
                "sees the backward pass: gradients are not averaged and the ranks drift apart. Compute it in "
                "forward(), and call the wrapper.",
            )


def _runs_layers(wrap: Wrap, name: str) -> bool:
    """True if a method of the wrapped model's class, or a layer of that name, does what its forward() does."""
    model = wrap.home.argument(wrap.call, "module", 0)
    made = wrap.home.made_by(model) if model is not None else set()
    known = [{d.name: d for d in k.body if isinstance(d, FUNCTIONS)} | {"": k} for k in wrap.home.nodes(ast.ClassDef)]
    models = [k for k in known if "forward" in k]
    if made or len(models) > 1:
        models = [k for k in models if any(m.rsplit(".", 1)[-1] == k[""].name for m in made)]
    for methods in models:
        layers = _called_on_self(methods["forward"])
        if name in layers:
            return True
        seen: set[str] = set()
        reached = [name]
        while reached:
            one = reached.pop()
            if one in seen or one not in methods:
                continue
            seen.add(one)
            called = _called_on_self(methods[one])
            if called & {"", "forward", *(layers - methods.keys())}:
                return True
            reached += called
    return False


def _called_on_self(function: ast.AST) -> set[str]:
    """Return the names of what a method calls on its own object: "" for the object itself."""
    names = [dotted_name(c.func) for c in ast.walk(function) if isinstance(c, ast.Call)]
    return {n.removeprefix("self").removeprefix(".") for n in names if n == "self" or n.startswith("self.")}


_LOOKS = re.compile(r"(torch|isinstance|hasattr|getattr|len|print|type|id)\b")
"""Callables that do not run a model that is passed to them."""


def _wrapper_runs(code: Code, name: str) -> bool:
    """True if anything in the file may call the wrapper with gradients: this sets up its reduction."""
    for call in code.nodes(ast.Call):
        if without_grad(code, call):
            continue
        if dotted_name(call.func) == name:
            return True
        given = [*call.args, *(k.value for k in call.keywords)]
        if not any(dotted_name(a) == name for a in given) or _LOOKS.match(code.name(call.func) or ""):
            continue
        function = code.local_function(call)
        if function is None or _runs_argument(code, function):
            return True
    return False


def _runs_argument(code: Code, function: Function) -> bool:
    """True if a function calls one of its arguments with gradients."""
    names = {a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    return any(dotted_name(c.func) in names and not without_grad(code, c) for c in code.inside(function, ast.Call))


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
