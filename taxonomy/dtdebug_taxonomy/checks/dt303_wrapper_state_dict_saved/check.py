"""Checkpoints whose keys have the wrapper's prefix."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.preparing import PREPARED, owner_of
from dtdebug_taxonomy.checks.shared.wrappers import may_wrap
from dtdebug_taxonomy.checks.shared.wrapping import DATA_PARALLEL, DDPS, Wrap, asks_wrap, wrap_of
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_STRIPS = re.compile(r"""["']module\.|consume_prefix|strip_prefix|remove_prefix|unwrap|clean_state_dict""")

_NO_MODEL = re.compile(r"optim|sched|scaler|ema|loss|amp$|sampler|loader|meter|queue")


def check(code: Code) -> Iterator[Hit]:
    """Report the wrapper's `state_dict()` where it is saved."""
    names = DDPS | DATA_PARALLEL | {PREPARED}
    if not code.methods("state_dict") or _STRIPS.search(code.text) or not may_wrap(code, names):
        return
    saved = [c for c in code.methods("state_dict") if _is_saved(code, c)]
    for call in saved:
        model = call.func.value if isinstance(call.func, ast.Attribute) else None
        wrap = wrap_of(code, model, names)
        if model is None or wrap is None or asks_wrap(code, call, wrap):
            continue
        loaded = _loaded_wrapped(code, names)
        if not loaded or not all(loaded):
            yield _hit(code, call, model, wrap, may_mend=not any(loaded))


def _hit(code: Code, call: ast.Call, model: ast.expr, wrap: Wrap, *, may_mend: bool) -> Hit:
    by_accelerate = owner_of(wrap.call) if wrap.home is code else ""
    where = "Where there are several processes, this" if owner_of(wrap.call) else "This"
    span = code.span(model)
    fix = Fix("Save the model inside", (Edit(Span(span.end, span.end), ".module"),)) if wrap.always else None
    if by_accelerate and code.function(wrap.call) is code.function(call):
        fix = Fix("Save the model inside", (Edit(span, f"{by_accelerate}.unwrap_model({code.source_of(model)})"),))
    return Hit(
        code.span(call),
        f"{where} checkpoint is the wrapper's: all its names begin with 'module.', so that a model without wrapper "
        "does not load it ('Missing key(s) in state_dict').",
        fix if may_mend else None,
    )


def _is_saved(code: Code, call: ast.Call) -> bool:
    """True if a state is passed to `torch.save`, directly, by a name or in a dictionary."""
    saves = [s for s in code.calls("torch.save") if s.args]
    for save in saves:
        first = save.args[0]
        for node in [first, *code.values(first)] if dotted_name(first) else [first]:
            if node is not None and any(call is inner for inner in code.inside(node, ast.Call)):
                return code.function(save) is code.function(call)
    return False


def _loaded_wrapped(code: Code, names: set[str]) -> list[bool]:
    """Return, for each place that loads a model, whether that is wrapped by then and so expects the prefix."""
    loads = [c.func.value for c in code.methods("load_state_dict") if isinstance(c.func, ast.Attribute)]
    return [wrap_of(code, m, names) is not None for m in loads if not _NO_MODEL.search(dotted_name(m).lower())]
