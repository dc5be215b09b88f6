"""Describes process groups in recordings by their ranks."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple


class OwnGroup(NamedTuple):
    """Process group as seen by this rank."""

    name: str
    ranks: tuple[int, ...]
    """Global ranks in the order of the group; empty if unknown."""
    rank: int
    """Rank of this process in the group."""
    ordinal: int
    """Index among the groups with the same ranks, in the order in which this rank created them, from 0."""
    description: str = ""


_known: dict[str, tuple[Any, OwnGroup]] = {}


def group_of(boxed: Any) -> OwnGroup:
    """Return the group of a call's argument."""
    distributed: Any = sys.modules["torch.distributed"]
    group = distributed.ProcessGroup.unbox(boxed)
    name = str(getattr(group, "group_name", ""))
    world = getattr(sys.modules.get("torch.distributed.distributed_c10d"), "_world", None)
    table = getattr(world, "pg_group_ranks", None) or {}
    members = table.get(group)
    known = _known.get(name)
    if known is None or known[0] is not members or members is None:
        known = _known[name] = (members, _describe_group(group, name, members, table))
    return known[1]


def _describe_group(
    group: Any, name: str, members: dict[int, int] | None, table: dict[Any, dict[int, int]]
) -> OwnGroup:
    ranks = tuple(sorted(members, key=members.__getitem__)) if members else ()
    alike = [other for other, theirs in table.items() if tuple(sorted(theirs, key=theirs.__getitem__)) == ranks]
    ordinal = next((n for n, other in enumerate(alike) if other is group), 0)
    return OwnGroup(name, ranks, int(group.rank()), ordinal, str(getattr(group, "group_desc", "") or ""))


def my_rank() -> tuple[int, int] | None:
    """Return this process's global rank and number of ranks; None before `init_process_group`."""
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_initialized():
        return None
    return int(distributed.get_rank()), int(distributed.get_world_size())
