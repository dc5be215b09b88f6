"""Tables of facts that change with versions: names of variables, options, keys and arguments.

The JSON files are made by `tests/facts/generate.py`; the TOML files beside them are written by hand. Each table is read
when it is first asked for.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TypeVar

import msgspec

from dtdebug_taxonomy.facts.tables import (
    AccelerateConfig,
    Arguments,
    DeepSpeedConfig,
    Environment,
    Family,
    Launcher,
    Launchers,
    Meaning,
    Nccl,
    NnModule,
    PublicNames,
    Replacement,
    TorchDistributed,
    TorchEnv,
    Vendor,
)

HOME = Path(__file__).parent

T = TypeVar("T")
_lock = Lock()
"""Two threads that are the first to read the same type end the process: msgspec learns a type without a lock."""


def _json(name: str, kind: type[T]) -> T:
    with _lock:
        return msgspec.json.decode((HOME / f"{name}.json").read_bytes(), type=kind)


def _toml(name: str, kind: type[T]) -> T:
    with _lock:
        return msgspec.toml.decode((HOME / f"{name}.toml").read_bytes(), type=kind)


@lru_cache(maxsize=1)
def nccl() -> Nccl:
    """The variables of NCCL, by version."""
    return _json("nccl", Nccl)


@lru_cache(maxsize=1)
def nccl_meanings() -> dict[str, Meaning]:
    """What the documented variables of NCCL do."""
    return _toml("nccl_meanings", dict[str, Meaning])


@lru_cache(maxsize=1)
def vendor_meanings() -> dict[str, Meaning]:
    """What variables of engines, runtimes, networks and devices do, each with the address of its documentation."""
    vendors = _toml("vendor_meanings", dict[str, Vendor]).values()
    return {n: _with_address(row, v) for v in vendors for n, row in v.variables.items()}


@lru_cache(maxsize=1)
def name_meanings() -> dict[str, Meaning]:
    """What functions, classes and methods of frameworks do, by the names of `public_names`."""
    vendors = _toml("name_meanings", dict[str, Vendor]).values()
    return {n: _with_address(row, v) for v in vendors for n, row in v.names.items()}


def _with_address(row: Meaning, vendor: Vendor) -> Meaning:
    return msgspec.structs.replace(row, url=row.url or vendor.url)


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The variables that frameworks, engines, networks and devices' runtimes read."""
    return _json("environment", Environment)


def wrong_of_family(name: str) -> str:
    """What goes wrong with names of this form; empty where nothing is known."""
    return next((wrong for pattern, wrong in families() if pattern.fullmatch(name)), "")


@lru_cache(maxsize=1)
def families() -> list[tuple[re.Pattern[str], str]]:
    """Patterns of names, and what goes wrong with those that they fit; the first that fits holds."""
    rows = _toml("families", dict[str, tuple[Family, ...]])["family"]
    return [(re.compile(row.pattern), row.wrong) for row in rows]


@lru_cache(maxsize=1)
def torch_env() -> TorchEnv:
    """The variables of torch, and renamed ones."""
    return _json("torch_env", TorchEnv)


@lru_cache(maxsize=1)
def launchers() -> dict[str, Launcher]:
    """The launchers: torchrun, deepspeed, accelerate launch, horovodrun, srun, sbatch."""
    made = _json("torchrun", Launchers).launchers | _json("launchers", Launchers).launchers
    return made | _toml("slurm", dict[str, Launcher])


@lru_cache(maxsize=1)
def deepspeed_config() -> DeepSpeedConfig:
    """The keys of the DeepSpeed configuration."""
    return _json("deepspeed_config", DeepSpeedConfig)


@lru_cache(maxsize=1)
def accelerate_config() -> AccelerateConfig:
    """The keys of Accelerate's configuration."""
    return _json("accelerate_config", AccelerateConfig)


@lru_cache(maxsize=1)
def lightning_trainer() -> Arguments:
    """The arguments of Lightning's `Trainer`."""
    return _json("lightning_trainer", Arguments)


@lru_cache(maxsize=1)
def transformers_arguments() -> Arguments:
    """The arguments of Transformers' `TrainingArguments` that concern distribution."""
    return _json("transformers_arguments", Arguments)


@lru_cache(maxsize=1)
def replacements() -> dict[str, dict[str, Replacement]]:
    """Table name (`lightning_trainer`, `transformers_arguments`) -> removed argument -> what to write instead."""
    return _toml("replacements", dict[str, dict[str, Replacement]])


@lru_cache(maxsize=1)
def nn_module() -> NnModule:
    """Attributes of modules and wrappers."""
    return _json("nn_module", NnModule)


@lru_cache(maxsize=1)
def torch_distributed() -> TorchDistributed:
    """The functions of torch.distributed."""
    return _json("torch_distributed", TorchDistributed)


@lru_cache(maxsize=1)
def public_names() -> PublicNames:
    """The names that frameworks export."""
    return _json("public_names", PublicNames)
