"""Patches parts of PyTorch that a program may use: notes their use, and changes them if wanted.

Nothing here imports torch: each function gets the module that the program has just imported.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from dtdebug.experiments.isolate.inside import seeds
from dtdebug.experiments.isolate.inside.record_writer import LONGER, PartNotes

ACCUMULATION = (
    "gradient_accumulation_steps", "grad_accum", "grad_accum_steps", "accumulate_grad_batches", "accumulation_steps",
    "accum_steps", "accum", "accum_iter",
)  # fmt: skip
BATCH = (
    "batch_size", "per_device_train_batch_size", "train_batch_size", "micro_batch_size", "batch", "bs", "batchsize",
)  # fmt: skip
PRECISION = (
    "bf16", "fp16", "half", "amp", "use_amp", "use_bf16", "use_fp16", "mixed_precision", "precision", "dtype",
    "torch_dtype", "amp_dtype", "data_type", "param_dtype",
)  # fmt: skip
"""Names that programs give to these options."""
FULL = {
    "bf16": "fp32", "fp16": "fp32", "bfloat16": "float32", "float16": "float32", "half": "float32", "16": "32",
    "bf16-mixed": "32", "16-mixed": "32", "bf16-true": "32", "16-true": "32", "torch.bfloat16": "torch.float32",
    "torch.float16": "torch.float32",
}  # fmt: skip
"""Half precision -> full precision in the same spelling."""
_FIRST_BUCKET, _MIB = 1, 1 << 20
"""Default size in MiB of DDP's first bucket; bytes of a MiB."""
_LONGEST = 60
"""Longest time-out in seconds that a run can wait for three times."""


