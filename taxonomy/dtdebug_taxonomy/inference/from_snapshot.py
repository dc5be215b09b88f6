"""Answers that follow from the snapshot: each signal is a function of the snapshot.

A signal returns (value, why) for its observation, or None if the snapshot does not show it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from dtdebug_taxonomy.inference.device_tables import device_usage
from dtdebug_taxonomy.inference.from_ranks import SIGNALS as RANK_SIGNALS
from dtdebug_taxonomy.model.launch_variables import WORLD_SIZE, read_number
from dtdebug_taxonomy.model.snapshot import Snapshot, walk

Signal = Callable[[Snapshot], tuple[str, str] | None]
_SIGNALS: dict[str, Signal] = {}
_SIGNALS["device_usage"] = device_usage
_FULL = 0.95
"""Share of a device's memory at which it counts as full."""


def _signal(key: str) -> Callable[[Signal], Signal]:
    def register(function: Signal) -> Signal:
        _SIGNALS[key] = function
        return function

    return register


def measure(snapshot: Snapshot) -> dict[str, tuple[str, str]]:
    """Return observation key -> (value, sentence on how it is known)."""
    rows = ((key, signal(snapshot)) for table in (_SIGNALS, RANK_SIGNALS) for key, signal in table.items())
    found = {key: answer for key, answer in rows if answer}  # if both answer, many ranks are more reliable than one
    return snapshot.examined | found | snapshot.contrasts  # the failed job itself is the most reliable


@_signal("manifestation")
def _manifestation(s: Snapshot) -> tuple[str, str] | None:
    for info in walk(s.exception):
        if info.signal or (info.exit_code or 0) < 0:
            return "killed_by_signal", f"a process ended by {info.signal or info.exit_code}"
    interrupted = s.exception is not None and s.exception.type.endswith("KeyboardInterrupt")
    if interrupted:
        return "hang", "the cell was interrupted"
    return ("exception", f"{s.exception.type} was raised") if s.exception else None


@_signal("framework")
def _framework(s: Snapshot) -> tuple[str, str] | None:
    raised = {f.file for info in walk(s.exception) for f in info.frames}
    frames = " ".join(raised or {f.file for r in s.ranks for f in r.stack})
    if not frames:
        return None
    order = {
        "deepspeed": "deepspeed",
        "colossalai": "colossalai",
        "megatron": "megatron",
        "horovod": "horovod",
        "lightning": "lightning",
        "pytorch_lightning": "lightning",
        "accelerate": "accelerate",
        "torch/distributed/fsdp": "torch_fsdp",
        "torch/distributed/rpc": "torch_rpc",
        "torch/nn/parallel/distributed": "torch_ddp",
        "torch/nn/parallel/data_parallel": "torch_dataparallel",
        **({"torch/distributed": "torch_other"} if raised else {}),  # anything that waits for other ranks waits there
        "tensorflow": "tensorflow",
        "keras": "keras",
    }
    for part, value in order.items():
        if re.search(rf"[/\\]{part}[/\\.]", frames):
            return value, f"the {'traceback' if raised else 'stack of a rank'} goes through {part}"
    return None


@_signal("backend")
def _backend(s: Snapshot) -> tuple[str, str] | None:
    for r in s.ranks:
        if r.backend in ("nccl", "gloo", "mpi"):
            return r.backend, f"process group of rank {r.rank}"
    return None


@_signal("launcher")
def _launcher(s: Snapshot) -> tuple[str, str] | None:
    names = {info.type.rsplit(".", 1)[-1] for info in walk(s.exception)}
    if "ChildFailedError" in names:
        return "torchrun", "ChildFailedError is raised by torch's elastic launcher"
    if names & {"ProcessRaisedException", "ProcessExitedException"}:
        return "spawn", "the ranks were started by torch.multiprocessing"
    environments = (s.environment, *(r.environment for r in s.ranks))
    for variable, value in (
        ("TORCHELASTIC_RUN_ID", "torchrun"),
        ("OMPI_COMM_WORLD_SIZE", "mpirun"),
        ("HOROVOD_RANK", "horovodrun"),
        ("SLURM_PROCID", "slurm"),
    ):
        if any(variable in e for e in environments):
            return value, f"{variable} is set"
    return ("notebook", "the cell itself runs the ranks") if s.cell and s.child_ranks else None


@_signal("nodes")
def _nodes(s: Snapshot) -> tuple[str, str] | None:
    hosts = {r.host for r in s.ranks if r.host}
    if len(hosts) > 1:
        return "multiple", f"ranks on {len(hosts)} hosts"
    for r in s.ranks:
        if r.world_size and r.local_world_size:
            same = r.world_size == r.local_world_size
            return ("single" if same else "multiple"), f"{r.local_world_size} of {r.world_size} ranks are on this host"
    return ("single", "the ranks are children of this kernel") if s.child_ranks else None


@_signal("accelerator")
def _accelerator(s: Snapshot) -> tuple[str, str] | None:
    if s.gpus:
        return "cuda", f"NVML lists {len(s.gpus)} device(s)"
    torch = s.versions.get("torch", "")
    return ("cpu", f"torch {torch} is a CPU build") if torch.endswith("+cpu") else None


@_signal("device_memory")
def _device_memory(s: Snapshot) -> tuple[str, str] | None:
    for gpu in s.gpus:
        if gpu.memory_total and gpu.memory_used / gpu.memory_total >= _FULL:
            return "full", f"GPU {gpu.index}: {gpu.memory_used >> 20} of {gpu.memory_total >> 20} MiB in use"
    return None


@_signal("every_process_reports_rank_zero")
def _rank_zero(s: Snapshot) -> tuple[str, str] | None:
    launched = read_number(s.environment, WORLD_SIZE) or 1
    for r in s.ranks:
        if r.initialized and r.world_size == 1 and launched > 1:
            return "yes", f"the launcher started {launched} processes, this one counts 1"
        if r.initialized and (r.world_size or 0) > 1:
            return "no", f"rank {r.rank} of {r.world_size}"
    return None
