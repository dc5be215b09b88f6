"""Waits and activities of a rank's threads as data, and their wording."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from dtdebug_taxonomy.model.claims import Record

WaitKind = Literal[
    "collective", "store", "rendezvous", "lock", "pipe", "socket", "child", "subprocess", "loader", "thread", "rpc",
    "sleep", "events", "gil", "disk", "cpu", "stopped",
]  # fmt: skip
"""Kind of wait or activity.

collective: an operation among ranks, including point-to-point ones; store: a key of the job's store; rendezvous: the
other processes of the job; lock: a lock of a file; pipe: a pipe or FIFO; socket: a network or local connection; child:
a process that multiprocessing started; subprocess: another program; loader: a worker of a data loader; thread: another
thread of its own; rpc: the answer to a remote call; sleep: a timer; events: an event that lets a task of asyncio's
event loop continue. These wait; the others do not: gil: it is holding the GIL; disk: the kernel reads or writes for
it; cpu: it is computing; stopped: a signal or a debugger has stopped its process.
"""


class Waiting(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Wait or activity of a thread. Unknown fields keep their defaults and are not stated."""

    kind: WaitKind
    record: Record
    path: str = ""
    """File, pipe, or peer of the connection, such as `10.0.0.1:2049`."""
    pid: int | None = None
    """Process that is waited for: the lock's holder, the child, the worker, the other end of the pipe."""
    rank: int | None = None
    """Rank of that process, if it has one."""
    command: str = ""
    """Command line of that process."""
    file: str = ""
    line: int = 0
    function: str = ""
    """Place of that process, or of the other thread: for example of a data loader's worker in the data set."""
    op: str = ""
    """Operation or function, if its name is informative: `all_reduce`, `TCPStore.get`, `_sre.SRE_Pattern.match`."""
    thread: str = ""
    """Name of the thread that is in it; empty for the main thread."""
    words: str = ""
    """Other content of the record: `not yet connected`, `no process has its other end`, `waits in turn for ...`."""
    since: float | None = None
    """Seconds since the epoch."""


ACTIVE: frozenset[WaitKind] = frozenset(("gil", "disk", "cpu", "stopped"))
"""Kinds that do not wait for any process."""


REMOTE = "it runs a call of another rank"
ALONE = "no other thread of its program runs"
"""Wording for a thread of torch.distributed.rpc that answers a call."""
UNTIL_SET = frozenset(("get", "wait", "multi_get"))
"""Calls of a store that wait for a key: https://docs.pytorch.org/docs/stable/distributed.html#distributed-key-value-store"""


def phrase(w: Waiting) -> str:
    """Return the words after `waits` or, for active kinds, `is`: `for the lock of /x, which rank 0 is holding`."""
    return _PHRASES[w.kind](w) + (f" ({w.words})" if w.words else "")


def holder_words(w: Waiting) -> str:
    """Return the other process in words: `rank 0 (process 12: python train.py)`; empty if unknown."""
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
