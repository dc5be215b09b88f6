"""Checkpoint calls of a DeepSpeed engine that a condition on the rank keeps some ranks from."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.diverging import diverging, last_name
from dtdebug_taxonomy.checks.shared.engines import is_engine, made_by_deepspeed
from dtdebug_taxonomy.checks.shared.lifting import lift_call
from dtdebug_taxonomy.source.python.code import Code

_METHODS = (
    "save_checkpoint",
    "load_checkpoint",
    "save_16bit_model",
    "save_fp16_model",
    "_zero3_consolidated_16bit_state_dict",
)


def check(code: Code) -> Iterator[Hit]:
    """Report the call under the condition, or the call of a local function that makes it."""
    if code.role == "test":
        return
    calls = [c for c in code.methods(*_METHODS) if _is_of_engine(code, c)]
    for call, what, guard in diverging(code, calls):
        yield Hit(
            code.span(call),
            f"{what} runs {guard.test.words}, but DeepSpeed needs it on every rank: each writes or reads its part, "
            "and they wait for each other.",
            lift_call(code, call, f"Call {last_name(code, call)}() on every rank", calls),
        )


def _is_of_engine(code: Code, call: ast.Call) -> bool:
    owner = call.func.value  # type: ignore[attr-defined]
    if isinstance(owner, ast.Name) and owner.id in {"self", "cls"}:
        return False
    if made_by_deepspeed(code, owner):
        return True
    if last_name(code, call) not in {"save_checkpoint", "load_checkpoint"}:
        return True  # no other library has these methods
    return "deepspeed" in code.text.lower() and is_engine(code, owner)
