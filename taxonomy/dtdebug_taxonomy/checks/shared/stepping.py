"""Synchronised training: backward passes that wait for each other, and values that ranks agree on."""

from __future__ import annotations

import ast
import re

from dtdebug_taxonomy.checks.shared import horovod
from dtdebug_taxonomy.checks.shared.diverging import collectives
from dtdebug_taxonomy.checks.shared.names import FULLY_SHARD
from dtdebug_taxonomy.checks.shared.wrapping import DDPS, FSDP1
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import Function

AGREES = re.compile(
    r"reduce|gather|sync|broadcast|all_?ranks|any_?rank|across|consensus|agree|(^|_)(global|dist|distributed)_|barrier",
    re.IGNORECASE,
)
_TRAINS = re.compile(r"(^|_)train|(run|do|one)_epoch|train_step|(^|_)fit(_|$)", re.IGNORECASE)


def in_step(code: Code) -> bool:
    """True if a model is trained here whose gradients are averaged in the backward pass."""
    return bool(
        code.in_step
        or code.calls(*DDPS, *FSDP1, *FULLY_SHARD, "deepspeed.initialize", "accelerate.Accelerator")
        or horovod.calls(code, "DistributedOptimizer")
    )


def backwards(code: Code) -> list[ast.Call]:
    """Return the calls that run a backward pass: `loss.backward()`, `accelerator.backward(loss)`, a local function."""
    found = [c for c in code.methods("backward", "manual_backward") if not code.name(c.func).startswith("torch.")]
    functions = dict.fromkeys(f for c in found if (f := code.function(c)))
    return [*found, *(c for f in functions for c in code.callers.get(f, ()))]


def synchronising_calls(code: Code) -> list[ast.Call]:
    """Return the calls in which ranks wait for each other: collectives, backward passes, training functions."""
    found = [*collectives(code), *(backwards(code) if in_step(code) else ())]
    wraps = [code.statement(c) for c in code.calls(*DDPS, *FSDP1)]
    models = {dotted_name(t) for s in wraps if isinstance(s, ast.Assign) for t in s.targets} - {""}
    found += (
        call
        for call in (code.nodes(ast.Call) if models else ())
        if _TRAINS.search(_last(call))
        and models & {dotted_name(a) for a in call.args}
        and not guards(code).around(call)
    )
    return found


def is_agreed(code: Code, expressions: list[ast.expr], before: ast.AST | None = None) -> bool:
    """True if the values in some expressions come from all ranks, or were sent to them before a place."""
    if any(agrees(code, c) for e in expressions for c in code.inside(e, ast.Call)):
        return True
    names = {n.id for e in expressions for n in code.inside(e, ast.Name)}
    sent = _communicated_names(code, code.function(expressions[0]) if expressions else None)
    return any(n in sent and (before is None or sent[n] < code.order[before]) for n in names)


def _communicated_names(code: Code, function: Function | None) -> dict[str, int]:
    """Return name -> position of the first call in a function that communicates it; cached with the program."""
    known: dict[Function | None, dict[str, int]] = code.__dict__.setdefault("_sent", {})
    if function not in known:
        known[function] = {}
        for call in _communication(code).get(function, ()):
            for name in _passed_names(code, call):
                known[function][name] = min(code.order[call], known[function].get(name, code.order[call]))
    return known[function]


def _communication(code: Code) -> dict[Function | None, list[ast.Call]]:
    """Return the calls by which ranks may agree, by their function; cached with the program."""
    found: dict[Function | None, list[ast.Call]] | None = code.__dict__.get("_communication")
    if found is None:
        found = code.__dict__["_communication"] = {}
        for call in code.nodes(ast.Call):
            if AGREES.search(_last(call)):
                found.setdefault(code.function(call), []).append(call)
    return found


def _passed_names(code: Code, call: ast.Call) -> set[str]:
    """Return the names in a call's arguments, and in the values of those names."""
    arguments = [*call.args, *(k.value for k in call.keywords)]
    names = [n for a in arguments for n in code.inside(a, ast.Name)]
    values = [v for n in names for v in code.values(n) if v is not None]
    return {n.id for n in (*names, *(n for v in values for n in code.inside(v, ast.Name)))}


def agrees(code: Code, call: ast.Call) -> bool:
    """True if ranks may agree by a call: it communicates, or a function of this file that it calls does."""
    if AGREES.search(_last(call)) and not code.name(call.func).startswith("torch.cuda."):
        return True
    function = code.local_function(call)
    return function is not None and any(AGREES.search(_last(c)) for c in code.inside(function, ast.Call))


def _last(call: ast.Call) -> str:
    return getattr(call.func, "attr", "") or getattr(call.func, "id", "")
