"""Gradients of sharded models that are clipped shard by shard."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.wrapping import FSDP1, Wrap, asks_wrap, wrap_of
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_CLIP = {
    "torch.nn.utils.clip_grad_norm_",
    "torch.nn.utils.clip_grad_norm",
    "torch.nn.utils.clip_grad.clip_grad_norm_",
}
_MAX_ARGUMENTS = 3


def check(code: Code) -> Iterator[Hit]:
    """Report the call."""
    for call in code.calls(*_CLIP):
        model = _model(code, code.argument(call, "parameters", 0))
        if model is None:
            continue
        wrap = wrap_of(code, model, FSDP1)
        if wrap is None or asks_wrap(code, call, wrap) or "NO_SHARD" in wrap.home.source_of(wrap.call):
            continue
        name = dotted_name(model) or "model"
        yield Hit(
            code.span(call),
            "Under FSDP every rank holds a shard of the gradients, so this clips by the norm of the shard, another one "
            f"on each rank. {name}.clip_grad_norm_() takes the norm of the whole.",
            _fix(code, call, name, wrap),
        )


def _model(code: Code, parameters: ast.expr | None, depth: int = 3) -> ast.expr | None:
    """Return the model whose parameters these are, also through a list or a filter."""
    if parameters is None or not depth:
        return None
    if isinstance(parameters, ast.Call):
        func = parameters.func
        if isinstance(func, ast.Attribute) and func.attr == "parameters":
            inner = func.value
            return inner.value if isinstance(inner, ast.Attribute) and inner.attr == "module" else inner
        if code.name(func) in {"list", "tuple", "filter", "iter"} and parameters.args:
            return _model(code, parameters.args[-1], depth - 1)
    if isinstance(parameters, ast.ListComp | ast.GeneratorExp):
        return _model(code, parameters.generators[0].iter, depth - 1)
    if dotted_name(parameters):
        values = code.values(parameters)
        return _model(code, values[0], depth - 1) if len(values) == 1 else None
    return None


def _fix(code: Code, call: ast.Call, model: str, wrap: Wrap) -> Fix | None:
    rest = [*call.args[1:], *call.keywords]
    given = {k.arg for k in call.keywords}
    if not wrap.always or not given <= {"parameters", "max_norm", "norm_type"} or len(call.args) > _MAX_ARGUMENTS:
        return None
    arguments = ", ".join(code.source_of(a) for a in rest if not (isinstance(a, ast.keyword) and a.arg == "parameters"))
    return Fix("Let FSDP clip", (Edit(code.span(call), f"{model}.clip_grad_norm_({arguments})"),))
