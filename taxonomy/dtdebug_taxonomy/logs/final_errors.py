"""The errors that ended the program: each with its frames, the lines below its message, its line of code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from dtdebug_taxonomy.logs.event_reader import last_exception
from dtdebug_taxonomy.logs.events import PrintedException
from dtdebug_taxonomy.logs.exception_roles import nccl_said
from dtdebug_taxonomy.logs.layer_reports import layer_report, logger_report
from dtdebug_taxonomy.logs.lines import Line
from dtdebug_taxonomy.logs.log import Log
from dtdebug_taxonomy.logs.relevance import Bearing
from dtdebug_taxonomy.model.ranks import Frame
from dtdebug_taxonomy.model.snapshot import Snapshot, walk

_BELOW = 6
"""Maximum number of lines that continue a message."""
_BETWEEN = 60
"""Lines searched for them, since ranks print at the same time."""
_MOST = 4
_FATAL = "Fatal Python error"
"""Printed by Python when a signal ends it; a layer may have printed the reason before."""
_ARGUMENTS = re.compile(
    r"(?:^|\s)(?P<program>[\w.-]{1,80}): error: "
    r"(?P<message>(?:the following arguments|argument |unrecognized ).{3,600})$"
)
"""Printed by argparse before it exits."""
_REFUSED = "The program refuses its arguments"
REFUSED_CALL = "NCCL refuses the call"
"""Types of final errors that are not exceptions: refused arguments, and NCCL's reason for an invalid use."""
_LAST = 20_000
"""Trailing lines searched for an exception without a rank prefix."""


class FinalError(NamedTuple):
    """An exception that ended a rank."""

    type: str
    message: str
    """In full if the exception itself is at hand, otherwise its first line."""
    below: tuple[str, ...]
    """Lines printed below it."""
    frames: tuple[Frame, ...]
    """Innermost last."""
    code: str
    """Line of code that raised, if it was printed."""
    line: int
    """Line of the output; 0 if it was not printed."""
    rank: int | None
    told: Literal["", "layer", "logger"] = ""
    """Source of an error that is not an exception: a layer or the program itself, or only a logger."""


def final_errors(snapshot: Snapshot, log: Log, relevance: Bearing) -> Iterator[FinalError]:
    """Yield the exception at hand, then those printed; if no rank's own is known, the last one of the output."""
    for info in walk(snapshot.exception):
        code = info.frames[-1].code if info.frames else ""
        yield FinalError(info.type, info.message, (), tuple(info.frames), code, 0, info.rank)
    if not snapshot.output:
        return
    own = [r for r in log.outcome.own if r.message or not r.type.startswith(_FATAL)]
    for raised in own[:_MOST]:
        above = log.lines[raised.index - 1].body if 0 < raised.index <= len(log.lines) else ""
        yield _from_printed(raised, () if snapshot.first_lines else _below(raised, log.lines), above, raised.line)
    yield from _refused_call(log)
    if not own:
        lines = log.lines[-_LAST:]
        bodies = [line.body for line in lines]  # without what launchers and loggers set before a line
        last = last_exception("\n".join(bodies))
        printed = lines[last.line - 1] if last is not None else None
        # Without times, output that was flushed late can stand below an exception that ended the program.
        if printed is not None and printed.time and printed.number in {r.line for r in log.outcome.handled}:
            last = None
        if last is not None and not (last.type.startswith(_FATAL) and layer_report(lines) is not None):
            above = bodies[last.line - 2] if last.line > 1 else ""
            yield _from_printed(last, tuple(bodies[last.line : last.line + _BELOW]), above, lines[last.line - 1].number)
        elif (refused := _argparse_error(lines)) is not None:
            yield refused
        else:
            for look in (layer_report, logger_report):
                found = look([line for line in lines if line.number > relevance.outlived])
                if found is not None and not relevance.is_past(found.line, scheduler=found.layer == "Slurm"):
                    yield FinalError(found.layer, found.message, (), (), "", found.line, found.rank, found.told)
                    return


def _refused_call(log: Log) -> Iterator[FinalError]:
    """Yield NCCL's warning that precedes an `invalid usage` error and says why."""
    raised = next((r for r in log.events.raised if nccl_said(r.text).startswith("NCCL invalid")), None)
    said = layer_report(log.lines[: raised.index]) if raised is not None else None
    if said is not None and said.layer == "NCCL WARN":
        yield FinalError(REFUSED_CALL, said.message, (), (), "", said.line, said.rank, "layer")


def _argparse_error(lines: Sequence[Line]) -> FinalError | None:
    """Return the argparse error of the program, if there is one."""
    for line in lines:
        found = _ARGUMENTS.search(line.body) if ": error: " in line.body else None
        if found is not None:
            message = f"{found['program']}: {found['message']}"
            return FinalError(_REFUSED, message, (), (), "", line.number, line.rank, "layer")
    return None


def _below(raised: PrintedException, lines: Sequence[Line]) -> tuple[str, ...]:
    """Return the next lines printed by the same rank."""
    after = lines[raised.index + 1 : raised.index + 1 + _BETWEEN]
    rank = lines[raised.index].rank if raised.index < len(lines) else None
    mine = [line.body for line in after if line.rank == rank][:_BELOW]
    table = next((n for n, body in enumerate(mine) if body[:1] in ("╭", "┌", "│")), len(mine))  # no part of a message
    return tuple(mine[:table])


def _from_printed(raised: PrintedException, below: tuple[str, ...], above: str, line: int) -> FinalError:
    return FinalError(raised.type, raised.message, below, raised.frames, above.strip(), line, raised.rank)
