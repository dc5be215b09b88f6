"""Installs the patches in a process: once, at its start, and after the import of each patched module."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

from dtdebug.experiments.isolate.inside import (
    env_reads,
    fsdp_options,
    loaders,
    seeds,
    start_method,
    stdin_use,
    torch_features,
    write_guard,
)
from dtdebug.experiments.isolate.inside.record_writer import VARIABLE, PartNotes

Patch = Callable[[ModuleType, PartNotes], None]
PATCHES: dict[str, Patch] = {
    "accelerate.state": env_reads.accelerate,
    "argparse": torch_features.arguments,
    "numpy.random": seeds.seeds("numpy", "seed"),
    "random": seeds.seeds("python", "seed"),
    "torch": torch_features.torch,
    "torch.autograd.anomaly_mode": torch_features.anomaly,
    "torch.amp.autocast_mode": torch_features.autocast,
    "torch.amp.grad_scaler": torch_features.scaler,
    "torch.cuda": torch_features.cuda,
    "torch.distributed.distributed_c10d": torch_features.groups,
    "torch.distributed.fsdp._fully_shard._fully_shard": fsdp_options.function,
    "torch.distributed.fsdp.fully_sharded_data_parallel": fsdp_options.wrapper,
    "torch.multiprocessing.spawn": start_method.patch,
    "torch.nn.parallel.distributed": torch_features.ddp,
    "torch.random": seeds.seeds("torch", "manual_seed"),
    "torch.serialization": write_guard.saving,
    "torch.utils.checkpoint": torch_features.checkpointing,
    "torch.utils.data.dataloader": loaders.patch,
}


class _After:
    """Import hook that patches modules as soon as they are imported; finds no modules itself."""

    def __init__(self, notes: PartNotes) -> None:
        self._notes, self._waiting = notes, dict(PATCHES)

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        patch = self._waiting.pop(name, None)
        if patch is None:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None and finder is not self else None
            if spec is not None:
                if spec.loader is not None:
                    _wrap(spec.loader, patch, self._notes)
                return spec
        return None


def _wrap(loader: Any, patch: Patch, notes: PartNotes) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        with suppress(Exception):  # another version: the change is not seen to be made
            patch(module, notes)

    loader.exec_module = exec_module


def _version(name: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def begin() -> None:
    """Read the instructions, and install the patches."""
    with open(os.environ[VARIABLE], encoding="utf-8") as file:  # noqa: PTH123 - pathlib takes milliseconds to import
        told = json.load(file)
    notes = PartNotes(told["notes"], told["change"], told["environment"])
    notes.note("saw", "process", " ".join(sys.orig_argv[:8]))
    notes.note("saw", "python", sys.executable)
    for name, version in told["versions"].items():
        notes.note("set" if _version(name) == version else "lost", f"version.{name}", version)
    if os.environ.get("PYTHONHASHSEED", "random") != "random":
        notes.note("saw", "hash-seed")
    notes.check_environment()
    write_guard.begin(notes, told["ours"], float(told["begun"]))
    env_reads.without_launcher(notes)
    for watch in (stdin_use.begin, env_reads.begin):
        with suppress(Exception):
            watch(notes)
    for name in [name for name in PATCHES if name in sys.modules]:
        with suppress(Exception):
            PATCHES[name](sys.modules[name], notes)
    sys.meta_path.insert(0, _After(notes))
