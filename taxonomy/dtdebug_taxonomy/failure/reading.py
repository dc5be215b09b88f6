"""A log as it was read: its lines, the events in them, how processes ended. Read once for all who ask."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import msgspec

from dtdebug_taxonomy.failure import events, exits, lines
from dtdebug_taxonomy.failure.children import child_of
from dtdebug_taxonomy.failure.exits import Exits
from dtdebug_taxonomy.failure.lines import Line
from dtdebug_taxonomy.failure.raised import Events, Raised
from dtdebug_taxonomy.failure.roles import Role, raised_by_user, role_of
from dtdebug_taxonomy.frames import is_library, own_frame
from dtdebug_taxonomy.ranks import Frame
from dtdebug_taxonomy.snapshot import Snapshot

_WRAPPERS = frozenset({
    "ActorDiedError", "BaseExceptionGroup", "CheckpointException", "ControllerError", "ExceptionGroup",
    "RayActorError", "RayTaskError", "TrainingFailedError", "TuneError", "WorkerGroupError",
})  # fmt: skip
"""Classes that only hold what others raised."""
_LAUNCHERS = (
    "/accelerate/commands/", "/accelerate/launchers.py", "/deepspeed/launcher/", "/horovod/runner/",
    "/torch/distributed/launcher/", "/torch/distributed/run.py", "/torch/multiprocessing/spawn.py",
)  # fmt: skip
"""Where launchers raise that a process of theirs has failed."""


class Reading(NamedTuple):
    """All that is read of an output."""

    lines: tuple[Line, ...]
    events: Events
    said: Exits
    first: tuple[int, ...]
    """Place of the first line of each attempt but the first."""


def read_output(snapshot: Snapshot) -> Reading:
    """The reading of a snapshot's output; numbers of lines are those of the whole log."""
    return _read(snapshot.output, snapshot.first_lines, snapshot.source)


@lru_cache(maxsize=2)
def _read(output: str, first_lines: tuple[tuple[int, int], ...], source: str) -> Reading:
    printed = lines.split_lines(output, Snapshot(first_lines=first_lines).true_line, source)
    happened = events.find_events(printed)
    return Reading(tuple(printed), happened, exits.of_lines(printed, happened), happened.restarts)


_WATCHDOG_ENDS = "Watchdog caught collective operation timeout"
"""NCCL's watchdog aborts its process after it."""


def has_ended(snapshot: Snapshot) -> bool:
    """Whether the output says that processes of the job have ended."""
    return bool(snapshot.output) and (_WATCHDOG_ENDS in snapshot.output or bool(read_output(snapshot).said.exits))


def role(raised: Raised) -> Role:
    """The role of a printed exception."""
    name = raised.type.rsplit(".", 1)[-1].partition("(")[0]
    if (name in _WRAPPERS and not raised_by_user(raised.frames)) or (raised.frames and _is_launcher(raised.frames[-1])):
        return "launcher"
    return role_of(raised.text, raised.frames)


def _is_launcher(frame: Frame) -> bool:
    file = frame.file.replace("\\", "/")
    return any(part in file for part in _LAUNCHERS)


def primary(raised: Raised) -> Raised:
    """Of an exception and those before it the one that says what was wrong.

    What the program itself raised last goes first, then what its lines called; a lost peer met while cleaning up,
    and the wrapper of a framework, only hide it.
    """
    child = child_of(raised)
    chain = (*child.before, child) if child is not None else (*raised.before, raised)
    own = [r for r in chain if role(r) == "own"]
    by_program = [r for r in own if r.frames and not is_library(r.frames[-1].file)]
    through = [r for r in own if own_frame(r.frames) is not None]
    best = next((rows[-1] for rows in (by_program, through, own) if rows), child or raised)
    rank = raised.rank if best.rank is None else best.rank
    if child is not None:  # its parent is who prints, and whose end it is
        return msgspec.structs.replace(best, rank=rank, process=child.process, who=raised.who, index=raised.index)
    return best if best.rank == rank else msgspec.structs.replace(best, rank=rank)
