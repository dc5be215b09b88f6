"""What a thread of a rank waits in, or what it does in place of waiting, as data; and that in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from dtdebug_taxonomy.claims import Record

WaitKind = Literal[
    "collective", "store", "rendezvous", "lock", "pipe", "socket", "child", "subprocess", "loader", "thread", "rpc",
    "sleep", "events", "gil", "disk", "cpu", "stopped",
]  # fmt: skip
"""What a thread is in.

collective: an operation among ranks, the point-to-point ones too; store: a key of the job's store; rendezvous: the
other processes of the job; lock: a lock of a file; pipe: a pipe or FIFO; socket: a network or local connection; child:
a process that multiprocessing made; subprocess: another program; loader: a worker of a data loader; thread: another
thread of its own; rpc: the answer to a remote call; sleep: a timer; events: what lets a task of asyncio's event loop go
on. These wait; the others do not: gil: it is holding the GIL; disk: the kernel reads or writes for it; cpu: it is
computing; stopped: a signal or a debugger has stopped its process.
"""


class Waiting(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a thread is in. What is not known stays at its default and is not said."""

    kind: WaitKind
    record: Record
    path: str = ""
    """The file, the pipe, or the other end of the connection, as `10.0.0.1:2049`."""
    pid: int | None = None
    """The process that is waited for: who is holding the lock, the child, the worker, the other end of the pipe."""
    rank: int | None = None
    """That process's rank, where it is one."""
    command: str = ""
    """That process's command line."""
    file: str = ""
    line: int = 0
    function: str = ""
    """Where that process, or the other thread, is: a data loader's worker in the data set, say."""
    op: str = ""
    """The operation or function, where its name tells: `all_reduce`, `TCPStore.get`, `_sre.SRE_Pattern.match`."""
    thread: str = ""
    """Name of the thread that is in it; empty for the main thread."""
    words: str = ""
    """What else the record shows: `not yet connected`, `no process has its other end`, `waits in turn for ...`."""
    since: float | None = None
    """Seconds since the epoch."""


ACTIVE: frozenset[WaitKind] = frozenset(("gil", "disk", "cpu", "stopped"))
"""Kinds that are no waiting for somebody."""


REMOTE = "it runs a call of another rank"
ALONE = "no other thread of its program runs"
"""The words of a thread of torch.distributed.rpc that answers a call."""
UNTIL_SET = frozenset(("get", "wait", "multi_get"))
"""Calls of a store that wait for a key: https://docs.pytorch.org/docs/stable/distributed.html#distributed-key-value-store"""


def phrase(w: Waiting) -> str:
    """What follows `waits` or, for the kinds that do not wait, `is`: `for the lock of /x, which rank 0 is holding`."""
    return _PHRASES[w.kind](w) + (f" ({w.words})" if w.words else "")


def holder_words(w: Waiting) -> str:
    """The other process in words: `rank 0 (process 12: python train.py)`; empty if none is known."""
    if w.pid is None and w.rank is None:
        return ""
    process = f"process {w.pid}" if w.pid is not None else ""
    said = f"{process}: {w.command}" if process and w.command else process
    if w.rank is None:
        return f"process {w.pid}{f' ({w.command})' if w.command else ''}"
    return f"rank {w.rank}{f' ({said})' if said else ''}"


def _place(w: Waiting) -> str:
    return f", which is at {w.file}:{w.line}{f' in {w.function}' if w.function else ''}" if w.file else ""


def _lock(w: Waiting) -> str:
    who = holder_words(w)
    what = f"the lock of {w.path}" if w.path else "a lock"
    how = f" in {w.op}" if w.op else ""
    return f"for {what}{how}{f', which {who} is holding' if who else ''}"


def _pipe(w: Waiting) -> str:
    who = holder_words(w)
    return f"in {w.op or 'a read'} of {w.path or 'a pipe'}{f', whose other end {who} has' if who else ''}"


def _socket(w: Waiting) -> str:
    who = holder_words(w)
    return f"for {w.path or 'the other end of a connection'}{f', which is {who}' if who else ''}"


def _store(w: Waiting) -> str:
    key = ", which returns once a rank has set the key" if w.op in UNTIL_SET else ""
    return f"for the job's store{f' in {w.op}' if w.op else ''}{key}"


def _process(what: str) -> Callable[[Waiting], str]:
    return lambda w: f"for {what}{f', {holder_words(w)}' if holder_words(w) else ''}{_place(w)}"


_PHRASES: dict[WaitKind, Callable[[Waiting], str]] = {
    "collective": lambda w: f"in {w.op or 'a collective'}",
    "store": _store,
    "rendezvous": lambda w: f"for the other processes of the job{f' in {w.op}' if w.op else ''}",
    "lock": _lock,
    "pipe": _pipe,
    "socket": _socket,
    "child": _process("a child process"),
    "subprocess": _process("another program"),
    "loader": _process("a worker of its data loader"),
    "thread": lambda w: f"for another of its threads{f' in {w.op}' if w.op else ''}{_place(w)}",
    "rpc": lambda w: f"for the answer to a remote call{f' in {w.op}' if w.op else ''}",
    "sleep": lambda w: f"in {w.op or 'a sleep'}",
    "events": lambda w: "in its event loop, where no task can go on",
    "gil": lambda w: f"holding the GIL{f' in {w.op}' if w.op else ''}",
    "disk": lambda w: f"in the kernel, reading or writing{f' {w.path}' if w.path else ''}",
    "cpu": lambda w: f"computing{f' in {w.op}' if w.op else ''}",
    "stopped": lambda w: f"stopped by {w.op or 'a signal'}",
}
