"""Devices that are numbered by the global rank."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.devices import device_numbers
from dtdebug_taxonomy.checks.shared.environment import reading, settings
from dtdebug_taxonomy.checks.shared.fixing import environment_number
from dtdebug_taxonomy.checks.shared.names import INIT
from dtdebug_taxonomy.checks.shared.values import returned_values
from dtdebug_taxonomy.model.launch_variables import RANK
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import several

_LOCAL = {"RANK": "LOCAL_RANK", "SLURM_PROCID": "SLURM_LOCALID", "OMPI_COMM_WORLD_RANK": "OMPI_COMM_WORLD_LOCAL_RANK"}
_RANK_CALLS = {
    "torch.distributed.get_rank",
    "torch.distributed.get_global_rank",
    "deepspeed.get_rank",
    "torch.distributed.group.rank",
}
_STATES = ("accelerate.Accelerator", "accelerate.PartialState", "accelerate.state.PartialState")
_MACHINES = re.compile(
    r"n_?nodes|node_?(rank|id)|multi.?node|num_machines|machine_rank|hostfile|local_?rank|SLURM|OMPI|PMI_|MV2_",
    re.IGNORECASE,
)
"""Words of a program for several machines; without them a hit is a hint."""
_MEETS_HERE = re.compile(r"tcp://(localhost|127\.0\.0\.1)\b")
_ONE_HOST = {"localhost", "127.0.0.1", "0.0.0.0"}  # noqa: S104


def check(code: Code) -> Iterator[Hit]:
    """Report the rank that numbers a device."""
    if code.role == "test":
        return
    knows: bool | None = None
    for place in device_numbers(code):
        source = _global_rank(code, place)
        if source is None:
            continue
        if _one_host(code):
            return
        knows = _knows_machines(code) if knows is None else knows
        yield Hit(
            code.span(place),
            f"This device is numbered by the global rank ({source[0]}): on the second machine there is no such "
            "device. A machine's devices are counted by LOCAL_RANK.",
            _fix(code, place, *source),
            None if knows else "hint",
        )


def _knows_machines(code: Code) -> bool:
    """True if the program mentions machines; calling its global rank local is not enough."""
    words = {m[0] for m in _MACHINES.finditer(code.text)}
    if words - {"local_rank"}:
        return True
    named = (n for kind in (ast.Name, ast.Attribute) for n in code.nodes(kind) if isinstance(n.ctx, ast.Load))
    read = [n for n in named if dotted_name(n).rpartition(".")[2] == "local_rank"]
    return bool(words) and not (read and all(_global_rank(code, n) for n in read))


def _global_rank(code: Code, node: ast.expr | None, depth: int = 4) -> tuple[str, ast.expr] | None:
    """Return (name, expression) of the global rank that a number definitely comes from, else None."""
    if node is None or not depth:
        return None
    if isinstance(node, ast.Call):
        name = code.name(node.func)
        if name in {"int", "str"} and len(node.args) == 1:
            return _global_rank(code, node.args[0], depth)
        if name in _RANK_CALLS and not node.args and not node.keywords:
            return f"{name.rsplit('.', 1)[-1]}()", node
    if (read := reading(code, node)) is not None:
        return (read.variable, node) if read.variable in RANK else None
    if isinstance(node, ast.Call) and (function := code.local_function(node)) is not None:
        found = [_global_rank(code, v, depth - 1) for v in returned_values(code, function) if code.constant(v) != 0]
        return (found[0][0], node) if found and all(found) and found[0] else None
    if isinstance(node, ast.Attribute) and node.attr == "process_index" and _is_state(code, node.value):
        return "process_index", node
    if not dotted_name(node):
        return None
    found = [_global_rank(code, v, depth - 1) for v in _values(code, node) if v is not node]
    if not found or not all(found) or found[0] is None:
        return None
    return found[0][0], node


def _is_state(code: Code, owner: ast.expr) -> bool:
    """True if an object is an Accelerator or a PartialState, whose `process_index` counts over all machines."""
    return code.is_made_by(owner, *_STATES)


def _values(code: Code, name: ast.expr) -> list[ast.expr | None]:
    """Return the values that a name can have in runs of several processes."""
    found = [b for b in code.bound(name) if not (b.how == "assign" and _for_one_process(code, b.node))]
    values = [b.value if b.how == "assign" else None for b in found]
    return [v for v in values if not (isinstance(v, ast.Constant) and v.value == 0)]  # the value without other ranks


def _for_one_process(code: Code, node: ast.AST) -> bool:
    """True if a statement is in a branch for runs of one process, so that its number is not a rank."""
    inner = node
    for up in code.ancestors(node):
        if isinstance(up, ast.If) and inner is not up.test and (many := several(code, up.test)) is not None:
            return many is not (inner in up.body)
        inner = up
    return False


def _one_host(code: Code) -> bool:
    """True if the program runs on one machine only: it starts its processes itself, or uses localhost."""
    if code.calls("torch.multiprocessing.spawn", "torch.multiprocessing.start_processes"):
        return True
    meets = [code.argument(c, "init_method", 1) for c in code.calls(INIT)]
    if any(m is not None and _MEETS_HERE.search(code.source_of(m)) for m in meets):
        return True
    return any(s.variable == "MASTER_ADDR" and code.constant(s.value) in _ONE_HOST for s in settings(code))


def _fix(code: Code, place: ast.expr, variable: str, source: ast.expr) -> Fix | None:
    title = "Number it by the local rank"
    read = reading(code, source)
    if read is not None and code.span(place).start <= code.span(source).start <= code.span(place).end:
        name = source.slice if isinstance(source, ast.Subscript) else source.args[0]  # type: ignore[attr-defined]
        if isinstance(name, ast.Constant) and read.variable in _LOCAL:
            quote = code.source_of(name)[0]
            return Fix(title, (Edit(code.span(name), f"{quote}{_LOCAL[read.variable]}{quote}"),))
        return None
    if any(isinstance(a, ast.JoinedStr) for a in code.ancestors(place)):
        return None  # quotes inside quotes
    if isinstance(place, ast.Call) and code.name(place.func) == "str":
        place = place.args[0]
    if isinstance(place, ast.Attribute) and variable == "process_index":
        return Fix(title, (Edit(code.span(place), f"{code.source_of(place.value)}.local_process_index"),))
    text, edits = environment_number(code, _LOCAL.get(variable, "LOCAL_RANK"))
    return Fix(title, (Edit(code.span(place), text), *edits))
