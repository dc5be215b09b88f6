"""Finds the collective or point-to-point operation that the main thread waits in."""

from __future__ import annotations

import dis
import re
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from types import FrameType
from typing import Any

from dtdebug.live.agent.recorder_status import Entry
from dtdebug.process.thread_frames import from_locals
from dtdebug_taxonomy.model.ranks import Operation

_OPERATIONS = frozenset(
    ("broadcast", "all_reduce", "all_reduce_coalesced", "reduce", "all_gather", "all_gather_into_tensor",
     "all_gather_single", "_all_gather_base", "all_gather_coalesced", "gather", "scatter", "reduce_scatter",
     "reduce_scatter_tensor", "reduce_scatter_single", "_reduce_scatter_base", "all_to_all", "all_to_all_single",
     "barrier", "monitored_barrier", "send", "recv", "isend", "irecv", "batch_isend_irecv")
)  # fmt: skip
_COMPREHENSIONS = frozenset(("<listcomp>", "<genexpr>", "<setcomp>", "<dictcomp>"))
"""Frames that have the variables of the function around them only from Python 3.12 on, if at all."""
_POINT_TO_POINT = frozenset(("send", "recv", "isend", "irecv", "batch_isend_irecv"))
_WAITING = re.compile(r"/torch/(?:distributed|nn/parallel)/|/torch/autograd/graph\.py\Z")
_BETWEEN = re.compile(r"/torch/(?:_ops|_compile|_library/\w+|autograd/\w+|utils/_contextlib)\.py\Z")
"""Files from which C code waits for an operation that was begun earlier, and files that may come in between."""
_WAITS = re.compile(r"(?:wait\w{0,40}|synchronize|backward|item|tolist|cpu|numpy)\Z")
"""C functions that wait."""
_LOADS = frozenset(("LOAD_METHOD", "LOAD_ATTR", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_FAST", "LOAD_DEREF"))
_CODE, _BATCH = 1 << 16, 64
"""Maximum bytes of a function's code, and operations of a batch, that are searched."""
_TENSORS = ("tensor", "input", "input_tensor", "output", "output_tensor")
_DTYPES = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long",
    "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool",
}  # fmt: skip
"""Names of the types in the flight recorder."""


def pending(frames: list[FrameType], entries: Sequence[Entry]) -> Operation | None:
    """Return the operation, by the innermost frame of torch.distributed, or by the recorder if C code waits for one."""
    for frame in reversed(frames):
        code = frame.f_code
        if code.co_name in _OPERATIONS and code.co_filename.endswith("torch/distributed/distributed_c10d.py"):
            return from_locals(frame, partial(_operation_from_call, code.co_name, entries))
    if frames and (_in_torch(frames) or _WAITS.match(called_function(frames[-1]))):
        # The oldest one: later ones can't end before it does.
        opened = [e for e in entries if e.open]
        oldest = next((e for e in opened if not e.is_p2p), None)
        if oldest is not None:
            return _operation_from_entry(oldest)
        inner = next((f for f in reversed(frames) if f.f_code.co_name not in _COMPREHENSIONS), frames[-1])
        return from_locals(inner, _batch) or next(map(_operation_from_entry, opened), None)
    return None


def called_function(frame: FrameType) -> str:
    """Return the name of the function that the frame has called, even if the call spans lines; "" if unknown.

    An asynchronous operation that is not waited for yet stays open, so a call of something else must not count.
    """
    code = frame.f_code
    if len(code.co_code) > _CODE or frame.f_lasti < 0:
        return ""
    first, last, left, right = next(islice(code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    best, name = (0, -1), ""
    for i in dis.get_instructions(code):
        p = i.positions
        if p is None or i.opname not in _LOADS or (p.lineno, p.col_offset) != (first, left):
            continue
        end = (p.end_lineno or 0, p.end_col_offset or 0)
        if best < end < (last or 0, right or 0):
            best, name = end, str(i.argval)
    return name


def _in_torch(frames: Sequence[FrameType]) -> bool:
    """True if the innermost frames are of torch.distributed or of autograd, with nothing inside that computes."""
    for frame in reversed(frames):
        file = frame.f_code.co_filename.replace("\\", "/")
        if _WAITING.search(file):
            return True
        if not _BETWEEN.search(file):
            return False
    return False


def _batch(local: Mapping[str, Any]) -> Operation | None:
    """Return a batch of sends and receives among local variables, which gloo's recorder does not keep."""
    kind = getattr(sys.modules.get("torch.distributed.distributed_c10d"), "P2POp", None)
    for value in local.values():
        if kind is not None and type(value) is list and value and all(type(op) is kind for op in value[:_BATCH]):
            peers = {op.peer for op in value[:_BATCH]}
            names = {getattr(op.op, "__name__", "") for op in value[:_BATCH]}
            name = names.pop() if len(names) == 1 else "batch_isend_irecv"
            peer = next(iter(peers)) if len(peers) == 1 else None
            op = name if name in _POINT_TO_POINT else "batch_isend_irecv"
            return Operation(op=op, peer=peer, peers=tuple(sorted(peers)) if peer is None else ())
    return None


def _operation_from_call(op: str, entries: Sequence[Entry], local: Mapping[str, Any]) -> Operation:
    """Return an operation by its arguments; the recorder adds number, sizes and time."""
    world: Any = sys.modules["torch.distributed.distributed_c10d"]._world  # noqa: SLF001 - the only source
    group = local.get("group")
    group = group if group in world.pg_names else world.default_pg
    name, tag = str(world.pg_names.get(group, "")), local.get("tag")
    members: Mapping[int, int] = world.pg_group_ranks.get(group, {})
    newest = next((e for e in reversed(entries) if e.process_group[0] == name and e.open), None)
    if newest is None or op in _POINT_TO_POINT or newest.is_p2p:
        tensor = next((shape for key in _TENSORS if (shape := _shape(local.get(key)))), None)
        called = Operation(op=op, group=name)
        if tensor:
            called = Operation(op=op, group=name, input_sizes=(tensor[0],), dtypes=(tensor[1],))
    else:
        called = _operation_from_entry(newest)
    return Operation(
        op=op,
        group=name,
        seq=called.seq,
        peer=_peer(local, members),
        tag=tag if op in _POINT_TO_POINT and isinstance(tag, int) else None,
        input_sizes=called.input_sizes,
        output_sizes=called.output_sizes,
        dtypes=called.dtypes,
        since=called.since,
    )


def _operation_from_entry(entry: Entry) -> Operation:
    return Operation(
        op=entry.profiling_name.rpartition(":")[2].split(" ")[0],
        group=entry.process_group[0],
        seq=entry.collective_seq_id,
        input_sizes=tuple(map(tuple, entry.input_sizes)),
        output_sizes=tuple(map(tuple, entry.output_sizes)),
        dtypes=tuple(entry.input_dtypes),
        since=entry.time_created_ns / 1e9 or None,
    )


def _peer(local: Mapping[str, Any], members: Mapping[int, int]) -> int | None:
    """Return the global rank of the root or the other side, which may be given as its place in the group."""
    for key in ("src", "dst", "peer"):
        if isinstance(local.get(key), int):
            return int(local[key])
    for key in ("group_src", "group_dst", "group_peer"):
        if isinstance(local.get(key), int):
            return next((rank for rank, place in members.items() if place == local[key]), None)
    return None


def _shape(value: Any) -> tuple[tuple[int, ...], str] | None:
    """Return sizes and type of a plain tensor; a subclass might run the user's code."""
    torch: Any = sys.modules.get("torch")
    if type(value) is not getattr(torch, "Tensor", ()):
        return None
    dtype = str(value.dtype).rpartition(".")[2]
    return tuple(value.shape), _DTYPES.get(dtype, dtype)
