"""The role of an exception: a rank's own error, the echo of a lost peer, or an end caused by the launcher.

The class and the place where it was raised decide. A message decides only if all of it is one that PyTorch's
communication prints: a loose word (`timeout`, `socket`, `peer`) in another class's message does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from dtdebug_taxonomy.model.ranks import Frame
from dtdebug_taxonomy.stacks.frames import is_library
from dtdebug_taxonomy.text.lazy_re import lazy_re

Role = Literal["own", "peer", "launcher"]
"""own: an error of this rank's program; peer: another rank was lost, late or in another collective; launcher: ended by
the launcher or its user, or the launcher's summary of other processes' failures."""

_MOST = 2_000
_TYPE = lazy_re(r"(?:(?:[A-Za-z_]\w{0,100}|<locals>)(?:\.|::)){0,10}[A-Za-z_]\w{0,100}")
_OF_CHILD = frozenset({
    "AlreadyDisplayedError", "ChildFailedError", "CompositeError", "ProcessExitedException", "ProcessRaisedException",
})  # fmt: skip
_LAUNCHER = frozenset({*_OF_CHILD, "KeyboardInterrupt", "SignalException"})
_PEER = frozenset({
    "DistBackendError", "DistError", "DistNetworkError", "DistQueueEmptyError", "DistStoreError",
    "EnforceNotMet", "HorovodInternalError", "HostsUpdatedInterrupt", "IoException", "RendezvousClosedError",
    "RendezvousConnectionError", "RendezvousGracefulExitError", "RendezvousTimeoutError",
})  # fmt: skip
_PEER_HOME = lazy_re(r"(?:torch|c10d?|gloo|horovod)(?:\.|::)|$")
"""Modules of these classes; a program may have a class of the same name. A notebook prints no module."""
_SUMMARY = lazy_re(
    r"(?:RuntimeError|Exception): (?:Engine core (?:initiali[sz]ation|proc\S{0,40}) |Engine process failed to start"
    r"|WorkerProc initiali[sz]ation failed due to an exception|EngineCore encountered an issue"
    r"|Worker failed with error .{0,300}, please check"
    r"|.{0,200}\b[Ss]ee (?:the )?(?:root cause|stack trace)\b.{0,9}above)"
    r"|\S{0,60}EngineDeadError\b"
    r"|FatalError: `Termination signal` is detected by the operating system"
    r"|(?:subprocess\.)?CalledProcessError: Command '\[.{0,200}\b(?:python[\d.]{0,5}|torchrun|accelerate|deepspeed)'"
)
"""Exceptions of a parent that only report that its child failed, or where that is printed; most of an inference
engine. Source: https://github.com/vllm-project/vllm/blob/main/vllm/v1/executor/multiproc_executor.py Paddle prints
its launcher's signal to a rank in this form: https://github.com/PaddlePaddle/Paddle/issues/72655"""
_CALLED = lazy_re(r"(?:\w{1,60}: ')?On WorkerInfo\(id=(\d{1,7}), name=")
"""Message of torch.distributed.rpc for an exception of the called worker, at the caller and at the worker.
Source: https://github.com/pytorch/pytorch/blob/main/torch/distributed/rpc/internal.py (_run_function)"""
_TENSORFLOW = lazy_re(
    r"tensorflow\.\S{0,100}errors_impl\.(?:Aborted|Cancelled|DeadlineExceeded|Unavailable)Error$"
    r"|jax\w{0,10}\.\S{0,100}(?:Xla|Jax)RuntimeError: (?:ABORTED|DEADLINE_EXCEEDED|UNAVAILABLE):"
)
_OWN_START = lazy_re(
    r"The server socket (?:has failed to|cannot)|The IPv[46] network addresses of .{1,300} cannot be retrieved"
)
"""Failures of the rank's own host: a port in use, an unknown host name."""
_OWN_ARGUMENT = lazy_re(r"\[enforce fail at [^\]\s]{0,300}?gloo/\w{1,40}\.(?:cc|h):\d{1,6}\]")
"""Arguments of this rank that gloo's collectives reject before anything is sent: not its `transport/`."""
_NCCL = lazy_re(
    r"NCCL (?:error in: [^\n]{1,300}?, |error: )"
    r"(?P<code>invalid usage|invalid argument|internal error|unhandled (?:cuda|system) error)\b"
    r"[^;\n]{0,200}(?:; last error: (?P<last>[^\n]{1,500}))?"
)
"""NCCL's result as c10d raises it, and NCCL's last error as a rank's agent stores it: printed, it is on later lines.
Source: https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/NCCLUtils.cpp"""
_NCCL_LOST = lazy_re(r"(?i)connect|remote|clos|timed? ?out|unreachable|no route|reset by|recv|send")
"""NCCL's last error if another rank, or the connection to it, failed."""
_NCCL_UNLIKE = lazy_re(r"message truncated|mismatch in collective")
"""NCCL's last error if the calls of two ranks do not match."""
_SAID = lazy_re(
    r"\[(?:enforce fail at )?[^\]\s]{0,300}?(?:gloo/\S{1,200}|pair|unbound_buffer|buffer|context|device|loop)"
    r"\.(?:cc|h):\d{1,6}\]"
    r"|\[?\.{0,2}[^\]\s]{0,300}ProcessGroup(?:Gloo|NCCL|UCC|Wrapper|MPI)\.[ch]pp:\d{1,6}\]"
    r"|\[(?:Rank|PG )[^\]]{1,300}\]:? .{0,200}(?:onitoredBarrier|atchdog|collective operation)"
    r"|Rank \d{1,7} (?:successfully reached|failed to pass|timed out in) ?monitoredBarrier"
    r"|(?:NCCL (?:communicator (?:was aborted|encountered error)|error in: |Error \d{1,2}: )|ncclRemoteError)"
    r"|Detected mismatch between collectives on ranks"
    r"|DDP expects same model across all ranks.{1,80} inconsistent 0 params"  # the numbers were never exchanged
    r"|Gloo connectFullMesh failed with \["
    r"|(?:wait|Wait|Socket) ?[Tt]imeout(?:$| after \d| for)|Timeout waiting for key: "
    r"|Application timeout caused pair closure"
    r"|Monitored ?[Bb]arrier encountered error|No ranks successfully processed in monitoredBarrier"
    r"|Some NCCL operations have failed or timed out|ProcessGroup\w{0,20} (?:has been|was) (?:aborted|shut)"
    r"|Process group (?:has been|was) (?:aborted|destroyed)|Horovod has been shut ?down"
    r"|Timed out (?:waiting \d{1,12} ?ms|initializing process group|waiting for clients)"
    r"|The client socket has (?:failed|timed out)"
)
"""Beginning of messages of PyTorch's communication."""
_LOST = lazy_re(
    r"(?:\[?Errno \d{1,3}\]? ?)?(?:Connection (?:closed|reset|refused|aborted)(?: by (?:remote )?(?:peer|host))?"
    r"|Broken pipe|Connection timed out|Transport endpoint is not connected|Socket [Tt]imeout|unable to read"
    r"|failed to recv.{0,80})\.?$"
)
"""Message of the operating system about a lost connection, without other text."""
_CONNECTION = frozenset({
    "BrokenPipeError", "ConnectionAbortedError", "ConnectionRefusedError", "ConnectionResetError", "EOFError",
    "RuntimeError", "TimeoutError", "OSError",
})  # fmt: skip
_COMMUNICATES = lazy_re(
    r"[/\\](?:torch[/\\](?:distributed|autograd|nn[/\\]parallel|_tensor)|horovod|deepspeed[/\\](?:comm|runtime)|mpi4py)"
    r"[/\\.]"
)


