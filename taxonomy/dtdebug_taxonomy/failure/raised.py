"""What happened in an output, as data: exceptions with frames and causes, warnings, attempts, steps of training."""

from __future__ import annotations

import msgspec

from dtdebug_taxonomy.ranks import Frame


class Raised(msgspec.Struct, frozen=True, kw_only=True):
    """An exception that was printed with its traceback."""

    type: str
    """As printed, with its module."""
    message: str = ""
    """Its first line."""
    frames: tuple[Frame, ...] = ()
    """Innermost last."""
    before: tuple[Raised, ...] = ()
    """What was raised before it: causes, members of a group, the original in a child process; nearest last."""
    rank: int | None = None
    local: int | None = None
    who: tuple[object, ...] = ()
    begin: int = 0
    """Line of the output where the traceback begins."""
    line: int = 0
    """Line of the output with type and message."""
    index: int = 0
    """Place of that line among the lines that were read."""
    thread: str = ""
    """Name of the thread, if it was not the main one."""
    process: str = ""
    """Name of the child process, as multiprocessing prints it: `ForkProcess-1`."""
    unheeded: bool = False
    """Python itself says that it went on: `Exception ignored in`."""
    level: str = ""
    """Level of the logger that printed it."""
    logged: bool = False
    """A logger printed a line above it: the program was there to print it."""
    actor: str = ""
    """What Ray calls the process that printed it, and its number: `TrainController (pid 16123)`."""
    handled: int = 0
    """Line directly below which says that the program goes on: `retry 1 of 5`, `skipping`; 0 for none."""

    @property
    def text(self) -> str:
        """`Type: message`."""
        return f"{self.type}: {self.message}" if self.message else self.type


class Events(msgspec.Struct, frozen=True, kw_only=True):
    """All that was found, in the order of the output."""

    raised: tuple[Raised, ...] = ()
    warnings: tuple[tuple[int, int], ...] = ()
    """(first, last) line of each."""
    restarts: tuple[int, ...] = ()
    """Places among the lines where all ranks were started anew."""
    steps: dict[tuple[object, ...], list[int]] = {}
    """Who -> places of lines that show progress of training."""
    spoke: dict[tuple[object, ...], int] = {}
    """Who raised -> place of its last line that is no part of a traceback."""
    processes: dict[int, int] = {}
    """Process -> rank, where the output lists them."""
