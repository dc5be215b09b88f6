"""Reads ranks that run on an existing engine of the user: ipyparallel, Dask, Ray, MPI.

Each module has `reach(client)`, which returns a function of a number of seconds that returns the states of the workers
by then. No module starts a cluster, imports an engine before it is used, or waits for a collective; a worker that does
not answer is in the result with the reason.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable, Sequence

import msgspec

from dtdebug.live.agent.own_state import observe
from dtdebug.privacy.sanitize import allowed_variables
from dtdebug.process.thread_frames import frames_of
from dtdebug_taxonomy.model.ranks import Frame, RankState
from dtdebug_taxonomy.stacks.wait_operations import operation

Reach = Callable[[float], Sequence[RankState]]
_FRAMES = 200


def inside(threads: Iterable[int] = ()) -> bytes:
    """Return this process's state as JSON, with the stack of the first of the given threads that exists."""
    state = observe() or RankState(host=socket.gethostname(), pid=os.getpid())
    stack = next((found for ident in threads if (found := stack_of(ident))), ())
    return msgspec.json.encode(
        msgspec.structs.replace(
            state,
            parent=os.getppid(),
            alive=True,
            time=time.time(),
            stack=stack,
            pending=operation(stack),
            environment=allowed_variables(os.environ),
        )
    )


def stack_of(thread: int) -> tuple[Frame, ...]:
    """Return a thread's stack, innermost last."""
    import linecache

    found: list[Frame] = []
    for frame in frames_of(thread, _FRAMES):
        file, line = frame.f_code.co_filename, frame.f_lineno or 0
        found.append(Frame(file, line, frame.f_code.co_name, linecache.getline(file, line).strip()[:200]))
    return tuple(reversed(found))
