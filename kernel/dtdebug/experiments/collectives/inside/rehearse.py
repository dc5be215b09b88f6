"""Rehearses one rank: records its collectives, and computes their results without the other ranks.

Broadcasts of a rehearsed rank are kept for those rehearsed after it; other ranks' inputs are assumed to equal its own.
If the program reads a value from the result of a collective, that line is noted: the branch it takes is unknown.
"""

from __future__ import annotations

import atexit
import importlib
import os
import resource
import zlib
from pathlib import Path
from typing import Any

import msgspec

from dtdebug.experiments.collectives.inside import call_sites, contracts, dispatcher_hook, fake_groups, other_device
from dtdebug.experiments.collectives.inside.record import call_key

_SHARED = 16 << 20
"""Maximum bytes of a broadcast kept for other ranks."""
_LINES = 256
"""Maximum number of lines whose calls are held against contracts."""
_TAKES = frozenset(("aten::_local_scalar_dense", "aten::equal", "aten::nonzero", "aten::is_nonzero"))
_encode = msgspec.json.Encoder().encode


def begin(told: dict[str, Any], torch: Any) -> None:
    """Start the rehearsal; if that fails, exit, since the program must not run as a normal rank."""
    try:
        _begin(told, torch)
    except Exception as error:
        raise SystemExit(f"the rehearsal can't begin: {error}") from None


def _begin(told: dict[str, Any], torch: Any) -> None:
    dispatcher_hook.install(torch)
    rank, world = fake_groups.my_environment()
    fake_groups.prepare(torch, rank, world)
    if not torch.cuda.is_available():
        other_device.pretend(torch)
    actor = Actor(Path(str(told["folder"])), rank, torch)
    dispatcher_hook.instead(actor.play)
    atexit.register(actor.finish)


class Actor:
    """Replacement of every collective of the program, without the other ranks."""

    def __init__(self, folder: Path, rank: int, torch: Any) -> None:
        self._folder, self._rank, self._torch = folder, rank, torch
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        self._file = os.open(folder / f"calls-{rank}.jsonl", flags, 0o600)
        self._pid, self._counts = os.getpid(), dict[tuple[Any, ...], int]()
        self._taint = _taint(torch, self._takes)
        self._taken: set[tuple[str, int]] = set()
        self._watching = False
        self._held: dict[tuple[str, int], tuple[str, str] | None] = {}
        """Line that made a collective -> the demand that it breaks, and advice."""

    def play(self, call: dispatcher_hook.OwnCall) -> Any:
        """Record a call and return its result."""
        if not self._watching:
            self._watching = True
            self._taint.__enter__()
        key = call_key(call)
        os.write(self._file, _encode([call.number, *key]) + b"\n")
        if len(self._held) < _LINES and call.site() not in self._held:
            self._held[call.site()] = contracts.broken_here(self._rank)
        with self._torch.no_grad():
            self._give(call)
        for tensor in call.outputs:
            self._taint.mark(tensor)
        return fake_groups.answer(call, self._torch)

    def finish(self) -> None:
        """Write the lines that read values and the resources used, which also shows that the program ended."""
        if os.getpid() != self._pid:
            return
        usage = resource.getrusage(resource.RUSAGE_SELF)
        broken = [[*place, *found] for place, found in self._held.items() if found is not None]
        told = {
            "taken": sorted(self._taken),
            "broken": broken,
            "memory": usage.ru_maxrss << 10,
            "cpu": usage.ru_utime + usage.ru_stime,
        }
        (self._folder / f"end-{self._rank}.json").write_bytes(_encode(told))

    def _takes(self) -> None:
        self._taken.add(call_sites.here())

    def _give(self, call: dispatcher_hook.OwnCall) -> None:
        group, op = call.group, call.op
        outputs, inputs = call.outputs, call.inputs
        if op in ("broadcast_", "scatter_"):
            self._from_root(call)
        elif op.startswith("recv"):
            for tensor in outputs:
                tensor.zero_()
        elif op != "reduce_":
            _others_alike(op, group.rank, call.args, (outputs, inputs))

    def _from_root(self, call: dispatcher_hook.OwnCall) -> None:
        group, root = call.group, int(call.value("root_rank"))
        key = (group.ranks, group.ordinal)
        number = self._counts[key] = self._counts.get(key, 0) + 1
        source = group.ranks[root] if root < len(group.ranks) else root
        name = f"given-{source}-{zlib.crc32(_encode(key))}-{number}"
        path = self._folder / f"{name}.bin"
        if group.rank == root:
            if call.op == "broadcast_" and sum(t.numel() * t.element_size() for t in call.inputs) <= _SHARED:
                from dtdebug.experiments.collectives.inside.record import raw

                temporary = path.with_suffix(f".{self._rank}")
                temporary.write_bytes(b"".join(bytes(chunk) for t in call.inputs for chunk in raw(t, self._torch)))
                temporary.replace(path)
            elif call.op == "scatter_" and call.inputs:
                for out, mine in zip(call.outputs, call.inputs[root:], strict=False):
                    _copy(out, mine)
            return
        data = path.read_bytes() if call.op == "broadcast_" and path.exists() else b""
        for tensor in call.outputs:
            size = tensor.numel() * tensor.element_size()
            if size and len(data) >= size:
                value = self._torch.frombuffer(bytearray(data[:size]), dtype=self._torch.uint8)
                tensor.detach().copy_(value.view(tensor.dtype).view(tensor.shape))
                data = data[size:]
            elif not tensor.dtype.is_floating_point:  # its earlier contents are unknown, too
                tensor.zero_()


