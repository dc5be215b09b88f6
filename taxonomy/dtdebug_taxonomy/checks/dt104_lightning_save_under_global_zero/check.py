"""Calls of Lightning that all processes must make, under a condition that admits only some."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.diverging import diverging, last_name
from dtdebug_taxonomy.checks.shared.lifting import lift_call
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_TRAINER, _FABRIC = "pytorch_lightning.Trainer", "lightning_fabric.Fabric"
_OF = {
    "save_checkpoint": re.compile(r"_*(\w+_)?trainer_*"),
    "save": re.compile(r"_*fabric_*"),
    "load": re.compile(r"_*fabric_*"),
    "barrier": re.compile(r"_*(fabric|strategy|training_type_plugin|accelerator)_*"),
    "broadcast": re.compile(r"_*(fabric|strategy|training_type_plugin)_*"),
    "all_reduce": re.compile(r"_*(fabric|strategy)_*"),
    "all_gather": re.compile(r"_*(fabric|strategy|pl_module|self|module|model)_*"),
    "reduce_boolean_decision": re.compile(r"_*strategy_*"),
}
"""Method -> pattern for the names of the objects that have it."""
_OLD_HOOK = "on_keyboard_interrupt"
"""Hook removed in 1.7; in 1.4.2 and 1.6.5, which call it, `save_checkpoint()` has no barrier."""


def check(code: Code) -> Iterator[Hit]:
    """Report the call under the condition, or the call of a local function that makes it."""
    if code.role == "test" or not code.imports_any("lightning", "pytorch_lightning", "lightning_fabric"):
        return
    calls = [c for c in code.methods(*_OF) if _is_collective(code, c) and not _in_old_hook(code, c)]
    for call, what, guard in diverging(code, calls):
        yield Hit(
            code.span(call),
            f"{what} runs {guard.test.words}, but Lightning waits in it for every process: the run hangs.",
            lift_call(code, call, f"Call {last_name(code, call)}() on every process", calls),
        )


def _in_old_hook(code: Code, call: ast.Call) -> bool:
    """True if only releases whose `save_checkpoint()` does not wait run this call."""
    function = code.function(call)
    return function is not None and function.name == _OLD_HOOK and last_name(code, call) == "save_checkpoint"


def _is_collective(code: Code, call: ast.Call) -> bool:
    owner, method = call.func.value, call.func.attr  # type: ignore[attr-defined]
    made = code.made_by(owner) - {""}
    if made:
        owner_class = _TRAINER if method == "save_checkpoint" else _FABRIC
        return all(m == owner_class or m.startswith(owner_class + ".") for m in made)
    last = owner.attr if isinstance(owner, ast.Attribute) else dotted_name(owner)
    return bool(_OF[method].fullmatch(last)) and not code.name(call.func).startswith("torch.")
