"""Determines what a thread waits in from its Python and native frames: operations, the store, locks, workers, threads.

Frames show where a thread is, not whether it is blocked there: only the operating system shows that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from dtdebug_taxonomy.model.claims import Record
from dtdebug_taxonomy.model.ranks import Frame, Operation
from dtdebug_taxonomy.model.waiting import Waiting, WaitKind
from dtdebug_taxonomy.stacks.frames import is_library

_C10D = "torch/distributed/distributed_c10d.py"
_OPERATION = re.compile(
    r"(?:send|recv|isend|irecv|batch_isend_irecv|barrier|monitored_barrier|broadcast\w{0,30}|all_reduce\w{0,30}"
    r"|reduce\w{0,30}|all_gather\w{0,30}|_all_gather_base|_reduce_scatter_base|gather\w{0,30}|scatter\w{0,30}"
    r"|all_to_all\w{0,30}|(?:send|recv)_object_list)\Z"
)
"""Functions of torch.distributed that begin an operation and may wait for it."""
_NAMED_GROUP = re.compile(
    r"\b(?:process_)?group ?= ?"
    r"([\w.]{1,60}(?:\[[\"']?[\w.]{1,40}[\"']?\]|\([\"']\w{1,40}[\"']\))?(?:\.\w{1,40}(?![\w(]))?)"
)
_DISTRIBUTED = "/torch/distributed/"
_WORLD = frozenset(("None", "group.WORLD", "dist.group.WORLD", "GroupMember.WORLD"))

_BY_FUNCTION: tuple[tuple[str, str, str], ...] = (
    ("torch/distributed/_functional_collectives.py", "all_reduce", "all_reduce"),
    ("torch/distributed/_functional_collectives.py", "all_gather_tensor all_gather_single", "all_gather_into_tensor"),
    ("torch/distributed/_functional_collectives.py", "reduce_scatter_tensor", "reduce_scatter_tensor"),
    ("torch/distributed/_functional_collectives.py", "all_to_all_single", "all_to_all_single"),
    ("torch/distributed/_functional_collectives.py", "broadcast", "broadcast"),
    ("torch/distributed/tensor/placement_types.py", "_to_replicate_tensor _to_replicate", "all_gather_into_tensor"),
    ("torch/distributed/tensor/placement_types.py", "_to_new_shard_dim", "all_to_all_single"),
    ("torch/distributed/tensor/placement_types.py", "_reduce_shard_tensor", "reduce_scatter_tensor"),
    ("torch/distributed/tensor/placement_types.py", "_reduce_shard_value", "reduce_scatter_tensor"),
    ("torch/distributed/tensor/placement_types.py", "_reduce_value", "all_reduce"),
    ("torch/distributed/tensor/placement_types.py", "_replicate_tensor", "broadcast"),
    ("torch/distributed/tensor/placement_types.py", "_shard_tensor", "scatter"),
    ("torch/distributed/tensor/_redistribute.py", "redistribute_local_tensor", "all_gather_into_tensor"),
    ("torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py", "foreach_all_gather", "all_gather_into_tensor"),
    ("torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py", "foreach_all_gather_copy_out",
     "all_gather_into_tensor"),
    ("torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py", "wait_for_unshard", "all_gather_into_tensor"),
    ("torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py", "foreach_reduce", "reduce_scatter_tensor"),
    ("torch/distributed/fsdp/_runtime_utils.py", "_unshard", "all_gather_into_tensor"),
    ("torch/distributed/fsdp/_runtime_utils.py", "_reduce_grad", "reduce_scatter_tensor"),
    ("torch/nn/parallel/distributed.py", "_sync_buffers _sync_module_buffers _sync_module_states", "broadcast"),
    ("torch/nn/parallel/distributed.py", "_distributed_broadcast_coalesced", "broadcast"),
    ("torch/nn/parallel/distributed.py", "_default_broadcast_coalesced", "broadcast"),
    ("torch/distributed/pipelining/schedules.py", "_wait_batch_p2p", "batch_isend_irecv"),
    ("torch/distributed/utils.py", "_sync_params_and_buffers _sync_module_states", "broadcast"),
    ("torch/distributed/utils.py", "_verify_param_shape_across_processes", "all_gather"),
    ("torch/nn/parallel/distributed.py", "_check_sync_bufs_post_fwd _check_global_requires_backward_grad_sync",
     "all_reduce"),
)  # fmt: skip
"""(end of the path, functions, the operation behind them); the innermost one counts."""

_NATIVE: tuple[tuple[str, str], ...] = (
    ("c10d::Reducer::finalize_backward", "all_reduce"),
    ("c10d::Reducer::", "all_reduce"),
    ("::RecvWork::wait", "recv"),
    ("::SendWork::wait", "send"),
    ("::monitoredBarrier", "monitored_barrier"),
    ("c10d::ops::", ""),
    ("c10d::Work::wait", ""),
    ("c10d::ProcessGroupNCCL::WorkNCCL", ""),
    ("c10d::wait_tensor", ""),
    ("gloo::transport::", ""),
    ("ncclGroupEnd", ""),
)
"""(part of a native frame, its operation); empty if only the Python frames name the operation."""
_LOCKS: tuple[tuple[str, WaitKind, str], ...] = (
    ("SemLock_acquire", "lock", "multiprocessing.Lock.acquire"),
    ("lock_PyThread_acquire_lock", "thread", "threading.Lock.acquire"),
    ("c10::ivalue::Future::wait", "thread", "torch.futures.Future.wait"),
)
"""(part of a native frame, kind of wait, its name in Python), if Python frames show nothing."""
_STORE = re.compile(r"c10d::(?:TCPStore|PrefixStore|FileStore|HashStore|Store)::(?P<call>\w{1,30})")
_JOINS = ("c10d::ProcessGroupGloo::ProcessGroupGloo", "gloo::rendezvous::", "ncclCommInitRank", "bootstrapInit")
_COMPUTES_AFTER = re.compile(r"/torch/(?:_ops|_library/\w+|autograd/\w+|utils/_contextlib|_compile)\.py\Z")
"""Files through which torch.distributed reaches C code: further frames of these change nothing."""

_PYTHON: tuple[tuple[str, str, WaitKind], ...] = (
    ("torch/utils/data/dataloader.py", "_try_get_data _get_data _next_data", "loader"),
    ("filelock/", "acquire _acquire", "lock"),
    ("portalocker/", "acquire lock", "lock"),
    ("fasteners/", "acquire acquire_read_lock acquire_write_lock", "lock"),
    ("torch/utils/file_baton.py", "wait", "lock"),
    ("subprocess.py", "wait communicate _wait _communicate _execute_child", "subprocess"),
    ("multiprocessing/popen_fork.py", "wait poll", "child"),
    ("multiprocessing/popen_spawn_posix.py", "wait poll", "child"),
    ("multiprocessing/pool.py", "wait get next join", "child"),
    ("multiprocessing/process.py", "join", "child"),
    ("torch/multiprocessing/spawn.py", "join", "child"),
    ("concurrent/futures/process.py", "shutdown", "child"),
    ("multiprocessing/queues.py", "get put", "child"),
    ("threading.py", "join _wait_for_tstate_lock wait acquire", "thread"),
    ("queue.py", "get put join", "thread"),
    ("concurrent/futures/_base.py", "result exception wait", "thread"),
    ("concurrent/futures/thread.py", "shutdown", "thread"),
    ("torch/distributed/rpc/api.py", "rpc_sync rpc_async remote shutdown _wait_all_workers _all_gather", "rpc"),
    ("torch/futures/__init__.py", "wait", "thread"),
    ("torch/distributed/elastic/rendezvous/", "next_rendezvous _perform run wait_for", "rendezvous"),
    ("torch/distributed/elastic/utils/store.py", "barrier synchronize get_all _try_detecting_missing_ranks", "store"),
    ("torch/distributed/rendezvous.py", "_create_c10d_store _env_rendezvous_handler _tcp_rendezvous_handler",
     "rendezvous"),
    (_C10D, "init_process_group _new_process_group_helper new_group _store_based_barrier new_subgroups", "rendezvous"),
    (_C10D, "split_group _store_based_barrier", "rendezvous"),
    ("ssl.py", "read recv recv_into do_handshake", "socket"),
    ("socket.py", "readinto accept create_connection getaddrinfo", "socket"),
    ("urllib3/util/connection.py", "create_connection", "socket"),
    ("asyncio/base_events.py", "run_forever run_until_complete _run_once", "events"),
    ("selectors.py", "select", "socket"),
)  # fmt: skip
"""(part of the path, functions, kind of wait); of the innermost library frames, the outermost."""
_LINE: tuple[tuple[re.Pattern[str], WaitKind], ...] = (
    (re.compile(r"\b(?:fcntl\.)?(?:flock|lockf)\("), "lock"),
    (re.compile(r"\bsleep\("), "sleep"),
    (re.compile(r"\.(?:recv|recv_into|accept|connect|sendall)\("), "socket"),
    (re.compile(r"\bos\.(?:wait|waitpid|wait3|wait4)\("), "child"),
    (re.compile(r"\bsignal\.(?:pause|sigwait\w{0,10})\("), "sleep"),
)
"""(call on the line of the innermost frame, kind of wait), for C functions, which have no Python frame."""
_GENERIC: frozenset[WaitKind] = frozenset(("socket", "thread"))
"""Kinds for which the layers above a frame are more specific: a pool's thread, a selector's child."""
_ROOTS = re.compile(
    r"(?:0x|_?Py[A-Z_]|cfunction|vectorcall|method_vectorcall|slot_tp|wrap_|type_call|object_|gc_|pybind11::"
    r"|_ctypes_|ffi_|_?start\Z|__libc|0?\Z)"
)
"""Native functions of the interpreter and of bindings, which identify nothing."""


def by_stack(stack: Sequence[Frame], native: Sequence[str] = (), record: Record | None = None) -> Waiting | None:
    """Return the wait of a thread with these frames, innermost last; None if they do not show it."""
    record = record or _record(stack, native)
    inside = _native(stack, native)
    if inside is not None:
        return msgspec.structs.replace(inside, record=record)
    op = operation(stack)
    found = _library(stack)
    if op is not None and (found is None or found[0] == "collective"):
        return Waiting(kind="collective", op=op.op, record=record)
    if found is not None:
        return Waiting(kind=found[0], op=found[1], record=record)
    if not stack:
        return None
    for pattern, kind in _LINE:
        if pattern.search(stack[-1].code):
            return Waiting(kind=kind, record=record, op=_sleep_name(native) if kind == "sleep" else "")
    return next(
        (Waiting(kind=k, op=op, record=record) for part, k, op in _LOCKS if any(part in n for n in native)), None
    )


def operation(stack: Sequence[Frame], native: Sequence[str] = ()) -> Operation | None:
    """Return the operation among ranks that a stack is in: by a function of torch.distributed, else by native frames.

    A stack that has left torch.distributed again, for example for a module's computation, is in none.
    """
    for frame in reversed(stack):
        file = frame.file.replace("\\", "/")
        if file.endswith(_C10D) and _OPERATION.match(frame.function):
            return Operation(op=_outer(stack, frame), group=_group(stack))
        for path, functions, op in _BY_FUNCTION:
            if file.endswith(path) and frame.function in functions.split():
                return Operation(op=op)
        if not (_COMPUTES_AFTER.search(file) or "/torch/distributed/" in file):
            break
    inside = _native(stack, native)
    return Operation(op=inside.op) if inside is not None and inside.kind == "collective" and inside.op else None


def _outer(stack: Sequence[Frame], frame: Frame) -> str:
    """Return the outer name of a composite operation: `all_gather_object`, not its `all_gather`."""
    name = frame.function
    for other in stack:
        if other.file.endswith("distributed_c10d.py") and _OPERATION.match(other.function):
            return other.function
        if other is frame:
            break
    return name


def _group(stack: Sequence[Frame]) -> str:
    inner = next((n for n in range(len(stack) - 1, -1, -1) if _DISTRIBUTED in stack[n].file.replace("\\", "/")), -1)
    caller = next((f for f in reversed(stack[: inner + 1]) if _DISTRIBUTED not in f.file.replace("\\", "/")), None)
    return named_group(caller.code) if caller is not None else ""


def named_group(code: str) -> str:
    """Return the group that a call names, as written there; empty for the group of all ranks."""
    found = _NAMED_GROUP.search(code)
    return "" if found is None or found[1] in _WORLD else found[1]


def _native(stack: Sequence[Frame], native: Sequence[str]) -> Waiting | None:
    """Return the wait by native frames, innermost last, or None."""
    record = _record(stack, native)
    joined = "\n".join(native)
    if any(part in joined for part in _JOINS):
        return Waiting(kind="rendezvous", op=_setup(stack), record=record)
    for name in native:  # the outermost is what the program called
        if found := _STORE.search(name):
            setup = _setup(stack)
            if setup:
                return Waiting(kind="rendezvous", op=setup, record=record)
            return Waiting(kind="store", op=found["call"].removeprefix("do").lower(), record=record)
    for part, op in _NATIVE:
        if part in joined:
            said = operation(stack)
            ddp = f"{op} of DistributedDataParallel's gradients" if "Reducer" in part else ""
            return Waiting(
                kind="collective", op=said.op if said else op, words=ddp and "DDP's gradients", record=record
            )
    return None


def _setup(stack: Sequence[Frame]) -> str:
    names = ("init_process_group", "new_group", "new_subgroups", "split_group", "init_device_mesh")
    return next((f.function for f in stack if f.function in names and is_library(f.file)), "")


def _library(stack: Sequence[Frame]) -> tuple[WaitKind, str] | None:
    """Return (kind, function) by the library frames below the user's innermost one, or None."""
    found: tuple[WaitKind, str] | None = None
    for frame in reversed(stack):
        file = frame.file.replace("\\", "/")
        if not is_library(file):
            break
        for path, functions, kind in _PYTHON:
            if (
                path in file if path.endswith("/") else file.endswith(f"/{path}")
            ) and frame.function in functions.split():
                if found is None or found[0] in _GENERIC or kind in {"loader", "lock", "rendezvous"}:
                    found = kind, "" if kind in {"loader", "subprocess", "child"} else frame.function
                break
    return found


def function_of_c(native: Sequence[str]) -> str:
    """Return the native function that Python called: the outermost one that is not part of the interpreter."""
    return next((name for name in native if not _ROOTS.match(name)), "")


def _sleep_name(native: Sequence[str]) -> str:
    return "time.sleep" if any("time_sleep" in name for name in native) else ""


def _record(stack: Sequence[Frame], native: Sequence[str]) -> Record:
    inner = stack[-1] if stack else Frame("", 0, "")
    if native:
        return Record(source="native", path=inner.file, line=inner.line, words=native[-1][:200])
    return Record(source="stack", path=inner.file, line=inner.line, words=inner.code or inner.function)