def role_of(exception: str, frames: Sequence[Frame] = ()) -> Role:
    """Return the role of `Class: message`, raised at the end of `frames` (innermost last; empty if unknown)."""
    text = exception[:_MOST].strip()
    found = _TYPE.match(text)
    if found is None:
        return "own"
    home, name = _split_class(found[0])
    message = text[found.end() :].removeprefix(":").strip()
    if name in _LAUNCHER:
        return "launcher"
    if raised_by_user(frames):
        return "own"
    if is_summary(text):
        return "launcher"
    if called_worker(message) is not None:
        return "peer"
    if name in _PEER and _PEER_HOME.match(home):
        return "own" if _OWN_START.match(message) or _refused_by_nccl(message) else "peer"
    if _TENSORFLOW.match(found[0]) or _TENSORFLOW.match(text):
        return "peer"
    if name == "RuntimeError" and _SAID.match(message):
        return "own" if _OWN_ARGUMENT.match(message) or _refused_by_nccl(message) else "peer"
    return "peer" if name in _CONNECTION and _LOST.match(message) and _in_communication(frames) else "own"


def called_worker(message: str) -> int | None:
    """Return the rank of the worker that raised it if the message is a remote call's; else None."""
    found = _CALLED.match(message)
    return int(found[1]) if found else None


def is_summary(exception: str) -> bool:
    """True if it only reports that another process failed, without that process's exception."""
    return _SUMMARY.match(exception) is not None


def nccl_said(exception: str) -> str:
    """Return NCCL's result and last error of an exception of c10d, as `invalid usage: Duplicate GPU ...`; else ""."""
    found = _NCCL.search(exception[:_MOST])
    if found is None:
        return ""
    return f"NCCL {found['code']}" + (f": {found['last'].strip()}" if found["last"] else "")


def _refused_by_nccl(message: str) -> bool:
    """True if NCCL rejected the call, or this rank's device or host failed: no other rank had to be lost."""
    if message.startswith("CUDA error: "):  # as its watchdog sees an error of a kernel
        return True
    found = _NCCL.match(message)
    if found is None:
        return False
    last = found["last"] or ""
    if found["code"].startswith("invalid"):
        return not _NCCL_UNLIKE.search(last)
    return bool(last) and not _NCCL_LOST.search(last)  # without a last error, these may also be a lost connection


def reports_child(exception: str) -> bool:
    """True if it reports another process's failure, and so does not show when its own process ended."""
    found = _TYPE.match(exception)
    return is_summary(exception) or (found is not None and _split_class(found[0])[1] in _OF_CHILD)


def loses_peer(exception: str, frames: Sequence[Frame] = ()) -> bool:
    """True if the exception reports a lost, late or diverging peer, and not an error of this rank."""
    return bool(exception) and role_of(exception, frames) == "peer"


def raised_by_user(frames: Sequence[Frame]) -> bool:
    """True if the innermost frame is a `raise` or `assert` of the program itself, which then wrote the message."""
    if not frames or is_library(frames[-1].file):
        return False
    return frames[-1].code.startswith(("raise ", "assert "))


def _split_class(qualified: str) -> tuple[str, str]:
    """Split a qualified class into module and name: `torch.distributed.` and `DistStoreError`."""
    at = max(qualified.rfind(".") + 1, qualified.rfind("::") + 2 if "::" in qualified else 0)
    return qualified[:at], qualified[at:]


def _in_communication(frames: Sequence[Frame]) -> bool:
    """True if the stack below the program's innermost own line goes through communication, or is unknown."""
    if not frames:
        return True
    for frame in reversed(frames):
        if not is_library(frame.file):
            return False
        if _COMMUNICATES.search(frame.file):
            return True
    return False
