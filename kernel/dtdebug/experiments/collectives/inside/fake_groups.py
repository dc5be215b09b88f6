"""Runs one rank alone in its process: groups of any size that send nothing, with made-up results of collectives."""

from __future__ import annotations

import functools
import importlib
import os
import sys
from typing import Any


def prepare(torch: Any, rank: int, world: int) -> None:
    """Let `init_process_group` create groups of that world without other processes.

    All groups use torch's own fake backend; a program that asks for the backend's name gets the name that it passed
    (https://github.com/pytorch/pytorch/blob/main/torch/testing/_internal/distributed/fake_pg.py).
    """
    c10d: Any = importlib.import_module("torch.distributed.distributed_c10d")
    fake: Any = importlib.import_module("torch.testing._internal.distributed.fake_pg")
    store, told = fake.FakeStore, list[str]()
    begin = c10d.init_process_group

    @functools.wraps(begin)
    def init_process_group(*args: Any, **kwargs: Any) -> Any:
        given = dict(zip(("backend", "init_method", "timeout"), args, strict=False)) | kwargs
        for name in ("init_method", "device_id", "rank", "world_size", "store"):
            given.pop(name, None)
        told.append(str(given.get("backend") or "gloo"))
        given["backend"] = "fake"
        return begin(**given, store=store(), rank=rank, world_size=world)

    further = c10d.new_group

    @functools.wraps(further)
    def new_group(*args: Any, **kwargs: Any) -> Any:
        given = dict(zip(("ranks", "timeout", "backend"), args, strict=False)) | kwargs
        given.update(dict.fromkeys(given.keys() & {"backend", "pg_options", "device_id"}))
        return further(**given)

    def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        chosen = group or c10d._get_default_group()  # noqa: SLF001 - as the original, which is for gloo's name alone
        chosen.monitored_barrier(timeout or c10d.default_pg_timeout, wait_all_ranks=wait_all_ranks)

    _replace(c10d.monitored_barrier, monitored_barrier)
    _replace(begin, init_process_group)
    _replace(further, new_group)
    torch.distributed.get_backend = lambda group=None: told[-1].rpartition(":")[2] if told else "gloo"
    for name in ("torch.multiprocessing", "torch.multiprocessing.spawn"):
        module: Any = importlib.import_module(name)
        if callable(getattr(module, "spawn", None)):
            module.spawn = functools.partial(_spawn_one, rank)


def _replace(old: Any, new: Any) -> None:
    """Replace a function in all modules of torch.distributed that import it by name, such as `device_mesh`."""
    called = str(old.__name__)
    for name, module in list(sys.modules.items()):
        if name.startswith("torch.distributed") and vars(module).get(called) is old:
            setattr(module, called, new)


def _spawn_one(rank: int, fn: Any, args: tuple[Any, ...] = (), *rest: Any, **options: Any) -> None:
    """Call the function that the program would start in many processes, for one rank."""
    fn(rank, *args)


def launcher_variables(rank: int, world: int, per_host: int) -> dict[str, str]:
    """Return the variables that a launcher would set."""
    hosts = -(-world // per_host)
    return {
        "RANK": str(rank), "WORLD_SIZE": str(world),
        "LOCAL_RANK": str(rank % per_host), "LOCAL_WORLD_SIZE": str(min(per_host, world)),
        "GROUP_RANK": str(rank // per_host), "GROUP_WORLD_SIZE": str(hosts), "NODE_RANK": str(rank // per_host),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500",
    }  # fmt: skip


def answer(call: Any, torch: Any) -> Any:
    """Return the operator's result after it has ended, as torch's callers expect it."""
    if not call.returns:
        return None
    outputs = call.args[0] if call.args else None
    values: list[Any] = []
    for kind in call.returns:
        if "Tensor" in kind:
            values.append(outputs)
        else:
            future = torch.futures.Future()
            future.set_result(call.outputs)
            values.append(_work_maker(torch)(future).boxed())
    return values[0] if len(values) == 1 else tuple(values)


@functools.cache
def _work_maker(torch: Any) -> Any:
    return sys.modules["torch._C._distributed_c10d"]._create_work_from_future  # noqa: SLF001 - has no other name


def my_environment() -> tuple[int, int]:
    """Return the rank and number of ranks from the launcher's variables."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
