"""The types of what front ends draw of the ranks at one moment; texts are clean, short, in the words of the terminal.

One form for both roads by which a look comes to a front end: the kernel's control channel and the server beside it.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from dtdebug_taxonomy.ranks import Verdict

VERSION = 1

State = Literal["culprit", "waits", "runs", "silent", "gone"]
"""culprit: the others wait for it; waits: hangs in an operation; runs: neither; silent: lives and does not
answer; gone: its process has ended."""


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One rank."""

    rank: int | None = None
    state: State = "runs"
    step: int | None = None
    op: str = ""
    """The operation that it waits in, such as `all_reduce`."""
    seq: int | None = None
    """Sequence number of that operation in its group."""
    group: str = ""
    since: float | None = None
    """When it began that operation, in seconds since the epoch by the clock of the machine that looked."""
    at: str = ""
    """The user's line where it is, such as `cell In[3], line 6, in train`."""
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
    """The user's own code, not a library's."""


class Branch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Frames that some ranks share, and where they part."""

    ranks: str
    """As `0-2,4`."""
    count: int
    culprit: bool = False
    """All of them are culprits."""
    frames: tuple[FrameRow, ...] = ()
    """Outermost first."""
    branches: tuple[Branch, ...] = ()
    """The largest first."""


class Call(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One collective of one rank."""

    seq: int
    op: str
    open: bool = False
    """It was begun and has not ended."""
    odd: bool = False
    """Most ranks of the group called something else there."""
    begun: float = 0.0
    """Seconds since the epoch; 0 where the record does not tell."""
    at: str = ""
    """The user's line that called it."""


class Lane(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Ranks whose latest collectives are the same."""

    ranks: str
    count: int
    culprit: bool = False
    calls: tuple[Call, ...] = ()
    """By sequence number; a missing one was not called, or has dropped out of the record."""


class Timeline(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The latest collectives of one process group, from the flight recorder."""

    group: str
    lanes: tuple[Lane, ...] = ()
    parted: int | None = None
    """The first sequence number at which the ranks do not agree."""


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
    """As in `In[3]`."""
    line: int | None = None
    code: str = ""
    """Text of that line."""
    seconds: float | None = None
    """How long it runs."""
    busy: float | None = None
    """Part of a CPU that its thread uses, 0 to 1."""
    frames: tuple[FrameRow, ...] = ()


class View(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is seen of all ranks at one moment."""

    v: int = VERSION
    road: Literal["kernel", "outside"] = "kernel"
    """outside: the kernel was not asked, or did not answer."""
    taken: float = 0.0
    """Seconds since the epoch."""
    seconds: float = 0.0
    """How long the look took."""
    line: str = ""
    """All of it in few words: `rank 0 waits 74 s in all_reduce #41`; empty where nothing hangs."""
    hangs: bool | None = None
    """Something hangs: measured, never inferred from a busy kernel; None where that can't be told."""
    cell: Cell | None = None
    verdict: Verdict | None = None
    rows: tuple[Row, ...] = ()
    """By rank."""
    tree: Branch | None = None
    """Stacks of the ranks as a prefix tree."""
    timeline: Timeline | None = None
    devices: tuple[Device, ...] = ()
    notes: tuple[str, ...] = ()
    """What could not be read, and why; what to do, where something can be done."""
