"""What ended the program: each exception with its frames, the lines below its message, the line of code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dtdebug_taxonomy.failure.attribution import outcome
from dtdebug_taxonomy.failure.events import last_exception
from dtdebug_taxonomy.failure.raised import Raised
from dtdebug_taxonomy.failure.reading import read_output
from dtdebug_taxonomy.ranks import Frame
from dtdebug_taxonomy.snapshot import Snapshot, walk

_BELOW = 6
"""Lines in which a message may go on."""
_MOST = 4
_LAST = 20_000
"""Lines from the end in which an exception of nobody is looked for."""


class Ending(NamedTuple):
    """An exception that ended a rank."""

    type: str
    message: str
    """In full where the exception itself is at hand, else its first line."""
    below: tuple[str, ...]
    """The lines printed below it."""
    frames: tuple[Frame, ...]
    """Innermost last."""
    code: str
    """The line of code that raised, where it was printed."""
    line: int
    """Line of the output; 0 where there is none."""
    rank: int | None


def endings(snapshot: Snapshot) -> Iterator[Ending]:
    """Those at hand, then those that were printed; where no rank's own is known, the last of the output."""
    for info in walk(snapshot.exception):
        code = info.frames[-1].code if info.frames else ""
        yield Ending(info.type, info.message, (), tuple(info.frames), code, 0, info.rank)
    if not snapshot.output:
        return
    log = read_output(snapshot)
    own = outcome(log).own
    rows = snapshot.output.split("\n") if not snapshot.first_lines else []
    for raised in own[:_MOST]:
        above = log.lines[raised.index - 1].body if 0 < raised.index <= len(log.lines) else ""
        yield _printed(raised, tuple(rows[raised.line : raised.line + _BELOW]), above, raised.line)
    if not own:
        lines = log.lines[-_LAST:]
        bodies = [line.body for line in lines]  # without what launchers and loggers set before a line
        if (last := last_exception("\n".join(bodies))) is not None:
            above = bodies[last.line - 2] if last.line > 1 else ""
            yield _printed(last, (), above, lines[last.line - 1].number)


def _printed(raised: Raised, below: tuple[str, ...], above: str, line: int) -> Ending:
    return Ending(raised.type, raised.message, below, raised.frames, above.strip(), line, raised.rank)
