"""Flight recorder of this process: status, entries and dumps, if the installed torch has them.

All names are private to torch and looked up each time: a version without them has no recorder, which is not an error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

import msgspec


class Status(msgspec.Struct, frozen=True):
    """Progress of a process group."""

    last_enqueued_collective: int = -1
    last_completed_collective: int = -1


class Entry(msgspec.Struct, frozen=True):
    """A recorded operation."""

    pg_id: int = -1
    process_group: tuple[str, str] = ("", "")
    collective_seq_id: int | None = None
    profiling_name: str = ""
    input_sizes: list[list[int]] = []
    output_sizes: list[list[int]] = []
    input_dtypes: list[str] = []
    time_created_ns: int = 0
    state: str = ""
    retired: bool = False
    is_p2p: bool = False

    @property
    def open(self) -> bool:
        """True if it has not ended: gloo reports that by `retired` alone."""
        return not self.retired and self.state != "completed"


class RecorderTrace(msgspec.Struct, frozen=True):
    """Status by the number that this process gave the group, and the entries, oldest first."""

    pg_status: dict[str, Status] = {}
    entries: list[Entry] = []


_decode = msgspec.json.Decoder(RecorderTrace, strict=False).decode  # numbers of the status are strings


def trace(*, entries: bool) -> RecorderTrace:
    """Return the recorder's contents; empty without a recorder."""
    data = json(entries=entries)
    return _decode(data) if data else RecorderTrace()


def json(*, entries: bool = True) -> bytes:
    """Return the recorder's own JSON, without stacks; empty without a recorder."""
    dump = _function("_dump_nccl_trace_json", "_dump_fr_trace_json")
    return bytes(dump(entries, False)) if dump else b""


def dump() -> bytes:
    """Return the recorder's pickle with all entries and their stacks; empty without a recorder."""
    function = _function("_dump_nccl_trace", "_dump_fr_trace")
    if function is None:
        return b""
    with _no_inductor():
        try:
            return bytes(function(True, True, False))
        except TypeError:  # the first versions took no arguments
            return bytes(function())


@contextmanager
def _no_inductor() -> Iterator[None]:
    """Keep torch from importing its compiler, which takes seconds, to check a stack for compiled code."""
    torch: Any = sys.modules.get("torch")
    if torch is None or "_inductor" in vars(torch):
        yield
        return
    torch._inductor = stand_in = _StandIn("torch._inductor")  # noqa: SLF001 - where torch looks
    try:
        yield
    finally:
        if vars(torch).get("_inductor") is stand_in:  # and not imported meanwhile
            del torch._inductor  # noqa: SLF001


class _StandIn(ModuleType):
    """Stand-in without compiled code; any other attribute comes from the real module."""

    def __getattr__(self, name: str) -> Any:
        if name == "codecache" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(import_module(self.__name__), name)


def _function(of_nccl: str, of_all: str) -> Callable[..., bytes] | None:
    """Return the recorder's function; NCCL has its own recorder."""
    c10d: Any = sys.modules.get("torch._C._distributed_c10d")
    found = getattr(c10d, of_nccl, None) if _has_nccl() else None
    return found or getattr(c10d, of_all, None)


def _has_nccl() -> bool:
    world: Any = getattr(sys.modules.get("torch.distributed.distributed_c10d"), "_world", None)
    return any("nccl" in str(backend) for backend in list(getattr(world, "pg_backend_config", {}).values()))
