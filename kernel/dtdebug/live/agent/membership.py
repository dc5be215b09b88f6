"""Determines whether this process is a rank: by its environment, by its process group, or because it is joining one.

A rank's environment is inherited by its helpers (data-loader workers, tools): an armed rank marks its own with its
process id, so that helpers are not mistaken for that rank. Under Slurm and MPI a launcher has a rank's variables too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, MutableMapping
from pathlib import Path
from types import FrameType
from typing import Any

from dtdebug_taxonomy.model.launch_variables import RANK

MARK = "DTDEBUG_ARMED"
"""Environment variable: process id of the armed rank, and the values of the variables that name it."""
_LAUNCHERS = frozenset(
    ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch", "deepspeed.launcher.runner",
     "accelerate.commands.accelerate_cli", "deepspeed.launcher.launch", "horovod.runner.launch")
)  # fmt: skip
_LAUNCHER_SCRIPTS = frozenset(("torchrun", "accelerate", "accelerate-launch", "deepspeed", "horovodrun", "dtdebug"))


def is_named(variables: Mapping[str, str] = os.environ) -> bool:
    """True if the environment names this process a rank, and it is neither a rank's helper nor a launcher."""
    if variables.get("RANK", "").isdecimal():
        return not _is_helper(variables)
    by_cluster = any(variables.get(name, "").isdecimal() for name in RANK[1:])
    return by_cluster and not _is_helper(variables) and not _is_launcher()


def mark(variables: MutableMapping[str, str] = os.environ) -> None:
    """Mark the variables, so that processes which inherit them are not taken for the rank."""
    variables[MARK] = f"{os.getpid()}:{_identity(variables)}"


def default_group() -> Any:
    """Return the default process group, or None."""
    c10d: Any = sys.modules.get("torch.distributed.distributed_c10d")
    return getattr(getattr(c10d, "_world", None), "default_pg", None)


def joining(frames: Iterable[FrameType]) -> tuple[int | None, int | None] | None:
    """Return (rank, world size), each if known, if this stack is inside the set-up of the default process group."""
    for frame in frames:
        code = frame.f_code
        if code.co_name == "init_process_group" and code.co_filename.endswith("distributed_c10d.py"):
            found = frame.f_locals  # this frame ends soon, so it keeps nothing alive
            rank, world = found.get("rank"), found.get("world_size")
            return _valid_number(rank), _valid_number(world)
    return None


def _valid_number(value: object) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


def _identity(variables: Mapping[str, str]) -> str:
    return ",".join(variables.get(name, "") for name in (*RANK, "LOCAL_RANK"))


def _is_helper(variables: Mapping[str, str]) -> bool:
    pid, _, identity = variables.get(MARK, "").partition(":")
    return pid not in ("", str(os.getpid())) and identity == _identity(variables)


def _is_launcher() -> bool:
    main = sys.modules.get("__main__")
    name = getattr(getattr(main, "__spec__", None), "name", "")
    return name in _LAUNCHERS or Path(getattr(main, "__file__", None) or "").name in _LAUNCHER_SCRIPTS