def arguments(module: ModuleType, notes: PartNotes) -> None:
    """Patch argparse to note and change the program's options, including those at their defaults."""
    parse = module.ArgumentParser.parse_known_args

    @functools.wraps(parse)
    def parse_known_args(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = parse(self, *args, **kwargs)
        if _is_launcher():
            return found
        for knob, names in (("gradient-accumulation", ACCUMULATION), ("batch-size", BATCH)):
            name = next((n for n in names if type(getattr(found[0], n, None)) is int), None)
            value = getattr(found[0], name) if name is not None else 0
            if name is not None and value > 1:
                notes.note("saw", f"argument.{knob}", f"{name}={value}")
                if (wanted := notes.change.get(f"argument.{knob}")) is not None:
                    setattr(found[0], name, value // 2 if wanted == "half" else int(wanted))
                    notes.note("set", f"argument.{knob}", f"{name}={getattr(found[0], name)}")
        _precision(found[0], notes)
        return found

    module.ArgumentParser.parse_known_args = parse_known_args


def _precision(found: Any, notes: PartNotes) -> None:
    """Note and change options that choose half precision, as a switch or by name."""
    for name in PRECISION:
        value: Any = getattr(found, name, None)
        spelled = str(value).lower()
        if value is True:
            full: Any = False
        elif type(value) in (str, int) and spelled in FULL:
            full = "no" if name == "mixed_precision" and type(value) is str else type(value)(FULL[spelled])
        else:
            continue
        notes.note("saw", "argument.precision", f"{name}={value}")
        if notes.wants("argument.precision"):
            setattr(found, name, full)
            notes.note("set", "argument.precision", f"{name}={full}")


def _is_launcher() -> bool:
    """True if the process only starts ranks."""
    main = getattr(sys.modules.get("__main__"), "__file__", None) or ""
    inside = main.replace("\\", "/")
    return inside.endswith(("/torchrun", "/torch/distributed/run.py", "/torch/distributed/launch.py")) or (
        "/accelerate/commands/" in inside or inside.endswith(("/accelerate", "/deepspeed"))
    )


def torch(module: ModuleType, notes: PartNotes) -> None:
    """Patch `torch.compile`, threads, and deterministic algorithms."""
    compiled = module.compile

    @functools.wraps(compiled)
    def compile(model: Any = None, **options: Any) -> Any:  # noqa: A001 - its name
        notes.note("saw", "compile")
        if not notes.wants("compile"):
            return compiled(model, **options)
        notes.note("set", "compile")
        return model if model is not None else (lambda function: function)

    module.compile = compile  # type: ignore[attr-defined]
    seeds.threads(module, notes)
    seeds.restore_seed(module, notes)
    if notes.wants("deterministic"):
        module.use_deterministic_algorithms(True, warn_only=True)
        notes.note("set", "deterministic")


def cuda(module: ModuleType, notes: PartNotes) -> None:
    """Note that a GPU is used."""
    begin = module._lazy_init  # noqa: SLF001 - what all uses of a device call first

    @functools.wraps(begin)
    def _lazy_init() -> None:
        begin()
        notes.note("saw", "cuda")

    module._lazy_init = _lazy_init  # type: ignore[attr-defined]  # noqa: SLF001


def anomaly(module: ModuleType, notes: PartNotes) -> None:
    """Patch autograd's anomaly detection: both of its classes call this function to switch it on."""
    switch: Any = sys.modules["torch"]
    original = switch.set_anomaly_enabled

    @functools.wraps(original)
    def set_anomaly_enabled(enabled: bool, *args: Any, **kwargs: Any) -> None:
        if enabled:
            notes.note("saw", "anomaly")
            if notes.wants("anomaly"):
                notes.note("set", "anomaly")
        original(enabled and not notes.wants("anomaly"), *args, **kwargs)

    switch.set_anomaly_enabled = set_anomaly_enabled


def autocast(module: ModuleType, notes: PartNotes) -> None:
    """Patch autocast of mixed precision."""
    _off(module.autocast, "amp", "autocast", notes)


def scaler(module: ModuleType, notes: PartNotes) -> None:
    """Patch the gradient scaler of mixed precision."""
    _off(module.GradScaler, "amp", "scaler", notes)


def _off(kind: Any, knob: str, what: str, notes: PartNotes) -> None:
    """Patch a class that is enabled by default: note its use, and disable it if wanted."""
    original = kind.__init__

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - takes its place
        given = bound(original, (self, *args), kwargs)
        if given is None or not given.arguments.get("enabled", True):
            original(self, *args, **kwargs)
            return
        notes.note("saw", knob, what)
        if notes.wants(knob):
            given.arguments["enabled"] = False
            notes.note("set", knob)
        original(*given.args, **given.kwargs)

    kind.__init__ = __init__


def bound(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> inspect.BoundArguments | None:
    """Return the arguments bound to a function's parameters, or None if it would reject them."""
    try:
        return inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):  # the original raises it
        return None


def checkpointing(module: ModuleType, notes: PartNotes) -> None:
    """Patch activation checkpointing."""
    original = module.checkpoint
    own = ("use_reentrant", "context_fn", "determinism_check", "debug", "early_stop", "preserve_rng_state")

    @functools.wraps(original)
    def checkpoint(function: Any, *args: Any, **kwargs: Any) -> Any:
        notes.note("saw", "checkpointing")
        if not notes.wants("checkpointing"):
            return original(function, *args, **kwargs)
        notes.note("set", "checkpointing")
        return function(*args, **{name: value for name, value in kwargs.items() if name not in own})

    module.checkpoint = checkpoint  # type: ignore[attr-defined]


def ddp(module: ModuleType, notes: PartNotes) -> None:
    """Patch the options of DistributedDataParallel."""
    kind: Any = module.DistributedDataParallel
    original = kind.__init__
    options = (
        ("ddp.unused", "find_unused_parameters", False, True),
        ("ddp.used", "find_unused_parameters", False, False),
        ("ddp.static", "static_graph", False, False),
        ("ddp.bucket-view", "gradient_as_bucket_view", False, False),
    )

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - takes its place
        given = bound(original, (self, *args), kwargs)
        if given is None:
            original(self, *args, **kwargs)
            return
        notes.note("saw", "ddp")
        for knob, name, usual, wanted in options:
            if knob != "ddp.used" and given.arguments.get(name, usual):
                notes.note("saw", knob)
            if notes.wants(knob) and bool(given.arguments.get(name, usual)) != wanted:
                given.arguments[name] = wanted
                notes.note("set", knob)
                if knob == "ddp.static":  # a static graph allows unused parameters: keep that
                    given.arguments["find_unused_parameters"] = True
        _buffers(given.arguments, notes)
        _buckets(given.arguments, notes)
        original(*given.args, **given.kwargs)

    kind.__init__ = __init__


def _buffers(given: dict[str, Any], notes: PartNotes) -> None:
    model = given.get("module")
    if given.get("broadcast_buffers", True) and model is not None and next(model.buffers(), None) is not None:
        notes.note("saw", "ddp.buffers")
        if notes.wants("ddp.buffers"):
            given["broadcast_buffers"] = False
            notes.note("set", "ddp.buffers")


def _buckets(given: dict[str, Any], notes: PartNotes) -> None:
    """Put all gradients into one bucket, if there are several."""
    try:
        parameters = [p for p in given["module"].parameters() if p.requires_grad]
        size = sum(p.numel() * p.element_size() for p in parameters)
    except Exception:  # DDP raises its own error
        return
    if len(parameters) > 1 and size > (given.get("bucket_cap_mb") or _FIRST_BUCKET) * _MIB:
        notes.note("saw", "ddp.buckets")
        if notes.wants("ddp.one-bucket"):
            given["bucket_cap_mb"] = size / _MIB + 1
            given.pop("bucket_cap_mb_list", None)
            notes.note("set", "ddp.one-bucket")


def groups(module: ModuleType, notes: PartNotes) -> None:
    """Patch the process groups and their backend."""
    c10d: Any = module
    begin, further = c10d.init_process_group, c10d.new_group

    @functools.wraps(begin)
    def init_process_group(*args: Any, **kwargs: Any) -> Any:
        notes.check_environment()
        given = bound(begin, args, kwargs)
        if given is not None and given.arguments.get("backend"):  # noted now: a backend may fail to start
            notes.note("saw", f"backend.{str(given.arguments['backend']).lower()}")
            if os.environ.get("WORLD_SIZE", "1") != "1":
                notes.note("saw", "group")
        if given is not None and notes.wants("backend.fake"):
            _fake(given.arguments)
            notes.note("set", "backend.fake")
        elif given is not None and notes.wants("backend.gloo"):
            given.arguments["backend"] = "gloo"
            given.arguments.pop("device_id", None)
            notes.note("set", "backend.gloo")
        if given is not None:
            _longer(given.arguments, notes)
        result = begin(*given.args, **given.kwargs) if given is not None else begin(*args, **kwargs)
        world = c10d.get_world_size()
        notes.note("saw", "world", world)
        notes.note("saw", f"backend.{str(c10d.get_backend()).lower()}")
        if world > 1:
            notes.note("saw", "group")
        return result

    @functools.wraps(further)
    def new_group(*args: Any, **kwargs: Any) -> Any:
        given = bound(further, args, kwargs)
        if given is None:
            return further(*args, **kwargs)
        for name in ("fake", "gloo"):
            if notes.wants(f"backend.{name}") and given.arguments.get("backend"):
                given.arguments["backend"] = name
        _longer(given.arguments, notes)
        return further(*given.args, **given.kwargs)

    c10d.init_process_group, c10d.new_group = init_process_group, new_group


def _longer(given: dict[str, Any], notes: PartNotes) -> None:
    """Note a time-out that the program has chosen, if short enough, and triple it if wanted."""
    limit = given.get("timeout")
    if limit is not None and 0 < limit.total_seconds() <= _LONGEST:
        notes.note("saw", "group.timeout", f"{limit.total_seconds():g} s")
        if notes.wants("group.timeout"):
            given["timeout"] = LONGER * limit
            notes.note("set", "group.timeout")


def _fake(given: dict[str, Any]) -> None:
    """Use a group that sends nothing; importing its module registers the backend."""
    fake: Any = importlib.import_module("torch.testing._internal.distributed.fake_pg")
    rank, world = given.get("rank", -1), given.get("world_size", -1)
    given.update(
        backend="fake",
        store=fake.FakeStore(),
        rank=rank if rank is not None and rank >= 0 else int(os.environ["RANK"]),
        world_size=world if world is not None and world > 0 else int(os.environ["WORLD_SIZE"]),
    )
    given.pop("init_method", None)
    given.pop("device_id", None)
