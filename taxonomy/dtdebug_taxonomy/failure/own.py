"""What a rank's own code raised, outside any framework: an error of the program, which one process could meet as well.

The errors of the other ranks are then its echo. An exception counts if its innermost frames are the user's own lines or
those of a library that does no training. What PyTorch's C++ raises under a user's line is not the program's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dtdebug_taxonomy.failure import events, lines
from dtdebug_taxonomy.failure.log import Log, primary, role
from dtdebug_taxonomy.failure.roles import raised_by_user, role_of
from dtdebug_taxonomy.frames import is_framework, is_library, is_made, own_frame, short
from dtdebug_taxonomy.ranks import Frame
from dtdebug_taxonomy.snapshot import Snapshot, walk

_PYTHON = re.compile(r"\.py$|^<(?:ipython|stdin|string|dynamic-code)")
"""Of all that a traceback names; compiled modules print places such as `index.pyx`."""
_OF_FRAMEWORKS = re.compile(
    r"(?:RuntimeError|MemoryError)$|(?:torch|c10|tensorflow|horovod|jax\w{0,10}|numpy\.core|ray|deepspeed)\."
)
"""Classes that frameworks raise from C++, without a frame of their own, and what says that the machine has no more."""
OF_RANKS = "<ranks>"
"""In place of its class: a check of the program's own that found the ranks to differ, which no one process can meet."""
_UNLIKE = r"(?:diverg|differ|mismatch|disagree|unequal|out[- ]of[- ]sync|not (?:equal|identical|the same|in sync))"
_AMONG = r"(?:replicas?|ranks?|workers|processes)"
_PARTED = re.compile(rf"(?i)\b{_AMONG}\b.{{0,60}}\b{_UNLIKE}|\b{_UNLIKE}\w{{0,6}}\b.{{0,60}}\b{_AMONG}\b")
_LAUNCHES = re.compile(r"torch[/\\](?:distributed[/\\](?:run|launch|elastic)|multiprocessing)")
"""Frames that call the program rather than being called by it."""
_WORDS = 60
"""Characters of a message that are shown."""


class OwnError(NamedTuple):
    """One exception with the user's own line that it comes from."""

    type: str
    words: str
    """`KeyError: 'label' in train.py:12`."""
    rank: int | None
    line: int = 0
    """Line of the output; 0 where it was not printed."""
    library: bool = False
    """A training library raised it, below the user's own line."""
    inside: bool = False
    """A training library raised it, and no line of the user's own is in the traceback."""


def own_errors(snapshot: Snapshot, log: Log) -> Iterator[OwnError]:
    """Those of ranks, the earliest first; where the ranks were compared, those of the culprits alone."""
    verdict = snapshot.verdict
    culprits = set(verdict.culprits) if verdict is not None and verdict.kind != "none" else set()
    for error in (*_carried(snapshot), *_printed(snapshot, log), *_recorded(snapshot)):
        if not culprits or error.rank is None or error.rank in culprits:
            yield error


def _carried(snapshot: Snapshot) -> Iterator[OwnError]:
    """What the launcher's exception holds of its ranks: each as an exception, or their tracebacks as text."""
    for info in walk(snapshot.exception):
        if info.rank is None:
            continue
        yield from _own(info.type, info.message, info.frames, info.rank)
        if "Traceback" in info.message:
            raised = events.find_events(lines.split_lines(info.message)).raised
            for r in (primary(r) for r in raised if role(r) == "own"):
                yield from _own(r.type, r.message, r.frames, r.rank)


def _recorded(snapshot: Snapshot) -> Iterator[OwnError]:
    """What ended ranks, and what they live on after, as far as the verdict says it."""
    said = {c.record.words for c in snapshot.verdict.claims if c.what == "raised"} if snapshot.verdict else set()
    for state in snapshot.ranks:
        rows = [(state.exception, state.stack)] if state.exception else []
        lives_on = (*([state.handling] if state.handling is not None else []), *state.broken)
        for text, stack in (*rows, *((one.exception, one.stack) for one in lives_on if one.exception in said)):
            kind, _, message = text.partition(":")
            yield from _own(kind, message.strip(), stack, state.rank)


def _printed(snapshot: Snapshot, log: Log) -> Iterator[OwnError]:
    if "Traceback" not in snapshot.output and "ray::" not in snapshot.output:
        return
    for r in log.outcome.own:
        yield from (error._replace(line=r.line) for error in _own(r.type, r.message, r.frames, r.rank))


def _own(kind: str, message: str, stack: Sequence[Frame], rank: int | None) -> Iterator[OwnError]:
    """The exception, if it is the program's own."""
    if role_of(f"{kind}: {message}", stack) != "own":
        return
    own = own_frame(stack)
    below = next((frame for frame in reversed(stack) if is_framework(frame.file)), None)
    for frame in reversed(stack):
        made = is_made(frame.file) and own is not None and not is_made(own.file)
        if _PYTHON.search(frame.file) and not (made or is_library(frame.file) or is_framework(frame.file)):
            break
        if frame is below and _LAUNCHES.search(frame.file):
            return
    else:
        if below is None or _LAUNCHES.search(below.file):
            return
        frame = below  # a worker of a library's own, or a traceback of which only that part was pasted
    inside = frame is below
    library = below is not None and stack.index(below) > stack.index(frame)
    if not _OF_FRAMEWORKS.match(kind) or raised_by_user(stack):
        name = kind.rsplit(".", 1)[-1]
        said = " ".join(message.split())
        said = said if len(said) <= _WORDS else f"{said[:_WORDS]}..."
        words = f"{name}{': ' if said else ''}{said} in {short(frame.file)}:{frame.line}"
        name = OF_RANKS if raised_by_user(stack) and _PARTED.search(message) else name
        yield OwnError(name, words, rank, library=library, inside=inside)
