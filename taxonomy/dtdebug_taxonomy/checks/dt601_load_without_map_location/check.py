"""Checkpoints that every rank loads to the device that they were saved from, usually GPU 0."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared import horovod
from dtdebug_taxonomy.checks.shared.arguments import add
from dtdebug_taxonomy.checks.shared.lightning import many_devices
from dtdebug_taxonomy.checks.shared.names import COLLECTIVES, DIST, FULLY_SHARD, INIT
from dtdebug_taxonomy.checks.shared.ranks_seen import depends_on_rank
from dtdebug_taxonomy.checks.shared.wrapping import DDPS, FSDP1
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS

_CHECKPOINT = re.compile(r"ckpt|checkpoint|resume|weight|snapshot|pretrain|\.pth|state|model|restore", re.IGNORECASE)
_SMALL = re.compile(
    r"schedul|scaler|rng|sampler|dataset|vocab|tokenizer|bytes|buffer|serial|meta|param_group", re.IGNORECASE
)
_STARTS = (
    *(*DDPS, *FSDP1, *FULLY_SHARD, INIT),
    *("deepspeed.initialize", "deepspeed.init_distributed", "accelerate.Accelerator"),
)
_ASKS = (DIST + "get_rank", DIST + "get_world_size")
_PARALLEL = "torch.nn.parallel"
_GPUS = ("cuda", "nccl", ".to(", "gpu", "device")


def check(code: Code) -> Iterator[Hit]:
    """Report the call."""
    yield from _of_lightning(code)
    yield from _of_safetensors(code)
    calls = code.calls("torch.load")
    if not calls or code.role == "test" or not (any(w in code.text for w in _GPUS) or code.imports_any(_PARALLEL)):
        return
    starts = [*code.calls(*_STARTS), *horovod.calls(code, "init")]
    for call in calls:
        given = code.argument(call, "map_location", 1)
        if code.has_unpacking(call) or (given is not None and code.constant(given) != "cuda:0"):
            continue
        if not _is_parallel(code, call, starts):
            continue
        if not _is_checkpoint(code, call) or _is_for_one(code, call) or _is_mapped_otherwise(code, call):
            continue
        if given is not None:
            yield Hit(
                code.span(given),
                "Every rank loads this to GPU 0, which then holds a copy, and a CUDA context, for each of them.",
                Fix("Load it to the CPU", (Edit(code.span(given), '"cpu"'),)),
            )
            continue
        yield Hit(
            code.span(call),
            "Without map_location, every rank loads this to the device it was saved from: GPU 0 then holds "
            "a copy, and a CUDA context, for each of them.",
            Fix('Add map_location="cpu"', (add(code, call, 'map_location="cpu"'),)),
        )


def _of_safetensors(code: Code) -> Iterator[Hit]:
    """Report `load_file(path, device="cuda")`, which safetensors takes for GPU 0 on every rank."""
    starts = [*code.calls(*_STARTS), *horovod.calls(code, "init")]
    for call in code.calls("safetensors.torch.load_file"):
        device = code.argument(call, "device", 1)
        if device is None or code.constant(device) not in {"cuda", "cuda:0"} or code.role == "test":
            continue
        if _is_parallel(code, call, starts) and not _is_for_one(code, call):
            yield Hit(
                code.span(device),
                "safetensors takes this for GPU 0, whatever device the rank has chosen: it then holds a copy of the "
                "weights for each rank.",
                Fix("Load it to the CPU", (Edit(code.span(device), '"cpu"'),)),
            )


def _of_lightning(code: Code) -> Iterator[Hit]:
    """Report `load_from_checkpoint(path)` in programs whose Trainer uses the module on several devices."""
    calls = [c for c in code.methods("load_from_checkpoint") if code.argument(c, "map_location", 1) is None]
    if not calls or code.role == "test" or not many_devices(code):
        return
    used = {dotted_name(a) for c in code.methods("fit", "validate", "test", "predict") for a in (*c.args, *_values(c))}
    for call in calls:
        up = code.parent[call]
        names = {dotted_name(t) for t in up.targets} if isinstance(up, ast.Assign) else set()
        if not code.has_unpacking(call) and names & (used - {""}):
            yield Hit(
                code.span(call),
                "Without map_location, every rank loads this to the device it was saved from, before the Trainer moves "
                "it: GPU 0 then holds a copy, and a CUDA context, for each of them.",
                Fix('Add map_location="cpu"', (add(code, call, 'map_location="cpu"'),)),
            )


def _values(call: ast.Call) -> list[ast.expr]:
    return [k.value for k in call.keywords]


def _is_parallel(code: Code, call: ast.Call, starts: list[ast.Call]) -> bool:
    """True if several ranks get here: in a program of several, or a class or function that wraps the model.

    A program that does not use the other ranks, such as a checkpoint converter, is one process.
    """
    if starts and code.role == "program":
        return True
    function = code.function(call)
    if function is not None and any(code.name(n) in DDPS for n in code.inside(function, ast.Name, ast.Attribute)):
        return True  # `isinstance(model, DistributedDataParallel)`
    home = code.class_of(call) or function
    asks = code.calls(*COLLECTIVES, *_ASKS) if code.role == "program" else []
    if home is not None and any(home in code.ancestors(c) for c in (*starts, *asks)):
        return True
    callers = code.callers.get(home, ()) if isinstance(home, FUNCTIONS) else ()
    functions = {code.function(c) for c in callers} - {None}
    return any(code.function(s) in functions for s in starts)


def _is_for_one(code: Code, call: ast.Call) -> bool:
    """True if only rank 0 gets here, whose device is GPU 0."""
    return any(g.test.value == "0" and g.test.equal for g in guards(code).around(call))


def _is_mapped_otherwise(code: Code, call: ast.Call) -> bool:
    """True if the other branch of an `if` loads with a device, so that this one is for runs without it."""
    inner: ast.AST = call
    for up in code.ancestors(call):
        if isinstance(up, ast.If) and inner is not up.test:
            other = up.orelse if inner in up.body else up.body
            if any(
                code.argument(c, "map_location", 1) is not None
                for s in other
                for c in code.inside(s, ast.Call)
                if code.name(c.func) == "torch.load"
            ):
                return True
        if isinstance(up, FUNCTIONS):
            return False
        inner = up
    return False


def _is_checkpoint(code: Code, call: ast.Call) -> bool:
    """True if the loaded object is the state of a model or optimizer, rather than data."""
    source = code.argument(call, "f", 0)
    if source is None or depends_on_rank(code, source):
        return False
    values = [source, *(v for n in code.inside(source, ast.Name) for v in code.values(n) if v is not None)]
    written = " ".join(code.source_of(v) for v in values)
    statement = code.statement(call)
    if _SMALL.search(written):
        return False
    if isinstance(statement, ast.Assign):
        written += "".join(dotted_name(t) for t in statement.targets)
    if _CHECKPOINT.search(written):
        return True
    for up in code.ancestors(call):
        if isinstance(up, ast.Call) and getattr(up.func, "attr", "").startswith("load_state_dict"):
            return True
        if isinstance(up, ast.stmt):
            break
    if not isinstance(statement, ast.Assign) or not dotted_name(statement.targets[0]):
        return False
    names = {dotted_name(t) for t in statement.targets}
    return any(
        dotted_name(n) in names and code.function(c) is code.function(call)
        for c in code.methods("load_state_dict")
        for a in c.args
        for n in (a, *code.inside(a, ast.Name))
        if isinstance(n, ast.expr)
    )
