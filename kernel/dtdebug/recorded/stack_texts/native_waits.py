"""Tells from native frames alone what a thread waits in: by the function of the C library that it is in."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dtdebug_taxonomy.model.claims import Record
from dtdebug_taxonomy.model.waiting import Waiting, WaitKind

_CALLS: tuple[tuple[WaitKind, str], ...] = (
    ("sleep", "nanosleep clock_nanosleep usleep sleep time_sleep pysleep"),
    ("child", "wait4 waitpid waitid"),
    ("lock", "flock lockf fcntl_setlk"),
    ("socket", "recv recvfrom recvmsg accept accept4 connect sendto"),
    ("pipe", "read write"),
    ("disk", "fsync fdatasync pread64 pwrite64 openat getdents64"),
)
"""(kind of wait, functions of the C library)."""
_KINDS = {name: kind for kind, functions in _CALLS for name in functions.split()}
_INNERMOST = 4
_MPI = re.compile(r"P?MPI_(?P<op>[A-Z][a-z]\w{1,30}?)(?:_c)?\Z")
_MPI_WAITS = frozenset((
    "Barrier", "Bcast", "Allreduce", "Reduce", "Allgather", "Allgatherv", "Gather", "Gatherv", "Scatter", "Scatterv",
    "Alltoall", "Alltoallv", "Recv", "Send", "Sendrecv", "Wait", "Waitall", "Probe",
))  # fmt: skip


def by_native(native: Sequence[str], record: Record, *, has_stack: bool) -> Waiting | None:
    """Return the wait of a thread whose native frames, innermost last, end in a call that blocks; else None."""
    for name in native:  # the outermost is what the program called
        if (m := _MPI.match(name)) is not None and m["op"] in _MPI_WAITS:
            return Waiting(kind="collective", op=f"MPI_{m['op']}", record=record)
    for name in reversed(native[-_INNERMOST:]):
        plain = name.partition("@")[0].strip("_").removeprefix("GI_").removeprefix("libc_").strip("_")
        if (kind := _KINDS.get(plain)) is not None and (not has_stack or kind == "sleep"):
            return Waiting(kind=kind, op="", record=record)
    return None
