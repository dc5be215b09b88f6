"""Types for front ends that show the ranks at one moment; texts are clean, short, and worded as in the terminal.

One form for both transports of a view to a front end: the kernel's control channel and the server next to it.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from dtdebug_taxonomy.model.answer import Answer
from dtdebug_taxonomy.model.ranks import Verdict

VERSION = 1

State = Literal["culprit", "waits", "runs", "silent", "gone"]
"""culprit: the others wait for it; waits: hangs in an operation; runs: neither; silent: alive but does not
answer; gone: its process has ended."""


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One rank."""

    rank: int | None = None
    state: State = "runs"
    step: int | None = None
    op: str = ""
    """Operation that it waits in, such as `all_reduce`."""
    seq: int | None = None
    """Sequence number of that operation in its group."""
    group: str = ""
    since: float | None = None
    """Start of that operation, in seconds since the epoch by the clock of the observing machine."""
    at: str = ""
    """User's line that it is at, such as `cell In[3], line 6, in train`."""
    memory: tuple[int, int] | None = None
    """(allocated, reserved) bytes on its device."""
    host: str = ""
    pid: int | None = None


class FrameRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One frame of a stack."""

    at: str
    """`cell In[3], line 6, in train`, or `train.py:6 train`."""
    code: str = ""
    own: bool = False
    """True for the user's own code, not a library's."""


class Branch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Frames that some ranks share, up to where they diverge."""

    ranks: str
    """Ranks as `0-2,4`."""
    count: int
    culprit: bool = False
    """True if all of them are culprits."""
    frames: tuple[FrameRow, ...] = ()
    """Frames, outermost first."""
    branches: tuple[Branch, ...] = ()
    """Branches, largest first."""


class Call(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One collective of one rank."""

    seq: int
    op: str
    open: bool = False
    """True if it has begun and not ended."""
    odd: bool = False
    """True if most ranks of the group made a different call there."""
    begun: float = 0.0
    """Seconds since the epoch; 0 if not recorded."""
    at: str = ""
    """User's line that called it."""


class Lane(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Ranks whose latest collectives are the same."""

    ranks: str
    count: int
    culprit: bool = False
    calls: tuple[Call, ...] = ()
    """Calls by sequence number; a missing one was not made, or has dropped out of the record."""


class Timeline(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The latest collectives of one process group, from the flight recorder."""

    group: str
    lanes: tuple[Lane, ...] = ()
    parted: int | None = None
    """First sequence number at which the ranks disagree."""


class Device(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One GPU; memory in bytes."""

    index: int
    name: str = ""
    total: int = 0
    used: int = 0
    utilization: int | None = None
    """Percent."""
    users: tuple[tuple[str, int], ...] = ()
    """(`rank 0` or `pid 77`, bytes) of each process on it."""


class Cell(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The cell that the kernel runs."""

    number: int | None = None
    """Number as in `In[3]`."""
    line: int | None = None
    code: str = ""
    """Text of that line."""
    seconds: float | None = None
    """Seconds since it started."""
    busy: float | None = None
    """Fraction of a CPU that its thread uses, 0 to 1."""
    frames: tuple[FrameRow, ...] = ()


class View(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """State of all ranks at one moment."""

    v: int = VERSION
    road: Literal["kernel", "outside"] = "kernel"
    """outside: the kernel was not asked, or did not answer."""
    taken: float = 0.0
    """Seconds since the epoch."""
    seconds: float = 0.0
    """Seconds that collecting it took."""
    line: str = ""
    """Summary in few words: `rank 0 waits 74 s in all_reduce #41`; empty if nothing hangs."""
    hangs: bool | None = None
    """True if something hangs: measured, never inferred from a busy kernel; None if unknown."""
    cell: Cell | None = None
    verdict: Verdict | None = None
    answer: Answer | None = None
    """The verdict as the short answer of a card, with the lines of the user's program; None if it was not asked for."""
    rows: tuple[Row, ...] = ()
    """Rows by rank."""
    tree: Branch | None = None
    """Stacks of the ranks as a prefix tree."""
    timeline: Timeline | None = None
    devices: tuple[Device, ...] = ()
    notes: tuple[str, ...] = ()
    """Parts that could not be read, with the reason, and the remedy if there is one."""
