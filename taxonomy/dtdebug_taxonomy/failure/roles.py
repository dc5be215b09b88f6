"""The role of an exception: a rank's own error, the echo of a lost peer, or the end that a launcher made.

The class and the place where it was raised decide. A message decides only if the whole of it is one that PyTorch's
communication prints: a loose word (`timeout`, `socket`, `peer`) in another class's message is of no account.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from dtdebug_taxonomy.frames import is_library
from dtdebug_taxonomy.ranks import Frame

Role = Literal["own", "peer", "launcher"]
"""own: what this rank's program did; peer: another rank was lost, late or in another collective; launcher: ended by
the launcher or by its user, or the launcher's summary of other processes' failures."""

_MOST = 2_000
_TYPE = re.compile(r"(?:(?:[A-Za-z_]\w{0,100}|<locals>)(?:\.|::)){0,10}[A-Za-z_]\w{0,100}")
_OF_CHILD = frozenset({"ChildFailedError", "ProcessExitedException", "ProcessRaisedException"})
_LAUNCHER = frozenset({*_OF_CHILD, "KeyboardInterrupt", "SignalException"})
_PEER = frozenset({
    "DistBackendError", "DistError", "DistNetworkError", "DistQueueEmptyError", "DistStoreError",
    "EnforceNotMet", "HorovodInternalError", "HostsUpdatedInterrupt", "IoException", "RendezvousClosedError",
    "RendezvousConnectionError", "RendezvousGracefulExitError", "RendezvousTimeoutError",
})  # fmt: skip
_PEER_HOME = re.compile(r"(?:torch|c10d?|gloo|horovod)(?:\.|::)|$")
"""Modules that these classes are of; a program may have a class of the same name. A notebook gives no module."""
_SUMMARY = re.compile(
    r"(?:RuntimeError|Exception): (?:Engine core (?:initiali[sz]ation|proc\S{0,40}) |Engine process failed to start"
    r"|WorkerProc initiali[sz]ation failed due to an exception|EngineCore encountered an issue"
    r"|Worker failed with error .{0,300}, please check"
    r"|.{0,200}\b[Ss]ee (?:the )?(?:root cause|stack trace)\b.{0,9}above)"
    r"|\S{0,60}EngineDeadError\b"
    r"|FatalError: `Termination signal` is detected by the operating system"
    r"|(?:subprocess\.)?CalledProcessError: Command '\[.{0,200}\b(?:python[\d.]{0,5}|torchrun|accelerate|deepspeed)'"
)
"""What a parent raises that says only that its child has failed, or where that stands; most of an inference engine.
Source: https://github.com/vllm-project/vllm/blob/main/vllm/v1/executor/multiproc_executor.py
Paddle prints the signal by which its launcher ends a rank so: https://github.com/PaddlePaddle/Paddle/issues/72655"""
_CALLED = re.compile(r"(?:\w{1,60}: ')?On WorkerInfo\(id=(\d{1,7}), name=")
"""How torch.distributed.rpc raises at the caller what the called worker raised, and how that one prints it.
Source: https://github.com/pytorch/pytorch/blob/main/torch/distributed/rpc/internal.py (_run_function)"""
_TENSORFLOW = re.compile(
    r"tensorflow\.\S{0,100}errors_impl\.(?:Aborted|Cancelled|DeadlineExceeded|Unavailable)Error$"
    r"|jax\w{0,10}\.\S{0,100}(?:Xla|Jax)RuntimeError: (?:ABORTED|DEADLINE_EXCEEDED|UNAVAILABLE):"
)
_OWN_START = re.compile(
    r"The server socket (?:has failed to|cannot)|The IPv[46] network addresses of .{1,300} cannot be retrieved"
)
"""What the rank's own host refuses: a port in use, a name that nobody knows."""
_OWN_ARGUMENT = re.compile(r"\[enforce fail at [^\]\s]{0,300}?gloo/\w{1,40}\.(?:cc|h):\d{1,6}\]")
"""What gloo's collectives refuse of this rank's own arguments, before anything is sent: not its `transport/`."""
_NCCL = re.compile(
    r"NCCL (?:error in: [^\n]{1,300}?, |error: )"
    r"(?P<code>invalid usage|invalid argument|internal error|unhandled (?:cuda|system) error)\b"
    r"[^;\n]{0,200}(?:; last error: (?P<last>[^\n]{1,500}))?"
)
"""NCCL's result as c10d raises it; and its last words, as a rank's agent keeps them: printed, they are lines below.
Source: https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/NCCLUtils.cpp"""
_NCCL_LOST = re.compile(r"(?i)connect|remote|clos|timed? ?out|unreachable|no route|reset by|recv|send")
"""NCCL's last words where another rank, or the way to it, was what failed."""
_NCCL_UNLIKE = re.compile(r"message truncated|mismatch in collective")
"""And where two ranks' calls did not fit together."""
_SAID = re.compile(
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
"""How messages of PyTorch's communication begin."""
_LOST = re.compile(
    r"(?:\[?Errno \d{1,3}\]? ?)?(?:Connection (?:closed|reset|refused|aborted)(?: by (?:remote )?(?:peer|host))?"
    r"|Broken pipe|Connection timed out|Transport endpoint is not connected|Socket [Tt]imeout|unable to read"
    r"|failed to recv.{0,80})\.?$"
)
"""What the operating system says of a lost connection, and nothing besides."""
_CONNECTION = frozenset({
    "BrokenPipeError", "ConnectionAbortedError", "ConnectionRefusedError", "ConnectionResetError", "EOFError",
    "RuntimeError", "TimeoutError", "OSError",
})  # fmt: skip
_COMMUNICATES = re.compile(
    r"[/\\](?:torch[/\\](?:distributed|autograd|nn[/\\]parallel|_tensor)|horovod|deepspeed[/\\](?:comm|runtime)|mpi4py)"
    r"[/\\.]"
)


def role_of(exception: str, frames: Sequence[Frame] = ()) -> Role:
    """The role of `Class: message`, raised where `frames` (innermost last) end; none if that is not known."""
    text = exception[:_MOST].strip()
    found = _TYPE.match(text)
    if found is None:
        return "own"
    home, name = _parted(found[0])
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
    """The rank of the worker that raised it, where the message is a remote call's; else None."""
    found = _CALLED.match(message)
    return int(found[1]) if found else None


def is_summary(exception: str) -> bool:
    """It only says that another process has failed, in place of what that one raised."""
    return _SUMMARY.match(exception) is not None


def nccl_said(exception: str) -> str:
    """NCCL's result and last words of what c10d raised, as `invalid usage: Duplicate GPU detected ...`; else empty."""
    found = _NCCL.search(exception[:_MOST])
    if found is None:
        return ""
    return f"NCCL {found['code']}" + (f": {found['last'].strip()}" if found["last"] else "")


def _refused_by_nccl(message: str) -> bool:
    """NCCL refused the call, or this rank's device or host failed: no other rank had to be lost for that."""
    if message.startswith("CUDA error: "):  # as its watchdog meets what a kernel has done
        return True
    found = _NCCL.match(message)
    if found is None:
        return False
    last = found["last"] or ""
    if found["code"].startswith("invalid"):
        return not _NCCL_UNLIKE.search(last)
    return bool(last) and not _NCCL_LOST.search(last)  # without last words these are also those of a lost connection


def reports_child(exception: str) -> bool:
    """It says that another process has failed, and so nothing of how long its own one went on."""
    found = _TYPE.match(exception)
    return is_summary(exception) or (found is not None and _parted(found[0])[1] in _OF_CHILD)


def loses_peer(exception: str, frames: Sequence[Frame] = ()) -> bool:
    """The exception says that a peer was lost, late or elsewhere, not what was wrong here."""
    return bool(exception) and role_of(exception, frames) == "peer"


def raised_by_user(frames: Sequence[Frame]) -> bool:
    """The innermost frame is a `raise` (or an assertion) in the program's own code: its words are the program's."""
    if not frames or is_library(frames[-1].file):
        return False
    return frames[-1].code.startswith(("raise ", "assert "))


def _parted(qualified: str) -> tuple[str, str]:
    """Module and name of a class, `torch.distributed.` and `DistStoreError`."""
    at = max(qualified.rfind(".") + 1, qualified.rfind("::") + 2 if "::" in qualified else 0)
    return qualified[:at], qualified[at:]


def _in_communication(frames: Sequence[Frame]) -> bool:
    """Below the program's own innermost line the stack goes through communication; unknown counts as so."""
    if not frames:
        return True
    for frame in reversed(frames):
        if not is_library(frame.file):
            return False
        if _COMMUNICATES.search(frame.file):
            return True
    return False
