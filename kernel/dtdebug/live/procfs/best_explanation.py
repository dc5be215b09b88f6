"""Combines what a thread's frames and the operating system show of a wait; the more specific one wins."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from dtdebug_taxonomy.model.ranks import Frame
from dtdebug_taxonomy.model.waiting import Waiting, phrase

AMONG_RANKS = frozenset(("collective", "store", "rendezvous"))
"""Kinds that wait for other ranks."""
OF_PROCESSES = frozenset(("loader", "child", "subprocess"))
"""Kinds that wait for the rank's own processes."""


_OF_STORE = re.compile(r"\.(get|wait|multi_get|multi_set|set|compare_set|add|check|num_keys|delete_key)\(")


def choose_wait(inside: Waiting | None, system: Waiting | None, stack: Sequence[Frame]) -> Waiting | None:
    """Return the more specific wait, completed by the other."""
    if system is None or inside is None:
        found = inside or system
        return _name_sleep(found, stack)
    if inside.kind in AMONG_RANKS or inside.kind in {"loader", "thread", "events", "rpc"}:
        return replace(inside, path=system.path if system.kind == "socket" and inside.kind != "loader" else "")
    if inside.kind in OF_PROCESSES:
        if system.kind in OF_PROCESSES:
            return replace(system, kind=inside.kind)
        return replace(inside, pid=system.pid, command=system.command, words="" if system.pid else phrase(system))
    if inside.kind == "lock" and system.kind != "lock":
        return inside
    return _name_sleep(system, stack)


def with_store(found: Waiting | None, stack: Sequence[Frame], port: str) -> Waiting | None:
    """Turn a wait at the port of the job's store into one for the store, with the call in the source line."""
    if found is None or found.kind != "socket" or not port or not found.path.endswith(f":{port}"):
        return found
    called = _OF_STORE.search(stack[-1].code) if stack else None
    return replace(found, kind="store", op=called[1] if called else "")


def _name_sleep(found: Waiting | None, stack: Sequence[Frame]) -> Waiting | None:
    """Use Python's name of a sleep instead of the system call's."""
    if found is not None and found.kind == "sleep" and stack and "sleep" in stack[-1].code:
        return replace(found, op="time.sleep")
    return found
