"""Wrapped models that are moved to another device or type."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.wrapping import DDPS, Wrap, asks_wrap, wrap_of
from dtdebug_taxonomy.source.python.bindings import surely_before
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_TYPES = {"half", "bfloat16", "double"}
_TORCH_TYPES = {f"torch.{t}" for t in ("half", "float16", "bfloat16", "double", "float64")}


def check(code: Code) -> Iterator[Hit]:
    """Report the move back to the device, or the change of the type."""
    if not code.calls(*DDPS):
        return
    moves = [(c, *_target(code, c)) for c in code.methods("cuda", "cpu", "to", *_TYPES)]
    away = [(c, owner) for c, owner, where in moves if where == "cpu" and _wrap(code, c, owner)]
    for call, owner, where in moves:
        if not where or where == "cpu":
            continue
        wrap = _wrap(code, call, owner)
        if wrap is None:
            continue
        if where == "type":
            if not _trained_after(code, call):
                continue
            what = "changes the type of its parameters"
        elif any(dotted_name(o) == dotted_name(owner) and _follow(code, a, call) for a, o in away):
            what = "moves it back from the CPU"
        elif _on_device(code, wrap, call):
            continue
        else:
            what = "moves it to its device"
        yield Hit(
            code.span(call),
            f"The model is already wrapped by DistributedDataParallel when this {what}: the wrapper's hooks stay with "
            "the old parameters, so gradients are no longer averaged and the ranks drift apart.",
            _fix(code, call),
        )


def _target(code: Code, call: ast.Call) -> tuple[ast.expr, str]:
    """Return the object that a call moves and the target `cpu`, `device` or `type`; "" if unknown."""
    func = call.func
    if not isinstance(func, ast.Attribute):
        return call, ""
    owner = func.value.value if isinstance(func.value, ast.Attribute) and func.value.attr == "module" else func.value
    if func.attr == "cuda":
        return owner, "device"
    if func.attr == "cpu":
        return owner, "cpu"
    if func.attr in _TYPES:
        return owner, "type"
    given = code.argument(call, "device", 0) or code.argument(call, "dtype", 0)
    if given is None:
        return owner, ""
    if code.name(given) in _TORCH_TYPES:
        return owner, "type"
    value = code.constant(given)
    if isinstance(given, ast.Call) and code.name(given.func) == "torch.device":
        value = code.constant(code.argument(given, "type", 0))
    return owner, "cpu" if value == "cpu" else "device"


def _wrap(code: Code, call: ast.Call, owner: ast.expr) -> Wrap | None:
    wrap = wrap_of(code, owner, DDPS)
    return None if wrap is None or asks_wrap(code, call, wrap) else wrap


def _follow(code: Code, first: ast.AST, then: ast.AST) -> bool:
    """True if one call runs after another: later in the file, or in a loop's next iteration."""
    if code.function(first) is not code.function(then):
        return False
    if code.order[first] < code.order[then]:
        return surely_before(code, first, then) is not None
    return surely_before(code, then, first) is not None and any(
        isinstance(a, ast.For | ast.While) and a in set(code.ancestors(then)) for a in code.ancestors(first)
    )


def _trained_after(code: Code, call: ast.Call) -> bool:
    return any(
        code.order[b] > code.order[call] or code.function(b) is not code.function(call)
        for b in code.methods("backward")
    )


def _on_device(code: Code, wrap: Wrap, move: ast.Call) -> bool:
    """True unless the model was just created, and so not yet moved to its device, when it was wrapped."""
    if wrap.home is not code or code.argument(wrap.call, "device_ids", 1) is not None or "set_default" in code.text:
        return True
    inner: ast.expr | None = code.argument(wrap.call, "module", 0)
    for _ in range(3):
        if inner is not None and dotted_name(inner):
            values = code.values(inner)
            inner = values[0] if len(values) == 1 else None
    if not isinstance(inner, ast.Call) or code.has_unpacking(inner) or "cuda" in code.source_of(inner):
        return True
    made = dotted_name(inner.func).rsplit(".", 1)[-1]
    if not made[:1].isupper() or "device" in code.source_of(inner):
        return True
    name = dotted_name(code.argument(wrap.call, "module", 0))
    return bool(name) and any(
        isinstance(c.func, ast.Attribute) and dotted_name(c.func.value) == name and code.order[c] < code.order[move]
        for c in code.methods("to", "cuda")
        if c is not move
    )


def _fix(code: Code, move: ast.Call) -> Fix | None:
    """Return a fix that turns `DDP(model).cuda()` into `DDP(model.cuda())`."""
    wrap = move.func.value if isinstance(move.func, ast.Attribute) else None
    inner = code.argument(wrap, "module", 0) if isinstance(wrap, ast.Call) else None
    if wrap is None or inner is None or not isinstance(inner, ast.Call | ast.Name | ast.Attribute):
        return None
    moved, end = Span(code.span(wrap).end, code.span(move).end), code.span(inner).end
    edits = (Edit(Span(end, end), code.text[moved.start : moved.end]), Edit(moved, ""))
    return Fix("Move it before it is wrapped", edits)
