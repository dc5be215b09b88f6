"""Types for ranks: the state of each, and the verdict on which one the others wait for.

A part that could not be read keeps its default; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from dtdebug_taxonomy.model.account import Account, Branch
from dtdebug_taxonomy.model.claims import Claim
from dtdebug_taxonomy.model.rank_ranges import ranges, say, spell
from dtdebug_taxonomy.model.waiting import Waiting

__all__ = [
    "EXITED",
    "FINISHED",
    "MOST_RANKS",
    "PROCESS",
    "TWICE",
    "Alternative",
    "CallSite",
    "CollectiveRef",
    "Frame",
    "Group",
    "GroupRef",
    "Kind",
    "Operation",
    "RankState",
    "SurvivedException",
    "Verdict",
    "ranges",
    "say",
    "spell",
]  # fmt: skip

MOST_RANKS = 1 << 18
"""Maximum number of ranks of a job: larger numbers in records are ignored."""

FINISHED = "finished"
"""Fact of a state: the final record of the rank's agent reports no failure."""
PROCESS = "name of the process"
"""Fact of a rank that multiprocessing started: the name above the traceback that it prints."""
TWICE = "processes with this rank"
"""Fact of a state: the other live processes that have its rank."""
EXITED = "ended by the call"
"""Fact of an ended rank whose stack is where its program ended itself with this call: `sys.exit(2)`."""

Kind = Literal[
    "skipped", "extra", "replaced", "wrong_size", "wrong_dtype", "wrong_root",
    "not_arrived", "dead", "left", "gil_held", "fabric", "not_understood", "none",
]  # fmt: skip
"""Kind of the culprit's behaviour.

skipped: left out a collective; extra: called one that the others do not; replaced: called a different one, or the
same ones in a different order; wrong_size, wrong_dtype, wrong_root: the right one with different arguments;
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
    """Name that all members share: `0` for the default group of PyTorch."""
    desc: str = ""
    ranks: tuple[int, ...] = ()
    """Global ranks."""
    backend: str = ""
    enqueued: int | None = None
    """Number of operations that this rank has begun; on gloo including point-to-point ones."""
    completed: int | None = None
    timeout: float | None = None
    """Seconds."""


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """Call of a collective or of a point-to-point operation."""

    op: str
    """Name without the backend: `all_reduce`, `send`."""
    group: str = ""
    seq: int | None = None
    """Sequence number of collectives in the group, 1 for the first."""
    peer: int | None = None
    """Global rank of the root (`src` or `dst`) or of the peer."""
    peers: tuple[int, ...] = ()
    """Global ranks of the peers in a batch of sends and receives."""
    tag: int | None = None
    """Tag that matches a send with its receive."""
    input_sizes: tuple[tuple[int, ...], ...] = ()
    output_sizes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()
    since: float | None = None
    """Seconds since the epoch."""


class SurvivedException(msgspec.Struct, frozen=True):
    """Exception that a rank outlives: it has ended another thread, or the main thread is still handling it."""

    thread: str
    """Name of the thread; empty for the main thread."""
    exception: str
    """First line of the exception."""
    stack: tuple[Frame, ...] = ()
    """Stack at which it was raised, innermost last."""


class RankState(msgspec.Struct, frozen=True, kw_only=True):
    """State of one rank at one moment."""

    rank: int | None = None
    world_size: int | None = None
    local_rank: int | None = None
    local_world_size: int | None = None
    host: str = ""
    pid: int | None = None
    parent: int | None = None
    """Process id of the parent: ranks of two runs have different ones."""
    backend: str = ""
    initialized: bool = False
    """True if a default process group exists."""
    groups: tuple[Group, ...] = ()
    pending: Operation | None = None
    """Operation that the main thread waits in, if any."""
    waiting: Waiting | None = None
    """Wait of the main thread, at any level: a file lock, a child process, a collective, the GIL."""
    beside: tuple[Waiting, ...] = ()
    """Informative waits of the rank's other threads and child processes."""
    broken: tuple[SurvivedException, ...] = ()
    """First threads that have ended by an exception."""
    handling: SurvivedException | None = None
    """Exception that the main thread is handling: it is in an `except`, a `finally` or the end of a `with`."""
    stack: tuple[Frame, ...] = ()
    """Stack of the main thread, innermost last."""
    native: tuple[str, ...] = ()
    """Native frames below it, innermost last."""
    step: int | None = None
    device_memory: tuple[int, int] | None = None
    """(allocated, reserved) bytes on the current device, if CUDA is initialised already."""
    time: float | None = None
    """Time of reading, in seconds since the epoch by the rank's own clock."""
    clock_offset: float = 0.0
    """Seconds to add to the rank's clock to get the collector's."""
    exception: str = ""
    """First line of the exception that ended the main thread, if any."""
    accounts: tuple[Account, ...] = ()
    """Accounts of that exception, and of those that ended other threads."""
    branches: tuple[Branch, ...] = ()
    """Tests and loops of the program's functions on the stack, the innermost function first."""
    exit_code: int | None = None
    """Exit code of the ended process; None while it lives, or if its end was not observed."""
    signal: str = ""
    """Name of the signal that ended it, such as `SIGKILL`."""
    alive: bool | None = None
    gil_held: bool = False
    """True if transports that need the interpreter did not answer, and others did."""
    roads: dict[str, str] = {}
    """Transport -> `ok`, or why it did not answer and after how many seconds."""
    versions: dict[str, str] = {}
    environment: dict[str, str] = {}
    system: dict[str, str] = {}
    """The process as the operating system shows it: state, system call, share of a CPU, memory events; for an
    unreadable value the reason: `needs ...`."""
    facts: dict[str, str] = {}
    """Other properties that differ between ranks in failures: data-set length, batches, paths, libraries."""


class CallSite(msgspec.Struct, frozen=True):
    """Place of a rank in the user's own code."""

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
    """Another interpretation of the same records, and what would refute it."""

    kind: Kind
    culprits: tuple[int, ...]
    because: str
    refute: str = ""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Verdict on ranks: which, what and where. The culprit is the rank that the others wait for."""

    kind: Kind
    culprits: tuple[int, ...] = ()
    waiting: tuple[int, ...] = ()
    group: GroupRef | None = None
    collective: CollectiveRef | None = None
    sites: tuple[CallSite, ...] = ()
    """Culprits first, then waiting ranks; at most one site per rank."""
    confidence: float = 0.0
    """0 to 1: how well the records exclude other interpretations."""
    summary: str = ""
    """The whole verdict in one sentence."""
    claims: tuple[Claim, ...] = ()
    """Statements about ranks, each with its record; strongest first."""
    evidence: tuple[str, ...] = ()
    """The claims as sentences, and statements without a claim."""
    alternatives: tuple[Alternative, ...] = ()
    stragglers: tuple[int, ...] = ()
    """Ranks that always arrive last without hanging."""
    open: bool = False
    """True if the ranks live and no record proves that they can't go on: they may only be slow."""

    @property
    def names_ranks(self) -> bool:
        """True if it names failing or waiting ranks; an exception without a known rank does not count."""
        return self.kind != "none" and bool(self.culprits or self.waiting)


OPEN = "Slow, or hanging: "
"""Beginning of the summary of a verdict without proof."""


def in_doubt(summary: str) -> str:
    """Return the summary of a verdict as that of an open one."""
    return f"{OPEN}{summary[:1].lower()}{summary[1:]}"


def of_ranks(states: Iterable[RankState], ranks: Iterable[int]) -> list[RankState]:
    """Return the states of these ranks, in time linear in both."""
    wanted = frozenset(ranks)
    return [s for s in states if s.rank in wanted]
