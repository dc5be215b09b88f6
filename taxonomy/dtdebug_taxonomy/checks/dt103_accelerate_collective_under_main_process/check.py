"""Calls of Accelerate that all processes must make, under a condition that admits only some."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.diverging import collectives, diverging, last_name
from dtdebug_taxonomy.checks.shared.lifting import lift_call
from dtdebug_taxonomy.checks.shared.preparing import MAKER, makes_accelerator
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_METHODS = (
    "save_state",
    "load_state",
    "save_model",
    "get_state_dict",
    "gather",
    "gather_for_metrics",
    "reduce",
    "pad_across_processes",
    "wait_for_everyone",
    "prepare",
)
_WHERE = {
    "save_state": "with DeepSpeed and FSDP",
    "load_state": "with DeepSpeed and FSDP",
    "save_model": "with FSDP and ZeRO stage 3, which gather the weights",
    "get_state_dict": "with FSDP and ZeRO stage 3, which gather the weights",
}
"""Methods that communicate only under some ways of sharding."""
_GATHER = ("get_state_dict", "save_model")
"""Methods that gather weights through get_state_dict(), which a program may override."""
_SHARDS = re.compile(r"(?i:fsdp|deepspeed|zero_?[123]|shard)|ZeRO")
"""Words of a program that may run with sharded weights."""
_STATES = {"accelerate.PartialState", "accelerate.state.PartialState", "accelerate.state.AcceleratorState"}
_FUNCTIONS = tuple(
    f"accelerate.utils.{home}{name}"
    for home in ("", "operations.", "other.")
    for name in (
        "gather",
        "gather_object",
        "reduce",
        "broadcast",
        "broadcast_object_list",
        "pad_across_processes",
        "wait_for_everyone",
    )
)
_TURNS = {"main_process_first", "local_main_process_first"}
"""Contexts that the main process runs through before any other enters."""
_PARTITIONS = re.compile(r"zero_stage\s{0,4}=\s{0,4}3\b|\bHfDeepSpeedConfig\(")
"""ZeRO-3 set up in the program itself: from then on transformers cuts weights into shards while it loads them."""
_PARTITIONING = ("zero_stage", "HfDeepSpeedConfig")
_LOADS = ("from_pretrained", "from_config")
_NAME = re.compile(r"_*(\w+_)?(accelerator|accel|acc)", re.IGNORECASE)
_USERS = ("accelerate", "transformers", "trl", "diffusers")


def check(code: Code) -> Iterator[Hit]:
    """Report the call under the condition, or the call of a local function that makes it."""
    if code.role == "test":
        return
    replaced = {n.attr for n in code.nodes(ast.Attribute) if isinstance(n.ctx, ast.Store)}
    methods = (m for m in _METHODS if not (m in _GATHER and "get_state_dict" in replaced))
    calls = [
        *code.calls(*_FUNCTIONS),
        *(
            c
            for c in code.methods(*methods)
            if _is_accelerator(code, c) and not _of_a_plain_model(code, c) and not _is_unsharded_only(code, c)
        ),
    ]
    shards = bool(calls) and _SHARDS.search(code.text) is not None
    for call, what, guard in diverging(code, calls):
        yield Hit(
            code.span(call),
            f"{what} runs {guard.test.words}: the other processes never call it, so the run hangs "
            f"{next((where for name, where in _WHERE.items() if name in what), 'in it')}.",
            lift_call(code, call, f"Call {last_name(code, call)}() on every process", calls),
            "hint" if any(name in what for name in _WHERE) and not shards else None,
        )
    yield from _in_turns(code, calls)


def _in_turns(code: Code, calls: list[ast.Call]) -> Iterator[Hit]:
    """Yield the calls for which the main process waits where the others may not enter yet."""
    loads = code.methods(*_LOADS)
    if not any(word in code.text for word in _PARTITIONING) or not _PARTITIONS.search(code.text):
        loads = []
    for call in (*calls, *collectives(code), *(c for c in loads if "Model" in code.source_of(c.func))):
        around = (a for a in code.ancestors(call) if isinstance(a, ast.With))
        turns = (i.context_expr for a in around for i in a.items if isinstance(i.context_expr, ast.Call))
        entered = next((t.func.attr for t in turns if getattr(t.func, "attr", "") in _TURNS), None)  # type: ignore[attr-defined]
        if entered is not None:
            why = " under ZeRO-3" if last_name(code, call) in _LOADS else ""
            yield Hit(
                code.span(call),
                f"{last_name(code, call)}() waits for all processes{why}, but the others enter {entered}() only when "
                "the main process has left it: the run hangs.",
            )


def _is_accelerator(code: Code, call: ast.Call) -> bool:
    owner = call.func.value  # type: ignore[attr-defined]
    made = code.made_by(owner) - {""}
    if made:
        return all(name == MAKER or makes_accelerator(name) for name in made) or (
            made <= _STATES and last_name(code, call) == "wait_for_everyone"
        )
    last = owner.attr if isinstance(owner, ast.Attribute) else dotted_name(owner)
    return bool(_NAME.fullmatch(last)) and code.imports_any(*_USERS)


def _is_unsharded_only(code: Code, call: ast.Call) -> bool:
    """True if a call needs all processes only for sharded weights and runs only without them."""
    if last_name(code, call) not in _WHERE:
        return False
    for inner, up in pairwise([call, *code.ancestors(call)]):
        if isinstance(up, ast.If) and inner is not up.test:
            denied = isinstance(up.test, ast.UnaryOp) and isinstance(up.test.op, ast.Not)
            asked = up.test.operand if denied else up.test  # type: ignore[attr-defined]
            if _SHARDS.search(dotted_name(asked)):
                return (inner in up.body) is denied
    return False


def _of_a_plain_model(code: Code, call: ast.Call) -> bool:
    """True if the saved model is not prepared here, such as an average of the weights."""
    model = call.args[0] if call.args and last_name(code, call) in {"save_model", "get_state_dict"} else None
    if not isinstance(model, ast.Name) or not code.made_by(model) - {""}:
        return False
    prepared = {
        n.id
        for c in code.methods("prepare", "prepare_model")
        for part in (code.statement(c),)
        for n in code.inside(part, ast.Name)
    }
    return bool(prepared) and model.id not in prepared
