"""Checkpoints whose names carry the wrapper's prefix."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.wrapping import DATA_PARALLEL, DDPS, Wrap, asks_wrap, wrap_of
from dtdebug_taxonomy.source.names import dotted
from dtdebug_taxonomy.source.python import Code
from dtdebug_taxonomy.source.text import Span

_STRIPS = re.compile(r"""["']module\.|consume_prefix|strip_prefix|remove_prefix|unwrap|clean_state_dict""")


def check(code: Code) -> Iterator[Hit]:
    """Reports `state_dict()` of the wrapper where it is saved."""
    names = DDPS | DATA_PARALLEL
    if not code.calls(*names) or _STRIPS.search(code.text):
        return
    saved = [c for c in code.methods("state_dict") if _saved(code, c)]
    for call in saved:
        model = call.func.value if isinstance(call.func, ast.Attribute) else None
        wrap = wrap_of(code, model, names)
        if model is None or wrap is None or asks_wrap(code, call, wrap) or _loaded_wrapped(code, names):
            continue
        yield _hit(code, call, model, wrap)


def _hit(code: Code, call: ast.Call, model: ast.expr, wrap: Wrap) -> Hit:
    end = code.span(model).end
    fix = Fix("Save the model inside", (Edit(Span(end, end), ".module"),)) if wrap.always else None
    return Hit(
        code.span(call),
        "This checkpoint is the wrapper's: all its names begin with 'module.', so that a model without wrapper does "
        "not load it ('Missing key(s) in state_dict').",
        fix,
    )


def _saved(code: Code, call: ast.Call) -> bool:
    """Whether a state goes to `torch.save`, in a dictionary or by a name or not."""
    saves = [s for s in code.calls("torch.save") if s.args]
    for save in saves:
        first = save.args[0]
        for node in [first, *code.values(first)] if dotted(first) else [first]:
            if node is not None and any(call is inner for inner in code.inside(node, ast.Call)):
                return code.function(save) is code.function(call)
    return False


def _loaded_wrapped(code: Code, names: set[str]) -> bool:
    """Whether the program itself loads checkpoints into the wrapped model only."""
    loads = [c for c in code.methods("load_state_dict") if isinstance(c.func, ast.Attribute)]
    models = [c for c in loads if not re.search(r"optim|sched|scaler|ema|loss", dotted(c.func).lower())]
    return bool(models) and all(wrap_of(code, c.func.value, names) for c in models)  # type: ignore[attr-defined]
