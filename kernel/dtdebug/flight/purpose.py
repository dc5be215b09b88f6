"""Ranks of one role that run different programs on purpose: they part, but always with all members of their groups.

Stages of a pipeline are such ranks where the recorder keeps no send and recv (gloo), and so are ranks of a sub-group
that has work of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from dtdebug.flight.align import first_difference
from dtdebug.flight.program import P2P
from dtdebug.flight.tables import Aligned, Tables

_DEPTH = 64
"""Times that a role is divided."""


def on_purpose(tables: Tables, aligned: Aligned) -> list[list[int]]:
    """The ranks by program, divided only where no group has members on both sides of the parting."""
    done: list[list[int]] = []
    todo = [sorted(aligned.tokens)]
    for _ in range(_DEPTH):
        if not todo:
            break
        ranks = todo.pop()
        parts = _parts(tables, aligned, ranks)
        if parts is None:
            done.append(ranks)
        else:
            todo += parts
    return sorted(done + todo)


def _parts(tables: Tables, aligned: Aligned, ranks: Sequence[int]) -> list[list[int]] | None:
    """The ranks by what they call at their first parting, or None if that parting is a fault or there is none."""
    longest = max(ranks, key=lambda r: len(aligned.tokens[r]))
    reference = aligned.tokens[longest]
    partings = (first_difference(reference, aligned.tokens[r]) for r in ranks)
    index = min((i for i in partings if i is not None), default=None)
    if index is None:
        return None
    calls: dict[int, list[int]] = defaultdict(list)
    for rank in ranks:
        if len(aligned.tokens[rank]) > index:
            calls[aligned.tokens[rank][index]].append(rank)
    for call, callers in calls.items():
        for rank in callers:
            group = tables.group_on(rank, tables.axis(call))
            if (
                group is None
                or tables.call(call).op in P2P
                or not _complete(tables, aligned, rank, index, group, alone=len(callers) == 1)
            ):
                return None
            together = set(tables.layout.members[group])
            if any(together & set(others) for other, others in calls.items() if other != call):
                return None
    early = [r for r in ranks if len(aligned.tokens[r]) <= index]
    parts = [*calls.values()]
    parts[0] += early  # they had not come so far: any part will do
    return parts


def _complete(tables: Tables, aligned: Aligned, rank: int, index: int, group: str, *, alone: bool) -> bool:
    """All members of the group came to the call, whatever they called: nobody is left waiting there.

    Of members without a dump nothing is known; that a rank which is alone with its call shares it with them is not
    taken for granted.
    """
    seq = tables.programs[rank].seqs[aligned.position(rank, index)]
    members = tables.layout.members[group]
    if alone and any(m not in tables.programs for m in members):
        return False
    return all(tables.programs[m].reached(group) >= seq for m in members if m in tables.programs)
