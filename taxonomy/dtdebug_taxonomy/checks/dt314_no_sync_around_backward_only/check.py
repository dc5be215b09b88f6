"""`no_sync()` that is entered after the forward pass."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.values import returned_values
from dtdebug_taxonomy.checks.shared.wrapping import DDPS, FSDP1, wrap_of
from dtdebug_taxonomy.source.python.bindings import Binding
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_SWITCH = "require_backward_grad_sync"
_QUIET = {"backward", "scale", "step", "update", "item", "zero_grad", "detach", "print", "append", "mean", "sum"}


def check(code: Code) -> Iterator[Hit]:
    """Report the context that holds only the backward pass, or the switch that is set after the forward pass."""
    yield from _late_switches(code)
    for block in code.nodes(ast.With):
        context = next((c for i in block.items if (c := _no_sync(code, i.context_expr)) is not None), None)
        if context is None or _is_sharded(code, context) or _around(code, block):
            continue
        losses = [c for c in code.methods("backward") if block in set(code.ancestors(c))]
        if not losses or not _only_backward(code, block):
            continue
        if all(_made_before(code, loss, block) for loss in losses):
            yield Hit(
                code.span(block.items[0].context_expr),
                "no_sync() takes effect in the forward pass, which ran before it was entered: "
                "this backward pass still averages the gradients, in every accumulation step.",
            )


def _late_switches(code: Code) -> Iterator[Hit]:
    """Report `model.require_backward_grad_sync = ...` between the call of the model and the backward pass."""
    for assign in code.nodes(ast.Assign):
        target = assign.targets[0]
        if not isinstance(target, ast.Attribute) or target.attr != _SWITCH:
            continue
        model, block = dotted_name(target.value), _statements_around(code, assign)
        forwards = {s for s in block for c in code.inside(s, ast.Call) if dotted_name(c.func) == model}
        backwards = {s for s in block for c in code.inside(s, ast.Call) if getattr(c.func, "attr", "") == "backward"}
        here = code.order[assign]
        if any(code.order[s] > here for s in forwards) or not any(code.order[s] < here for s in forwards):
            continue
        if any(code.order[s] > here for s in backwards - forwards):
            yield Hit(
                code.span(target),
                f"{_SWITCH} takes effect in the forward pass, which ran above: this backward pass "
                "averages the gradients, "
                "or leaves it, by what was set in the step before.",
            )


def _statements_around(code: Code, inner: ast.stmt) -> list[ast.stmt]:
    """Return the statements of a block and of those around it that run in the same pass: `if ddp:` is no loop."""
    block = list(code.block(inner))
    for up in code.ancestors(inner):
        if not isinstance(up, ast.If | ast.With):
            break
        block += [s for s in code.block(up) if s is not up]
    return block


def _no_sync(code: Code, node: ast.expr, depth: int = 3) -> ast.expr | None:
    """Return the call of `no_sync` that a context is in at least some runs, or the method if it is called by a name."""
    if isinstance(node, ast.Attribute) and node.attr == "no_sync":
        return node
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "no_sync":
            given = [*node.args, *(k.value for k in node.keywords)]
            return None if any(code.constant(a) is False for a in given) else node  # a method that may do nothing
        if not node.args and isinstance(node.func, ast.Name | ast.IfExp) and code.local_function(node) is None:
            return _no_sync(code, node.func, depth)
        function = code.local_function(node)
        if function is None or not depth:
            return None
        values = [v for v in returned_values(code, function) if v is not None]
        return next((c for v in values if (c := _no_sync(code, v, depth - 1)) is not None), None)
    if isinstance(node, ast.IfExp):
        return _no_sync(code, node.body, depth) or _no_sync(code, node.orelse, depth)
    if dotted_name(node) and depth:
        values = [v for v in code.values(node) if v is not None]
        return next((c for v in values if (c := _no_sync(code, v, depth - 1)) is not None), None)
    return None


def _is_sharded(code: Code, context: ast.expr) -> bool:
    """True for FSDP and ZeRO, which decide in the backward pass, so that `no_sync` may enclose that alone."""
    if isinstance(context, ast.Call) and context.args:
        return len(context.args) > 1  # accelerator.no_sync(model); of Colossal-AI booster.no_sync(model, optimizer)
    method = context.func if isinstance(context, ast.Call) else context
    model = method.value if isinstance(method, ast.Attribute) else None
    if wrap_of(code, model, FSDP1):
        return True
    if wrap_of(code, model, DDPS):
        return False
    return any(word in code.text for word in ("FullyShardedDataParallel", "FSDP", "fully_shard"))


def _around(code: Code, block: ast.With) -> bool:
    """True if a `no_sync` encloses this one."""
    return any(
        isinstance(a, ast.With) and any(_no_sync(code, i.context_expr) is not None for i in a.items)
        for a in code.ancestors(block)
    )


def _only_backward(code: Code, block: ast.With) -> bool:
    """True if nothing in a block can be a forward pass."""
    for statement in block.body:
        for call in code.inside(statement, ast.Call):
            last = dotted_name(call.func).rsplit(".", 1)[-1]
            if not last and isinstance(call.func, ast.Attribute):
                last = call.func.attr
            if last not in _QUIET:
                return False
    return True


def _made_before(code: Code, call: ast.Call, block: ast.With) -> bool:
    """True if the loss of a backward pass was computed above the block in the same function."""
    loss = call.args[0] if call.args else call.func.value  # type: ignore[attr-defined]
    if isinstance(loss, ast.Call) and isinstance(loss.func, ast.Attribute) and loss.func.attr == "scale" and loss.args:
        loss = loss.args[0]
    while isinstance(loss, ast.BinOp):
        loss = loss.left
    while isinstance(loss, ast.Subscript | ast.Attribute):
        loss = loss.value
    if not isinstance(loss, ast.Name):
        return False
    first = _first(code, loss)
    if [b.how for b in first] == ["argument"]:
        return _given_outside(code, block)
    return any(
        b.how == "assign"
        and b.value is not None
        and code.function(b.node) is code.function(block)
        and code.order[b.node] < code.order[block]
        and any(True for _ in code.inside(b.value, ast.Call))
        for b in first
    )


def _given_outside(code: Code, block: ast.With) -> bool:
    """True if a function that takes the loss is called only outside of `no_sync`."""
    callers = code.callers.get(function, []) if (function := code.function(block)) is not None else []
    return bool(callers) and not any(
        isinstance(up, ast.With) and any(_no_sync(code, i.context_expr) is not None for i in up.items)
        for call in callers
        for up in code.ancestors(call)
    )


def _first(code: Code, loss: ast.Name) -> list[Binding]:
    """Return the bindings of a loss, including those before it was scaled."""
    return code.bindings.get((code.scope(loss), loss.id), [])
