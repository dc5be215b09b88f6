"""Runs a copy of a sharded model as one process would: its collectives have one member, and its tensors are whole."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_GROUPED = ("c10d", "_c10d_functional", "symm_mem")


class CommunicatesError(Exception):
    """The model itself communicates, which one process can't repeat."""


@functools.cache
def whole_tensor() -> Any:
    """Return a class of tensors that answer as a DTensor does which is not sharded."""
    torch: Any = sys.modules["torch"]

    class Whole(torch.Tensor):  # type: ignore[misc]
        def to_local(self, **_: Any) -> Any:
            return self

        def full_tensor(self, **_: Any) -> Any:
            return self

        def redistribute(self, *_: Any, **__: Any) -> Any:
            return self

    return Whole


@contextmanager
def one_process(group: list[str] | None = None) -> Iterator[list[str]]:
    """Refuse collectives, or let sums over a named group be those of one member; yield the names of what was summed."""
    summed: list[str] = []
    with _mode(frozenset(group or ()), summed), _no_sharding(active=group is not None):
        yield summed


@contextmanager
def _no_sharding(*, active: bool) -> Iterator[None]:
    """Let what the program declares a part of a DTensor be a whole tensor."""
    module: Any = sys.modules.get("torch.distributed.tensor")
    if not active or module is None:
        yield
        return
    whole, kind = whole_tensor(), module.DTensor
    before = kind.__dict__["from_local"]
    kind.from_local = staticmethod(lambda tensor, *_, **__: tensor.as_subclass(whole))
    try:
        yield
    finally:
        kind.from_local = before


def _mode(group: frozenset[str], summed: list[str]) -> Any:
    mode: Any = sys.modules["torch.utils._python_dispatch"].TorchDispatchMode

    class OneProcess(mode):  # type: ignore[misc]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = str(function)
            if not name.startswith(_GROUPED):
                return function(*args, **(kwargs or {}))
            short = name.split(".")[1]
            if group and short in {"all_reduce", "all_reduce_", "wait_tensor", "_wrap_tensor_autograd"}:
                if short.startswith("all_reduce"):
                    _require(short, str(args[2]), str(args[1]) == "sum", group)
                    summed.append(short)
                return args[0]
            if group and short == "allreduce_":
                process_group: Any = sys.modules["torch"]._C._distributed_c10d.ProcessGroup.unbox(args[1])  # noqa: SLF001
                _require(short, process_group.group_name, True, group)
                summed.append(short)
                return args[0], sys.modules["torch"]._C._distributed_c10d.FakeWork().boxed()  # noqa: SLF001
            raise CommunicatesError(short)

    return OneProcess()


def _require(short: str, name: str, ok: bool, group: frozenset[str]) -> None:
    if not ok or name not in group:
        raise CommunicatesError(short)
