"""Events of an output, as data: exceptions with frames and causes, warnings, restarts, steps of training."""

from __future__ import annotations

import msgspec

from dtdebug_taxonomy.model.ranks import Frame


class PrintedException(msgspec.Struct, frozen=True, kw_only=True):
    """Exception that was printed with its traceback."""

    type: str
    """As printed, with its module."""
    message: str = ""
    """Its first line."""
    below: tuple[tuple[int, str], ...] = ()
    """(line of the output, text) of the further lines of its message."""
    frames: tuple[Frame, ...] = ()
    """Innermost last."""
    before: tuple[PrintedException, ...] = ()
    """Earlier exceptions: causes, members of a group, the original in a child process; nearest last."""
    rank: int | None = None
    local: int | None = None
    who: tuple[object, ...] = ()
    begin: int = 0
    """Line of the output where the traceback begins."""
    line: int = 0
    """Line of the output with type and message."""
    index: int = 0
    """Index of that line among the lines that were read."""
    thread: str = ""
    """Name of the thread, if it was not the main one."""
    process: str = ""
    """Name of the child process, as multiprocessing prints it: `ForkProcess-1`."""
    unheeded: bool = False
    """True if Python itself reports that it continued: `Exception ignored in`."""
    level: str = ""
    """Level of the logger that printed it."""
    logged: bool = False
    """True if a logger printed a line above it: the program was still running."""
    actor: str = ""
    """Name of the process in Ray, with its number: `TrainController (pid 16123)`."""
    handled: int = 0
    """Line directly below that shows that the program continues: `retry 1 of 5`, `skipping`; 0 without one."""

    @property
    def text(self) -> str:
        """`Type: message`."""
        return f"{self.type}: {self.message}" if self.message else self.type


class Events(msgspec.Struct, frozen=True, kw_only=True):
    """All events found, in the order of the output."""

    raised: tuple[PrintedException, ...] = ()
    warnings: tuple[tuple[int, int], ...] = ()
    """(first, last) line of each warning."""
    restarts: tuple[int, ...] = ()
    """Indices of the lines at which all ranks were restarted."""
    steps: dict[tuple[object, ...], list[int]] = {}
    """Process -> indices of lines that show progress of training."""
    spoke: dict[tuple[object, ...], int] = {}
    """Process that raised -> index of its last line outside tracebacks."""
    processes: dict[int, int] = {}
    """Process id -> rank, if the output lists them."""
