"""Layers put into a model whose parameters the optimizer has already."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.names import OPTIMIZERS
from dtdebug_taxonomy.source.python.bindings import surely_before
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_LAYERS = {
    f"torch.nn.{name}"
    for name in (
        *("Linear", "LazyLinear", "Bilinear", "Embedding", "EmbeddingBag", "Parameter", "MultiheadAttention"),
        *("Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LSTM", "GRU", "RNN"),
    )
}
"""Modules with parameters of their own."""


def check(code: Code) -> Iterator[Hit]:
    """Report the layer that replaces one after the optimizer was made."""
    if code.role == "test":
        return
    optimizers = code.calls(*OPTIMIZERS)
    for assign in code.nodes(ast.Assign) if optimizers else ():
        target = assign.targets[0]
        if len(assign.targets) != 1 or not isinstance(target, ast.Attribute) or code.made_by(assign.value) == set():
            continue
        model = target.value
        while isinstance(model, ast.Attribute | ast.Subscript) and not _of(code, optimizers, model):
            model = model.value
        same = _of(code, optimizers, model)
        if not code.made_by(assign.value) <= _LAYERS or not same or _is_frozen(code, target):
            continue
        before = [o for o in same if code.order[o] < code.order[assign]]
        if len(before) == len(same) and surely_before(code, before[-1], assign) and _steps_on(code, before[-1], assign):
            line = code.text.place(code.span(before[-1]).start).line
            yield Hit(
                code.span(target),
                f"The optimizer (line {line}) has the parameters of the layer that this replaces: its steps never "
                "change the new one, which keeps its first values.",
            )


def _of(code: Code, optimizers: list[ast.Call], model: ast.expr) -> list[ast.Call]:
    """Return the optimizers that get all parameters of a model, which is bound only once, in the same function."""
    name = dotted_name(model)
    return [
        o
        for o in optimizers
        if name
        and code.scope(o) is code.scope(model)
        and isinstance(given := code.argument(o, "params", 0), ast.Call)
        and isinstance(given.func, ast.Attribute)
        and given.func.attr == "parameters"
        and dotted_name(given.func.value) == name
        and [id(b.node) for b in code.bound(given.func.value)] == [id(b.node) for b in code.bound(model)]
    ]


def _steps_on(code: Code, optimizer: ast.Call, assign: ast.Assign) -> bool:
    """True if the optimizer is used after the layer was replaced, and does not get its parameters."""
    made = code.parent[optimizer]
    name = dotted_name(made.targets[0]) if isinstance(made, ast.Assign) and len(made.targets) == 1 else ""
    if not name or "add_param_group" in code.text or "configure_optimizers" in code.text:
        return False
    return any(
        code.order[n] > code.order[assign] and dotted_name(n) == name and isinstance(n.ctx, ast.Load)
        for n in code.nodes(ast.Attribute if "." in name else ast.Name)
    )


def _is_frozen(code: Code, target: ast.Attribute) -> bool:
    """True if a layer is not to be trained, or takes over the weights of the one before."""
    name = dotted_name(target)
    return not name or any(
        f"{name}{end}" in code.text for end in (".requires_grad", ".weight", ".load_state_dict", ".parameters")
    )
