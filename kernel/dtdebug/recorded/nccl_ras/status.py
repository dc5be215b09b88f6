"""Types of what NCCL's RAS says of a job at one moment."""

from __future__ import annotations

import msgspec


class RasError(ValueError):
    """A text is no status of RAS, or a port does not answer as RAS does."""


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A rank of a communicator, and the process that has it."""

    rank: int | None = None
    """Rank in the communicator; None for a process whose rank is not said."""
    host: str = ""
    pid: int | None = None
    gpu: str = ""


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """Ranks of a communicator that have launched equally many operations of a kind, or have one status."""

    value: str
    """Number of operations, or the status."""
    number: int
    """Number of ranks."""
    members: tuple[Member, ...] = ()
    """Ranks that are named; RAS names only small groups."""


class Mismatch(msgspec.Struct, frozen=True, kw_only=True):
    """Difference between the ranks of a communicator."""

    what: str
    """Kind of operation, such as `AllReduce`; `` for all kinds together; `status`."""
    groups: tuple[Counted, ...]


class Communicator(msgspec.Struct, frozen=True, kw_only=True):
    """A communicator with something to say about it."""

    name: str
    """`#0-0`, or its hash."""
    size: int | None = None
    missing: tuple[Member, ...] = ()
    missing_number: int = 0
    mismatches: tuple[Mismatch, ...] = ()
    errors: tuple[str, ...] = ()
    """Errors in RAS' words."""
    failed: tuple[Member, ...] = ()
    """Ranks that report an error."""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """Status of a job."""

    version: str = ""
    communicators: tuple[Communicator, ...] = ()
    """Communicators with a finding; in JSON all."""
    number: int = 0
    """Number of communicators."""
    processes: int | None = None
    gpus: int | None = None
    nodes: int | None = None
    dead: tuple[Member, ...] = ()
    dead_number: int = 0
    silent: tuple[Member, ...] = ()
    """Processes that gave no data."""
    silent_number: int = 0
    flags: tuple[str, ...] = ()
    """Errors of the table of communicators: `MISMATCH`."""
    timeouts: int = 0
    watched: bool = False
    """True for the events of its monitoring mode, which has no list of communicators."""
    passed: tuple[str, ...] = ()
    """Checks of its diagnostics that report nothing."""
    issues: tuple[str, ...] = ()
    """Lines of its diagnostics about what may need a look."""
    unread: str = ""
    """Parts that were not understood: with any, no rank is cleared."""
