"""Separates ranks of one role that run different programs on purpose: whole groups diverge together.

Such ranks are stages of a pipeline if the recorder keeps no send and recv (gloo), and ranks of a sub-group with work
of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from dtdebug.recorded.flight_recorder.align import first_difference
from dtdebug.recorded.flight_recorder.alignment_tables import AlignedCalls, Tables
from dtdebug.recorded.flight_recorder.rank_program import P2P

_DEPTH = 64
"""Maximum number of times that a role is divided."""


def on_purpose(tables: Tables, aligned: AlignedCalls) -> list[list[int]]:
    """Split the ranks by program, but only where no group has members on both sides of the divergence."""
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


def _parts(tables: Tables, aligned: AlignedCalls, ranks: Sequence[int]) -> list[list[int]] | None:
    """Split the ranks by their call at the first divergence; None if that is a fault or there is none."""
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
    parts[0] += early  # they had not got there yet: any part will do
    return parts


def _complete(tables: Tables, aligned: AlignedCalls, rank: int, index: int, group: str, *, alone: bool) -> bool:
    """True if all members of the group reached the call, whatever they called, so that no rank waits there.

    Members without a dump are unknown; a single caller is not assumed to share its call with them.
    """
    seq = tables.programs[rank].seqs[aligned.position(rank, index)]
    members = tables.layout.members[group]
    if alone and any(m not in tables.programs for m in members):
        return False
    return all(tables.programs[m].latest_seq(group) >= seq for m in members if m in tables.programs)
