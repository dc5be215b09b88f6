"""Batch normalisation that is converted after the model is wrapped."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.fixing import statement_lines
from dtdebug_taxonomy.checks.shared.wrapping import DDPS, FSDP1, Wrap, asks_wrap, bare_before, wrap_of
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_PLACES = {
    "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
    "torch.nn.modules.SyncBatchNorm.convert_sync_batchnorm",
    "apex.parallel.convert_syncbn_model",
}


def check(code: Code) -> Iterator[Hit]:
    """Report the conversion."""
    for call in code.calls(*_PLACES):
        model = code.argument(call, "module", 0)
        if model is None:
            continue
        if isinstance(model, ast.Attribute) and model.attr == "module":
            model = model.value
        wrap = wrap_of(code, model, DDPS | FSDP1) or bare_before(code, model, DDPS | FSDP1)
        if wrap is None or asks_wrap(code, call, wrap):
            continue
        yield Hit(
            code.span(call),
            "The model is already wrapped when its BatchNorm layers are converted: the wrapper's lists still hold the "
            "old layers. Convert them first, then wrap.",
            _fix(code, call, wrap),
        )


def _fix(code: Code, call: ast.Call, wrap: Wrap) -> Fix | None:
    """Return a fix that converts in the wrapping call, if two plain assignments to one name follow each other."""
    if wrap.home is not code:
        return None
    later, first = code.parent[call], code.parent[wrap.call]
    inner = code.argument(wrap.call, "module", 0)
    if not isinstance(later, ast.Assign) or not isinstance(first, ast.Assign) or inner is None:
        return None
    names = {dotted_name(t) for t in (*later.targets, *first.targets)} | {
        dotted_name(call.args[0]) if call.args else ""
    }
    lines = statement_lines(code, later)
    if len(names) != 1 or "" in names or lines is None or code.block(later) is not code.block(first):
        return None
    text = f"{code.source_of(call.func)}({code.source_of(inner)})"
    return Fix("Convert before wrapping", (Edit(code.span(inner), text), Edit(lines, "")))
