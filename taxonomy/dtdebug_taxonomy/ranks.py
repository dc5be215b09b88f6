"""The types of what is known of ranks: the state of each, and the verdict on which one the others wait for.

A part that could not be read stays at its default; nothing here is ever guessed.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from dtdebug_taxonomy.claims import Claim
from dtdebug_taxonomy.spelling import ranges, say, spell
from dtdebug_taxonomy.waiting import Waiting

__all__ = [
    "EXITED",
    "FINISHED",
    "MOST_RANKS",
    "PROCESS",
    "TWICE",
    "Alternative",
    "Broken",
    "CallSite",
    "CollectiveRef",
    "Frame",
    "Group",
    "GroupRef",
    "Kind",
    "Operation",
    "RankState",
    "Verdict",
    "ranges",
    "say",
    "spell",
]  # fmt: skip

MOST_RANKS = 1 << 18
"""Ranks of a job that is believed: what records claim is counted up to."""

FINISHED = "finished"
"""Fact of a state: the last words of the rank's agent know of no failure."""
PROCESS = "name of the process"
"""Fact of a rank that multiprocessing started: the name above the traceback that it prints."""
TWICE = "processes with this rank"
"""Fact of a state: the other living processes that have its rank."""
EXITED = "ended by the call"
"""Fact of an ended rank whose stack is where its program called this to end itself: `sys.exit(2)`."""

Kind = Literal[
    "skipped", "extra", "replaced", "wrong_size", "wrong_dtype", "wrong_root",
    "not_arrived", "dead", "left", "gil_held", "fabric", "not_understood", "none",
]  # fmt: skip
"""What the culprit did.

skipped: left out a collective; extra: called one that the others do not; replaced: called another one, or the
same ones in another order; wrong_size, wrong_dtype, wrong_root: the right one with other arguments than the rest;
not_arrived: alive, but elsewhere (busy, asleep, blocked); gil_held: alive, but a thread is holding the GIL;
dead: its process has ended by a failure; left: it has finished its program while others wait for it; fabric: all
arrived and none finished; not_understood: ranks are stuck and no record explains why; none: every rank was seen to
make progress.
"""


class Frame(msgspec.Struct, frozen=True):
    """One frame of a stack, innermost last."""

    file: str
    line: int
    function: str
    code: str = ""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """A process group as one of its members sees it."""

    name: str
    """The name that all members share: `0` for the default group of PyTorch."""
    desc: str = ""
    ranks: tuple[int, ...] = ()
    """Global ranks."""
    backend: str = ""
    enqueued: int | None = None
    """Operations that this rank has begun; on gloo point-to-point counts too."""
    completed: int | None = None
    timeout: float | None = None
    """Seconds."""


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a collective or of a point-to-point operation."""

    op: str
    """Its name without the backend: `all_reduce`, `send`."""
    group: str = ""
    seq: int | None = None
    """Sequence number of collectives in the group, 1 for the first."""
    peer: int | None = None
    """Global rank of the root (`src` or `dst`) or of the other side."""
    peers: tuple[int, ...] = ()
    """Global ranks of the other sides of a batch of sends and receives."""
    tag: int | None = None
    """By which a send and a receive find each other."""
    input_sizes: tuple[tuple[int, ...], ...] = ()
    output_sizes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()
    since: float | None = None
    """Seconds since the epoch."""


class Broken(msgspec.Struct, frozen=True):
    """An exception after which a rank lives on: it has ended another thread, or the main thread still handles it."""

    thread: str
    """Its name; empty of the main thread."""
    exception: str
    """Its first line."""
    stack: tuple[Frame, ...] = ()
    """Where it was raised, innermost last."""


class RankState(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one rank at one moment."""

    rank: int | None = None
    world_size: int | None = None
    local_rank: int | None = None
    local_world_size: int | None = None
    host: str = ""
    pid: int | None = None
    parent: int | None = None
    """Process id of the parent: ranks of two runs have two."""
    backend: str = ""
    initialized: bool = False
    """A default process group exists."""
    groups: tuple[Group, ...] = ()
    pending: Operation | None = None
    """The operation that the main thread waits in, if it is one."""
    waiting: Waiting | None = None
    """What the main thread is in, at every level: a file lock, a child process, a collective, the GIL."""
    beside: tuple[Waiting, ...] = ()
    """What other threads and child processes of the rank are in, where that tells something."""
    broken: tuple[Broken, ...] = ()
    """Threads that have ended by an exception, the first ones."""
    handling: Broken | None = None
    """The exception that the main thread is handling: it is in an `except`, a `finally` or the end of a `with`."""
    stack: tuple[Frame, ...] = ()
    """Main thread, innermost last."""
    native: tuple[str, ...] = ()
    """Native frames below it, innermost last."""
    step: int | None = None
    device_memory: tuple[int, int] | None = None
    """(allocated, reserved) bytes on the current device, if CUDA is initialised already."""
    time: float | None = None
    """When this was read, in seconds since the epoch by the rank's own clock."""
    clock_offset: float = 0.0
    """Seconds to add to the rank's clock to have the collector's."""
    exception: str = ""
    """First line of the exception that ended the main thread, if one did."""
    exit_code: int | None = None
    """Of the ended process; None while it lives or where nobody saw it end."""
    signal: str = ""
    """Name of the signal that ended it, such as `SIGKILL`."""
    alive: bool | None = None
    gil_held: bool = False
    """Roads that need the interpreter did not answer, others did."""
    roads: dict[str, str] = {}
    """How it was reached: road -> `ok`, or why it did not answer and after how many seconds."""
    versions: dict[str, str] = {}
    environment: dict[str, str] = {}
    system: dict[str, str] = {}
    """What the operating system shows of the process: state, system call, share of a CPU, memory events; for what may
    not be read, why: `needs ...`."""
    facts: dict[str, str] = {}
    """What else differs between ranks when something is wrong: data-set length, batches, paths, libraries."""


class CallSite(msgspec.Struct, frozen=True):
    """Where a rank is, in the user's own code."""

    rank: int
    file: str
    line: int
    function: str


class GroupRef(msgspec.Struct, frozen=True):
    """A process group by name and members."""

    name: str
    ranks: tuple[int, ...]


class CollectiveRef(msgspec.Struct, frozen=True):
    """A collective by operation and sequence number."""

    op: str
    seq: int | None


class Alternative(msgspec.Struct, frozen=True, kw_only=True):
    """Another reading of the same records, and what would tell the two apart."""

    kind: Kind
    culprits: tuple[int, ...]
    because: str
    refute: str = ""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Which rank, what, where: the culprit is the rank that the others wait for."""

    kind: Kind
    culprits: tuple[int, ...] = ()
    waiting: tuple[int, ...] = ()
    group: GroupRef | None = None
    collective: CollectiveRef | None = None
    sites: tuple[CallSite, ...] = ()
    """Culprits first, then those who wait; at most one for each rank."""
    confidence: float = 0.0
    """0 to 1: how far the records exclude other readings."""
    summary: str = ""
    """One sentence that says it all."""
    claims: tuple[Claim, ...] = ()
    """What is said of ranks, each with its record; the strongest first."""
    evidence: tuple[str, ...] = ()
    """The claims as sentences, and what has no claim yet."""
    alternatives: tuple[Alternative, ...] = ()
    stragglers: tuple[int, ...] = ()
    """Ranks that always arrive last without hanging."""

    @property
    def names_ranks(self) -> bool:
        """It says which ranks failed or wait: an exception of nobody knows which process is no sign of ranks."""
        return self.kind != "none" and bool(self.culprits or self.waiting)
