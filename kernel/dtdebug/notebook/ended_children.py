"""Finds processes that a cell has started with multiprocessing and that ended badly: joining them raises nothing."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

_MOST, _MEMBERS = 4_000, 256
"""Maximum number of variables that are looked at, and of members of each."""


class EndedChild(NamedTuple):
    """Process that ended with a status other than 0."""

    pid: int
    name: str
    """Name that multiprocessing prints above its traceback: `Process-2`."""
    status: int
    """Exit status; negative: the number of the signal."""

    @property
    def signal(self) -> str:
        """Return `SIGABRT`, or "" if no signal ended it."""
        try:
            return signal.Signals(-self.status).name if self.status < 0 else ""
        except ValueError:
            return f"signal {-self.status}"


def find_failed(variables: Mapping[str, Any]) -> list[EndedChild]:
    """Return the ended children among the variables of a notebook, alone or in collections, that failed.

    Only what has been waited for is looked at; no method of the objects is called.
    """
    module = sys.modules.get("multiprocessing.process")
    base = getattr(module, "BaseProcess", None)
    if base is None:
        return []
    found: dict[int, EndedChild] = {}
    for value in _members(list(variables.values())[-_MOST:]):
        if not issubclass(type(value), base):
            continue
        state = vars(value)
        pid, status = _status(state.get("_popen"))
        if status and pid and state.get("_parent_pid") == os.getpid():
            found[pid] = EndedChild(pid, str(state.get("_name", "")), status)
    return [found[pid] for pid in sorted(found)]


def _status(popen: object) -> tuple[int, int]:
    """Return (process, status) of what was waited for, else (0, 0)."""
    state = getattr(popen, "__dict__", {})
    pid, status = state.get("pid"), state.get("returncode")
    return (pid, status) if isinstance(pid, int) and isinstance(status, int) else (0, 0)


def _members(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if type(value) in (list, tuple, set):
            yield from list(value)[:_MEMBERS]
        elif type(value) is dict:
            yield from list(value.values())[:_MEMBERS]
        else:
            yield value
