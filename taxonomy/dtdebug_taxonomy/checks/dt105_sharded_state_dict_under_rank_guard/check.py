"""State of a sharded model that is gathered, saved or loaded on some ranks only."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Fix, Hit
from dtdebug_taxonomy.checks.shared.diverging import diverging, last_name
from dtdebug_taxonomy.checks.shared.lifting import hoist_call, lift_call, move_call_up
from dtdebug_taxonomy.checks.shared.names import DIST, FSDP
from dtdebug_taxonomy.checks.shared.sharding import is_fsdp
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.config_files import upward
from dtdebug_taxonomy.source.python.names import dotted_name

_SHARDS = re.compile(r"shard|fsdp|paralleli[sz]e", re.IGNORECASE)
_TRAINERS = ("transformers.", "trl.")
_CHECKPOINT = DIST + "checkpoint."
_FUNCTIONS = (
    *(f"{_CHECKPOINT}{home}{name}" for home in ("", "state_dict.") for name in (
        "get_state_dict", "get_model_state_dict", "get_optimizer_state_dict",
        "set_state_dict", "set_model_state_dict", "set_optimizer_state_dict",
    )),
    *(f"{_CHECKPOINT}{home}{name}" for home in ("", "state_dict_saver.", "state_dict_loader.") for name in (
        "save", "load", "async_save", "save_state_dict", "load_state_dict",
    )),
    *(f"{FSDP}.{name}" for name in (
        "optim_state_dict", "full_optim_state_dict", "sharded_optim_state_dict", "summon_full_params",
        "scatter_full_optim_state_dict",
    )),
)  # fmt: skip


def check(code: Code) -> Iterator[Hit]:
    """Report the call under the condition, or the call of a local function that makes it."""
    if code.role == "test":
        return
    trainers = {c: certain for c in code.methods("save_model") if (certain := _is_sharding(code, c)) is not None}
    calls = [
        *(c for c in code.calls(*_FUNCTIONS) if not _is_alone(code, c)),
        *(c for c in code.methods("state_dict", "summon_full_params") if is_fsdp(code, c.func.value)),  # type: ignore[attr-defined]
        *(c for c in code.methods("full_tensor") if not c.args),
        *code.methods("consolidate_state_dict"),  # of ZeroRedundancyOptimizer
        *trainers,
    ]
    for call, what, guard in diverging(code, calls):
        certain = trainers.get(call, True)
        parts = "each rank holds a part only" if certain else "with ZeRO stage 3 each rank holds a part only"
        yield Hit(
            code.span(call),
            f"{what} runs {guard.test.words}, but {parts} and all must take part: "
            "the run hangs. Gather on every rank, write on one.",
            _fix(code, call, calls) if call in calls else None,
            None if certain else "hint",
        )


def _is_sharding(code: Code, call: ast.Call) -> bool | None:
    """Return whether a Transformers Trainer that saves certainly shards the model; None if it does not, or is none."""
    made = code.made_by(call.func.value)  # type: ignore[attr-defined]
    if not made or not all(m.startswith(_TRAINERS) and m.endswith("Trainer") for m in made):
        return None
    given = [k for c in code.nodes(ast.Call) for k in c.keywords if k.arg in {"fsdp", "fsdp_config", "deepspeed"}]
    given = [k for k in given if not isinstance(k.value, ast.Constant) or k.value.value]
    if not given or any(k.arg != "deepspeed" for k in given):
        return True if given else None
    stages = {_stage(code, k.value) for k in given}
    return True if 3 in stages else False if None in stages else None


def _stage(code: Code, node: ast.expr) -> object:
    """Return ZeRO's stage in a dict, or in the one file of the project that a text names; None if unknown."""
    values = code.values(node)
    value = values[0] if len(values) == 1 else None
    if isinstance(value, ast.Dict):
        pairs = (p for d in code.inside(value, ast.Dict) for p in zip(d.keys, d.values, strict=True))
        return next((code.constant(v) for k, v in pairs if k is not None and code.constant(k) == "stage"), None)
    name = code.constant(value)
    if not isinstance(name, str) or code.project is None or not code.path:
        return None
    places = upward(posixpath.dirname(code.path), posixpath.normpath(name), 2)
    files = [file for each in places if (file := code.project.document(each)) is not None]
    found = files[0].roots[0].get("zero_optimization.stage") if len(files) == 1 and files[0].roots else None
    return found.value if found is not None else None


def _fix(code: Code, call: ast.Call, calls: list[ast.Call]) -> Fix | None:
    """Return a fix that gathers on every rank; further use of the state stays in its place."""
    title = f"Call {last_name(code, call)}() on every rank"
    if getattr(code.statement(call), "value", None) is call:
        fix = lift_call(code, call, title, calls) or move_call_up(code, call, title)
        return fix._replace(safe=False) if fix else None
    return hoist_call(code, call, "state_dict", title) if last_name(code, call).endswith("state_dict") else None


def _is_alone(code: Code, call: ast.Call) -> bool:
    """True if a call is for this rank alone, for a group, or for a model that is sharded only later."""
    if code.constant(code.argument(call, "no_dist")) is True or code.argument(call, "process_group") is not None:
        return True
    model = dotted_name(call.args[0]) if call.args else ""
    return bool(model) and any(
        _SHARDS.search(getattr(c.func, "attr", "") or getattr(c.func, "id", "")) and dotted_name(c.args[0]) == model
        for c in code.nodes(ast.Call)
        if c.args and code.order[c] > code.order[call] and code.function(c) is code.function(call)
    )
