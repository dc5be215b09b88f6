"""Finds ranks that the others repeatedly wait for, without hanging."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise
from statistics import median

from dtdebug.recorded.flight_recorder.group_layout import Layout
from dtdebug.recorded.flight_recorder.rank_program import Program

_LATE = 0.02
"""Minimum delay in seconds after the previous rank; less is scheduler noise."""
_OFTEN = 3
"""Minimum number of late arrivals of a straggler."""
_SHARE = 0.6
"""Minimum share of all seconds spent waiting for the last rank that are due to one rank."""
_WORTH = 0.05
"""Minimum share of the recorded time span."""


def stragglers(programs: Mapping[int, Program], layout: Layout) -> dict[int, float]:
    """Return rank -> median seconds that it arrived after all others, over the times that it was late.

    Compares the ranks' own clocks, so it holds for ranks on one host or on hosts whose clocks agree: a wrong clock
    looks the same in the records.
    """
    arrivals_of = {rank: _arrivals(p) for rank, p in programs.items()}
    role_of = {rank: number for number, ranks in enumerate(layout.roles(programs)) for rank in ranks}
    owed: dict[int, list[float]] = defaultdict(list)
    moments: list[float] = []
    total = 0.0
    for group, members in layout.members.items():
        present = [r for r in members if r in programs]
        if len(present) < 2 or len(present) < len(members) or len({role_of[r] for r in present}) > 1:
            continue  # ranks with other work, such as stages of a pipeline, come at other times on purpose
        arrivals: dict[int, list[tuple[float, int]]] = defaultdict(list)
        for rank in present:
            for seq, time in arrivals_of[rank].get(group, ()):
                arrivals[seq].append((time, rank))
        for times in arrivals.values():
            if len(times) == len(present):
                waited, late = _late(sorted(times))
                moments.append(times[-1][0])
                if waited >= _LATE:
                    total += waited
                    for rank in late:
                        owed[rank].append(waited)
    span = max(moments) - min(moments) if moments else 0.0
    return {
        rank: median(waits)
        for rank, waits in owed.items()
        if len(waits) >= _OFTEN and sum(waits) >= max(_SHARE * total, _WORTH * span)
    }


def _arrivals(p: Program) -> dict[str, list[tuple[int, float]]]:
    """Return group -> (sequence number, time) of its latest collectives."""
    found: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for position in range(len(p.order) - len(p.created), len(p.order)):
        if time := p.time(position):
            found[p.group(position)].append((p.seqs[position], time))
    return found


def _late(times: list[tuple[float, int]]) -> tuple[float, list[int]]:
    """Return the longest pause between two arrivals, and the ranks after it if they are not the majority."""
    pauses = [(after[0] - before[0], i + 1) for i, (before, after) in enumerate(pairwise(times))]
    pause, first = max(pauses)
    late = [rank for _, rank in times[first:]]
    return pause, late if 2 * len(late) <= len(times) else []
