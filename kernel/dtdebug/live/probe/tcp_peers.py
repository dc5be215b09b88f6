"""Finds processes connected with each other by TCP: ranks of a job are, workers of a pool or a loader are not."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

import psutil

End = tuple[str, int]
"""Address and port."""


class Sockets(NamedTuple):
    """The TCP sockets of a process."""

    listens: frozenset[int]
    """Ports without addresses."""
    ends: frozenset[tuple[End, End]]
    """(here, there) of each connection that neither side has closed."""


def sockets(pid: int) -> Sockets:
    """Return the sockets of a process; none if it has ended or may not be read."""
    try:
        found = psutil.Process(pid).net_connections("tcp")
    except (psutil.Error, OSError):
        return Sockets(frozenset(), frozenset())
    return Sockets(
        frozenset(c.laddr.port for c in found if c.status == psutil.CONN_LISTEN),
        frozenset((_end(c.laddr), _end(c.raddr)) for c in found if c.status == psutil.CONN_ESTABLISHED),
    )


def _end(address: tuple[str, int]) -> End:
    """Return one end in the same form for both IP protocols."""
    return address[0].removeprefix("::ffff:"), address[1]


def among(pids: Iterable[int], apart: Collection[int] = ()) -> set[int]:
    """Return the processes that are connected with another one of them, but with none of the processes `apart`.

    A process that is connected with its parent, such as a Dask worker with its scheduler, works for that one. Sockets
    that a child has inherited do not count, as their other end is unchanged.
    """
    theirs = {end for pid in apart for end in sockets(pid).ends}
    own = {pid: sockets(pid).ends - theirs for pid in pids}
    found = set()
    for pid, ends in own.items():
        seen_from_there = {(there, here) for here, there in ends}
        others = {end for other, those in own.items() if other != pid for end in those}
        if seen_from_there & others and not seen_from_there & theirs:
            found.add(pid)
    return found
