"""Distributed optimizers of Horovod in programs that never broadcast the initial state."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared import horovod
from dtdebug_taxonomy.checks.shared.fixing import indent_of, statement_lines
from dtdebug_taxonomy.checks.shared.ranks_seen import is_started_here, seeded_alike
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_SHARES = re.compile(r"broadcast|elastic|sync_?(params|parameters|weights|state|model)", re.IGNORECASE)


def check(code: Code) -> Iterator[Hit]:
    """Report the optimizer or gradient tape."""
    calls = horovod.calls(code, "DistributedOptimizer", "DistributedGradientTape", "DistributedAdasumOptimizer")
    if not calls or not is_started_here(code) or _shares(code) or seeded_alike(code):
        return
    call = calls[0]
    yield Hit(
        code.span(call),
        "Nothing broadcasts the initial state: each rank starts with weights of its own, and averaged gradients keep "
        "them different.",
        _fix(code, call),
    )


def _shares(code: Code) -> bool:
    """True if any name in the program mentions a broadcast."""
    return (
        any(_SHARES.search(n.attr) for n in code.nodes(ast.Attribute))
        or any(_SHARES.search(n.id) for n in code.nodes(ast.Name))
        or any(_SHARES.search(f) for f in (*code.imports, *code.imports.values()))
    )


def _fix(code: Code, call: ast.Call) -> Fix | None:
    """Return a fix for torch if the arguments show the model."""
    prefix, statement = horovod.prefix(code, call), code.statement(call)
    lines = statement_lines(code, statement)
    if not prefix or lines is None or not code.name(call.func).startswith("horovod.torch"):
        return None
    model = _model(code, call)
    if not model or not isinstance(statement, ast.Assign) or not code.text[: lines.end].endswith("\n"):
        return None
    indent, optimizer = indent_of(code, statement), dotted_name(statement.targets[0])
    text = f"{indent}{prefix}broadcast_parameters({model}.state_dict(), root_rank=0)\n"
    if optimizer and statement.value is call:
        text += f"{indent}{prefix}broadcast_optimizer_state({optimizer}, root_rank=0)\n"
    return Fix("Send the state of rank 0 to all", (Edit(Span(lines.end, lines.end), text),))


def _model(code: Code, call: ast.Call) -> str:
    """Return the name of the model whose parameters the optimizer gets; "" if unknown."""
    inner = code.argument(call, "optimizer", 0)
    given = [code.argument(call, "named_parameters", 1), inner]
    if inner is not None and dotted_name(inner):
        given += [v for v in code.values(inner) if v is not call]
    for value in given:
        if value is None or dotted_name(value):
            continue
        for asked in code.inside(value, ast.Call):
            if isinstance(asked.func, ast.Attribute) and asked.func.attr in {"named_parameters", "parameters"}:
                return dotted_name(asked.func.value)
    return ""
