"""Forward passes through `DistributedDataParallel` on some ranks only, as in a validation by rank 0."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.diverging import condition
from dtdebug_taxonomy.checks.shared.forwarding import forwards, names_of
from dtdebug_taxonomy.checks.shared.preparing import PREPARED, owner_of
from dtdebug_taxonomy.checks.shared.wrappers import may_wrap, wrapped_names
from dtdebug_taxonomy.checks.shared.wrapping import DDPS, asks_wrap, wrap_of
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_WHY = "each forward pass of DistributedDataParallel first broadcasts the buffers, and waits for the other ranks."

_WRAPS = DDPS | {PREPARED}


def check(code: Code) -> Iterator[Hit]:
    """Report the model where it is called, or passed to a function that calls it."""
    if not may_wrap(code, _WRAPS):
        return
    names = names_of(code, wrapped_names(code, _WRAPS))
    for call, model, same in forwards(code, names):
        if hit := _hit(code, call, model, same):
            yield hit


def _hit(code: Code, call: ast.Call, model: ast.expr, same: Sequence[ast.AST]) -> Hit | None:
    guard = condition(code, call, same)
    wrap = wrap_of(code, model, _WRAPS) if guard else None
    if guard is None or wrap is None or asks_wrap(code, call, wrap):
        return None
    if wrap.home.constant(wrap.home.argument(wrap.call, "broadcast_buffers")) is False:
        return None
    span = code.span(model)
    inside = Fix("Use the model itself: .module", (Edit(Span(span.end, span.end), ".module"),))
    if not wrap.always:
        written = code.source_of(model)
        inside = Fix("Use the model itself", (Edit(span, f'getattr({written}, "module", {written})'),))
    if owner := owner_of(wrap.call):
        mine = wrap.home is code and code.function(wrap.call) is code.function(call)
        edit = Edit(span, f"{owner}.unwrap_model({code.source_of(model)})")
        inside = Fix("Use the model itself", (edit,)) if mine else None
    return Hit(span, f"{dotted_name(model)} runs here {guard.test.words}, but {_WHY}", inside)
