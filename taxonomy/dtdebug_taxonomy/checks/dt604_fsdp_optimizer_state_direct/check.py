"""Optimizer states of FSDP models that are saved without conversion, as one rank's part."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.names import FSDP, OPTIMIZERS
from dtdebug_taxonomy.checks.shared.ranks_seen import depends_on_rank
from dtdebug_taxonomy.checks.shared.sharding import is_fsdp
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.names import dotted_name

_CONVERTS = {f"{FSDP}.{name}" for name in (
    "optim_state_dict", "full_optim_state_dict", "sharded_optim_state_dict", "optim_state_dict_to_load",
    "shard_full_optim_state_dict", "flatten_sharded_optim_state_dict", "rekey_optim_state_dict",
)}  # fmt: skip


def check(code: Code) -> Iterator[Hit]:
    """Report the call of `state_dict()`."""
    for call in code.methods("state_dict"):
        optimizer = call.func.value  # type: ignore[attr-defined]
        model = _model_of(code, optimizer)
        if model is None or call.args or _is_converted(code, call) or _is_per_rank(code, call):
            continue
        yield Hit(
            code.span(call),
            "Under FSDP an optimizer holds the state of this rank's shards only, without the parameters' names: "
            "what is saved so can't be loaded on other ranks or another number of them.",
            _fix(code, call, model, optimizer),
        )


def _model_of(code: Code, optimizer: ast.expr) -> ast.expr | None:
    """Return the FSDP model whose parameters an optimizer was made with."""
    for value in code.values(optimizer) if dotted_name(optimizer) else ():
        if not isinstance(value, ast.Call) or code.name(value.func) not in OPTIMIZERS:
            continue
        for inner in code.inside(value, ast.Call):
            func = inner.func
            if (
                isinstance(func, ast.Attribute)
                and func.attr in {"parameters", "named_parameters"}
                and is_fsdp(code, func.value)
            ):
                return func.value
    return None


def _is_converted(code: Code, call: ast.Call) -> bool:
    """True if the state is passed to FSDP, to gather or to shard it."""
    if any(isinstance(a, ast.Call) and code.name(a.func) in _CONVERTS for a in code.ancestors(call)):
        return True
    statement = code.statement(call)
    names = {dotted_name(t) for t in statement.targets} - {""} if isinstance(statement, ast.Assign) else set()
    return any(
        dotted_name(a) in names for c in code.calls(*_CONVERTS) for a in (*c.args, *(k.value for k in c.keywords))
    )


def _is_per_rank(code: Code, call: ast.Call) -> bool:
    """True if each rank saves its own part under its own name."""
    statement = code.statement(call)
    names = {dotted_name(t) for t in statement.targets} - {""} if isinstance(statement, ast.Assign) else set()
    for save in code.calls("torch.save"):
        obj, path = code.argument(save, "obj", 0), code.argument(save, "f", 1)
        holds = obj is not None and any(
            n is call or dotted_name(n) in names for n in code.inside(obj, ast.Call, ast.Name)
        )
        if holds and depends_on_rank(code, path):
            return True
    return False


def _fix(code: Code, call: ast.Call, model: ast.expr, optimizer: ast.expr) -> Fix | None:
    """Return a fix that uses FSDP's own function, if all ranks get here and the class is imported here."""
    written = next((local for local, full in code.imports.items() if full == FSDP), "")
    if not written or guards(code).around(call) or not dotted_name(model):
        return None
    text = f"{written}.optim_state_dict({dotted_name(model)}, {dotted_name(optimizer)})"
    return Fix("Gather it by FSDP", (Edit(code.span(call), text),))
