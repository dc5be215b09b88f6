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
        loaded = [*_loaded_wrapped(code, names), *_loaded_elsewhere(code, model, names)]
        if not loaded or not all(loaded):
            yield _hit(code, call, model, wrap, may_mend=bool(loaded) and not any(loaded))


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
    """Return, for each place that loads a model, whether it expects the prefix: it is wrapped, or renames the keys."""
    loads = [(c, c.func.value) for c in code.methods("load_state_dict") if isinstance(c.func, ast.Attribute)]
    return [
        wrap_of(code, model, names) is not None or _is_renamed(code, call)
        for call, model in loads
        if not _NO_MODEL.search(dotted_name(model).lower())
    ]


def _loaded_elsewhere(code: Code, model: ast.expr, names: set[str]) -> list[bool]:
    """Return the same of the calls that give this model to a function of another module which loads a state."""
    if code.project is None:
        return []
    name, found = dotted_name(model), list[bool]()
    for call in code.nodes(ast.Call):
        arguments = (*call.args, *(k.value for k in call.keywords))
        given = next((a for a in arguments if name and dotted_name(a) == name), None)
        if given is None or not code.project.may_hold(code, call.func):
            continue
        defined = code.project.resolve_call(code, call)
        if defined is not None and defined.code is not code and _loads(defined.code, defined.node):
            found.append(wrap_of(code, given, names) is not None)
    return found


def _loads(code: Code, node: ast.AST) -> bool:
    """True if a function calls `load_state_dict()` of some model."""
    return any(getattr(c.func, "attr", "") == "load_state_dict" for c in code.inside(node, ast.Call))


def _is_renamed(code: Code, load: ast.Call) -> bool:
    """True if what is loaded comes from a comprehension, or from a function of the program's, which may rename keys."""
    return any(
        isinstance(value, ast.DictComp)
        or (isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and not _is_of_torch(code, value))
        for value in code.values(code.argument(load, "state_dict", 0))
    )


def _is_of_torch(code: Code, call: ast.Call) -> bool:
    return code.name(call.func).startswith("torch.")
