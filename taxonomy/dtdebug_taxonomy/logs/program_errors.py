"""Finds errors of a rank's own code, outside any framework: errors that one process could raise as well.

The errors of the other ranks are then its echo. An exception counts if its innermost frames are the user's own lines
or those of a library that does no training. An exception of PyTorch's C++ code under a user's line does not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dtdebug_taxonomy.logs import event_reader, lines
from dtdebug_taxonomy.logs.exception_roles import raised_by_user, role_of
from dtdebug_taxonomy.logs.log import Log, primary, role
from dtdebug_taxonomy.model.ranks import Frame
from dtdebug_taxonomy.model.snapshot import Snapshot, walk
from dtdebug_taxonomy.stacks.frames import is_framework, is_library, is_made, own_frame, short
from dtdebug_taxonomy.text.lazy_re import lazy_re

_PYTHON = lazy_re(r"\.py$|^<(?:ipython|stdin|string|dynamic-code)")
"""Python sources among the files of a traceback; compiled modules print places such as `index.pyx`."""
_OF_FRAMEWORKS = lazy_re(
    r"(?:RuntimeError|MemoryError)$|(?:torch|c10|tensorflow|horovod|jax\w{0,10}|numpy\.core|ray|deepspeed)\."
)
"""Classes that frameworks raise from C++ without a frame of their own, and exhausted memory."""
OF_RANKS = "<ranks>"
"""Replaces the class if a check of the program's own found differing ranks, which no single process can raise."""
_UNLIKE = r"(?:diverg|differ|mismatch|disagree|unequal|out[- ]of[- ]sync|not (?:equal|identical|the same|in sync))"
_AMONG = r"(?:replicas?|ranks?|workers|processes)"
_PARTED = lazy_re(rf"(?i)\b{_AMONG}\b.{{0,60}}\b{_UNLIKE}|\b{_UNLIKE}\w{{0,6}}\b.{{0,60}}\b{_AMONG}\b")
_LAUNCHES = lazy_re(r"torch[/\\](?:distributed[/\\](?:run|launch|elastic)|multiprocessing)")
"""Frames that call the program, and are not called by it."""
_WORDS = 60
"""Maximum number of characters shown of a message."""


class OwnError(NamedTuple):
    """Exception with the user's own line that it comes from."""

    type: str
    words: str
    """`KeyError: 'label' in train.py:12`."""
    rank: int | None
    line: int = 0
    """Line of the output; 0 if it was not printed."""
    library: bool = False
    """True if a training library raised it, below the user's own line."""
    inside: bool = False
    """True if a training library raised it, and the traceback has no line of the user's own."""


def own_errors(snapshot: Snapshot, log: Log) -> Iterator[OwnError]:
    """Yield the ranks' own errors, earliest first; if the ranks were compared, those of the culprits only."""
    verdict = snapshot.verdict
    culprits = set(verdict.culprits) if verdict is not None and verdict.kind != "none" else set()
    for error in (*_errors_of_exception(snapshot), *_errors_of_output(snapshot, log), *_errors_of_states(snapshot)):
        if not culprits or error.rank is None or error.rank in culprits:
            yield error


def _errors_of_exception(snapshot: Snapshot) -> Iterator[OwnError]:
    """Yield own errors in the launcher's exception: ranks' exceptions, or their tracebacks as text."""
    for info in walk(snapshot.exception):
        if info.rank is None:
            continue
        yield from _own(info.type, info.message, info.frames, info.rank)
        if "Traceback" in info.message:
            raised = event_reader.find_events(lines.split_lines(info.message)).raised
            for r in (primary(r) for r in raised if role(r) == "own"):
                yield from _own(r.type, r.message, r.frames, r.rank)


def _errors_of_states(snapshot: Snapshot) -> Iterator[OwnError]:
    """Yield own errors that ended ranks, and those that ranks outlived and the verdict names."""
    said = {c.record.words for c in snapshot.verdict.claims if c.what == "raised"} if snapshot.verdict else set()
    for state in snapshot.ranks:
        rows = [(state.exception, state.stack)] if state.exception else []
        lives_on = (*([state.handling] if state.handling is not None else []), *state.broken)
        for text, stack in (*rows, *((one.exception, one.stack) for one in lives_on if one.exception in said)):
            kind, _, message = text.partition(":")
            yield from _own(kind, message.strip(), stack, state.rank)


def _errors_of_output(snapshot: Snapshot, log: Log) -> Iterator[OwnError]:
    if "Traceback" not in snapshot.output and "ray::" not in snapshot.output:
        return
    for r in log.outcome.own:
        yield from (error._replace(line=r.line) for error in _own(r.type, r.message, r.frames, r.rank))


def _own(kind: str, message: str, stack: Sequence[Frame], rank: int | None) -> Iterator[OwnError]:
    """Yield the exception if it is the program's own."""
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
        frame = below  # a worker of the library itself, or only that part of the traceback was pasted
    inside = frame is below
    library = below is not None and stack.index(below) > stack.index(frame)
    if not _OF_FRAMEWORKS.match(kind) or raised_by_user(stack):
        name = kind.rsplit(".", 1)[-1]
        said = " ".join(message.split())
        said = said if len(said) <= _WORDS else f"{said[:_WORDS]}..."
        words = f"{name}{': ' if said else ''}{said} in {short(frame.file)}:{frame.line}"
        name = OF_RANKS if raised_by_user(stack) and _PARTED.search(message) else name
        yield OwnError(name, words, rank, library=library, inside=inside)
