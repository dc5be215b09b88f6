"""Finds the rendezvous store of a failed run that its traceback keeps open in the kernel.

A launcher that runs in the kernel, such as Accelerate's `notebook_launcher`, serves the store of its ranks there.
IPython keeps the traceback of the last error for `%debug`, with the launcher's variables: the port stays open, and
torch gives the next run of the kernel the same store (`multi_tenant=True` of its static rendezvous), with the keys of
the failed one.
"""

from __future__ import annotations

import gc
import inspect
import os
import sys
import traceback
from collections import deque
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

from dtdebug_taxonomy.model.snapshot import OpenStore

_STORE, _LIBRARY = "TCPStore", "torch"
_MOST, _DEPTH = 500, 5
"""Maximum number of objects looked at, and of steps from a variable to the store."""
_CHAIN = 16
"""Maximum number of exceptions of a chain."""


class StoreWatch:
    """The store that the last failed cell left open, and whether the running cell has started with one."""

    def __init__(self) -> None:
        self.left: OpenStore | None = None
        self.before: OpenStore | None = None
        """Store that was open when the running cell began."""
        self._error = 0
        """Identity of the error whose traceback keeps it; a reference would keep its tensors alive."""

    def cell_begins(self) -> None:
        """Note whether the store is still kept: another error replaces the traceback."""
        kept = self.left is not None and id(sys.__dict__.get("last_value")) == self._error
        self.left = self.before = self.left if kept else None

    def cell_fails(self, error: BaseException | None, cell: int | None) -> OpenStore | None:
        """Note the store that the error keeps open; return the earlier run's, if this cell's launcher has used it."""
        store = find_open_store(error, cell)
        shared = self.before if store is not None and self.before is not None else None
        self.left, self._error = store, id(error)
        return shared if shared is not None and store is not None and shared.port == store.port else None

    def close(self) -> str:
        """Close the store of the last failed cell; return a sentence on the result, or "" if none is open."""
        error = sys.__dict__.get("last_value")
        line = close_store(error) if self.left is not None and id(error) == self._error else ""
        self.left = None
        return line


def find_open_store(error: BaseException | None, cell: int | None = None) -> OpenStore | None:
    """Return the store that the traceback of an error keeps open in this process, or None."""
    if error is None or "torch.distributed" not in sys.modules:
        return None
    ports = {port for frame in _frames(error) for port in _ports(frame)}
    if not ports:
        return None
    from dtdebug.live.probe.tcp_peers import sockets

    served = ports & sockets(os.getpid()).listens
    return OpenStore(port=min(served), cell=cell) if served else None


def close_store(error: BaseException | None) -> str:
    """Drop the variables of an error's traceback; return a sentence on whether the port of its store is closed."""
    store = find_open_store(error)
    if store is None or error is None:
        return ""
    for each in _chain(error):
        _drop_variables(each.__traceback__)
    gc.collect()  # the launcher's objects refer to each other
    from dtdebug.live.probe.tcp_peers import sockets

    if store.port in sockets(os.getpid()).listens:
        return f"port {store.port} is still open in this kernel: something else refers to the store; restart the kernel"
    return f"closed the store at port {store.port}; `%debug` has no variables of that error any more"


def _drop_variables(trace: TracebackType | None) -> None:
    """Clear the frames of a traceback; before Python 3.13 a frame whose variables were read keeps a copy of them."""
    traceback.clear_frames(trace)
    for frame, _ in traceback.walk_tb(trace):
        variables = frame.f_locals if frame.f_code.co_flags & inspect.CO_OPTIMIZED else None  # else they are globals
        if isinstance(variables, dict):
            variables.clear()


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    todo: list[BaseException | None] = [error]
    while todo and len(seen) < _CHAIN:
        each = todo.pop()
        if each is not None and not any(each is other for other in seen):
            seen.append(each)
            todo += [each.__context__, each.__cause__]
            yield each


def _frames(error: BaseException) -> Iterator[FrameType]:
    """Yield the frames of torch's functions: a store among the user's own variables is the user's."""
    for each in _chain(error):
        trace: TracebackType | None = each.__traceback__
        while trace is not None:
            module = trace.tb_frame.f_globals.get("__name__")
            if isinstance(module, str) and module.partition(".")[0] == _LIBRARY:
                yield trace.tb_frame
            trace = trace.tb_next


def _ports(frame: FrameType) -> Iterator[int]:
    """Yield the ports of the stores that the variables of a frame lead to through torch's own objects."""
    todo: deque[tuple[Any, int]] = deque((value, 0) for value in frame.f_locals.values())
    seen: set[int] = set()
    while todo and len(seen) < _MOST:
        value, depth = todo.popleft()
        kind = type(value)
        if id(value) in seen or not str(kind.__module__).startswith(f"{_LIBRARY}."):
            continue
        seen.add(id(value))
        if kind.__name__ == _STORE:
            port = value.port
            if isinstance(port, int):
                yield port
        elif depth < _DEPTH and isinstance(members := getattr(value, "__dict__", None), dict):
            todo += [(member, depth + 1) for member in members.values()]
