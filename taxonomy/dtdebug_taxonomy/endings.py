"""What ended the program: each exception with its frames, the lines below its message, the line of code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from dtdebug_taxonomy.failure.bearing import Bearing
from dtdebug_taxonomy.failure.events import last_exception
from dtdebug_taxonomy.failure.lines import Line
from dtdebug_taxonomy.failure.outcome import outcome
from dtdebug_taxonomy.failure.raised import Raised
from dtdebug_taxonomy.failure.reading import Reading, read_output
from dtdebug_taxonomy.failure.roles import nccl_said
from dtdebug_taxonomy.ranks import Frame
from dtdebug_taxonomy.reports import logged, reported
from dtdebug_taxonomy.snapshot import Snapshot, walk

_BELOW = 6
"""Lines in which a message may go on."""
_BETWEEN = 60
"""Lines among which they are looked for, where ranks print at the same time."""
_MOST = 4
_FATAL = "Fatal Python error"
"""What Python prints where a signal ends it: not why, which a layer may have said before."""
_ARGUMENTS = re.compile(
    r"(?:^|\s)(?P<program>[\w.-]{1,80}): error: "
    r"(?P<message>(?:the following arguments|argument |unrecognized ).{3,600})$"
)
"""What argparse prints of a program's own arguments before it ends."""
_REFUSED = "The program refuses its arguments"
REFUSED_CALL = "NCCL refuses the call"
"""What endings are called that are no exceptions: the program's arguments, and why NCCL calls a use invalid."""
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
    told: Literal["", "layer", "logger"] = ""
    """Who tells of what is no exception: a layer or the program itself, or only a logger that calls it an error."""


def endings(snapshot: Snapshot) -> Iterator[Ending]:
    """Those at hand, then those that were printed; where no rank's own is known, the last of the output."""
    for info in walk(snapshot.exception):
        code = info.frames[-1].code if info.frames else ""
        yield Ending(info.type, info.message, (), tuple(info.frames), code, 0, info.rank)
    if not snapshot.output:
        return
    log = read_output(snapshot)
    own = [r for r in outcome(log).own if r.message or not r.type.startswith(_FATAL)]
    for raised in own[:_MOST]:
        above = log.lines[raised.index - 1].body if 0 < raised.index <= len(log.lines) else ""
        yield _printed(raised, () if snapshot.first_lines else _below(raised, log.lines), above, raised.line)
    yield from _refused_call(log)
    if not own:
        lines = log.lines[-_LAST:]
        bodies = [line.body for line in lines]  # without what launchers and loggers set before a line
        last = last_exception("\n".join(bodies))
        if last is not None and not (last.type.startswith(_FATAL) and reported(lines) is not None):
            above = bodies[last.line - 2] if last.line > 1 else ""
            yield _printed(last, tuple(bodies[last.line : last.line + _BELOW]), above, lines[last.line - 1].number)
        elif (refused := _refused(lines)) is not None:
            yield refused
        else:
            for look in (reported, logged):
                found = look(lines)
                if found is not None and not Bearing(snapshot).is_trained_after(found.line):
                    yield Ending(found.layer, found.message, (), (), "", found.line, found.rank, found.told)
                    return


def _refused_call(log: Reading) -> Iterator[Ending]:
    """Why NCCL calls the use invalid that it raises: its warning before that."""
    raised = next((r for r in log.events.raised if nccl_said(r.text).startswith("NCCL invalid")), None)
    said = reported(log.lines[: raised.index]) if raised is not None else None
    if said is not None and said.layer == "NCCL WARN":
        yield Ending(REFUSED_CALL, said.message, (), (), "", said.line, said.rank, "layer")


def _refused(lines: Sequence[Line]) -> Ending | None:
    """The arguments that the program did not take."""
    for line in lines:
        found = _ARGUMENTS.search(line.body) if ": error: " in line.body else None
        if found is not None:
            message = f"{found['program']}: {found['message']}"
            return Ending(_REFUSED, message, (), (), "", line.number, line.rank, "layer")
    return None


def _below(raised: Raised, lines: Sequence[Line]) -> tuple[str, ...]:
    """The next lines of the one who raised it."""
    after = lines[raised.index + 1 : raised.index + 1 + _BETWEEN]
    rank = lines[raised.index].rank if raised.index < len(lines) else None
    mine = [line.body for line in after if line.rank == rank][:_BELOW]
    table = next((n for n, body in enumerate(mine) if body[:1] in ("╭", "┌", "│")), len(mine))  # no part of a message
    return tuple(mine[:table])


def _printed(raised: Raised, below: tuple[str, ...], above: str, line: int) -> Ending:
    return Ending(raised.type, raised.message, below, raised.frames, above.strip(), line, raised.rank)