def _others_alike(op: str, rank: int, args: Any, tensors: tuple[list[Any], list[Any]]) -> None:
    """Set the outputs as if all ranks had this rank's inputs; a sum equals their mean."""
    outputs, inputs = tensors
    if op in ("allgather_", "gather_", "allgather_coalesced_"):
        pairs = [(out, mine) for outs, mine in zip(args[0], inputs, strict=False) for out in outs]
    elif op == "reduce_scatter_":
        pairs = [(out, many[rank]) for out, many in zip(outputs, args[1], strict=False)]
    else:
        pairs = list(zip(outputs, inputs, strict=False))
    for out, mine in pairs:
        if "reduce_scatter" in op and op != "reduce_scatter_":
            _copy(out, mine.reshape(-1)[rank * out.numel() : (rank + 1) * out.numel()])
        elif "gather" in op or "alltoall" in op or op == "reduce_scatter_":
            _repeat(out, mine)


def _copy(out: Any, mine: Any) -> None:
    if out.numel() == mine.numel():
        out.detach().copy_(mine.detach().reshape(out.shape))


def _repeat(out: Any, mine: Any) -> None:
    flat, own = out.detach().view(-1), mine.detach().reshape(-1)
    if own.numel() and flat.numel() % own.numel() == 0:
        flat.view(-1, own.numel()).copy_(own.expand(flat.numel() // own.numel(), -1).clone())


def _taint(torch: Any, takes: Any) -> Any:
    """Return a dispatch mode that tracks tensors derived from the results of collectives."""
    base: Any = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode
    weak: Any = importlib.import_module("torch.multiprocessing.reductions").StorageWeakRef

    class Taint(base):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self._seen: dict[int, Any] = {}

        def mark(self, tensor: Any) -> None:
            storage = _storage(tensor)
            if storage is not None and storage._cdata not in self._seen:  # noqa: SLF001 - its address
                # a weak reference keeps the address from being reused, but not the data
                self._seen[storage._cdata] = weak(storage)  # noqa: SLF001
                if len(self._seen) > 1 << 14:
                    self._seen.pop(next(iter(self._seen)))

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            tainted = any(self._has(tensor) for tensor in dispatcher_hook.flat([*args, *(kwargs or {}).values()]))
            if tainted and func._schema.name in _TAKES:  # noqa: SLF001
                takes()
            result = func(*args, **(kwargs or {}))
            if tainted:
                for tensor in dispatcher_hook.flat(list(result) if isinstance(result, (list, tuple)) else [result]):
                    self.mark(tensor)
            return result

        def _has(self, tensor: Any) -> bool:
            storage = _storage(tensor)
            return storage is not None and storage._cdata in self._seen  # noqa: SLF001

    return Taint()


def _storage(tensor: Any) -> Any:
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):  # sparse, or a subclass without storage
        return None
