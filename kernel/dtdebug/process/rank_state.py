"""State of this process as a rank, read from loaded modules; nothing is imported."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from typing import Any

from dtdebug_taxonomy.model.launch_variables import LOCAL_RANK, LOCAL_WORLD_SIZE, RANK, WORLD_SIZE, read_number
from dtdebug_taxonomy.model.ranks import RankState

_VERSIONED = (
    "torch",
    "tensorflow",
    "keras",
    "horovod",
    "deepspeed",
    "colossalai",
    "megatron",
    "lightning",
    "pytorch_lightning",
    "accelerate",
    "transformers",
    "jax",
    "mpi4py",
    "ray",
)


def versions() -> dict[str, str]:
    """Return the versions of Python and of the imported frameworks."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in _VERSIONED:
        module = sys.modules.get(name)
        version = getattr(module, "__version__", None) if module else None
        if version:
            found[name] = str(version)
    cuda = getattr(getattr(sys.modules.get("torch"), "version", None), "cuda", None)
    if cuda:
        found["cuda"] = str(cuda)
    return found


def rank_state(variables: Mapping[str, str] = os.environ, *, memory: bool = True) -> RankState | None:
    """Return rank, world size and backend of this process, or None if it is not a rank.

    Starts no collective and initialises no device: only local attributes are read. `memory` asks the device's
    allocator, which waits while another thread allocates: not for a process that may hang.
    """
    distributed: Any = sys.modules.get("torch.distributed")
    # While torch is being imported, or if built without it, the module exists and the function does not.
    initialized = bool(getattr(distributed, "is_initialized", bool)())
    world = read_number(variables, WORLD_SIZE)
    if not initialized and world is None:
        return None
    return RankState(
        rank=distributed.get_rank() if initialized else read_number(variables, RANK),
        world_size=distributed.get_world_size() if initialized else world,
        local_rank=read_number(variables, LOCAL_RANK),
        local_world_size=read_number(variables, LOCAL_WORLD_SIZE),
        host=socket.gethostname(),
        pid=os.getpid(),
        backend=str(distributed.get_backend()) if initialized else "",
        initialized=initialized,
        device_memory=_device_memory() if memory else None,
    )


def _device_memory() -> tuple[int, int] | None:
    """Return (allocated, reserved) bytes, but only if the user's program has initialised CUDA itself."""
    cuda: Any = sys.modules.get("torch.cuda")
    if cuda is None or not cuda.is_initialized():
        return None
    return int(cuda.memory_allocated()), int(cuda.memory_reserved())
