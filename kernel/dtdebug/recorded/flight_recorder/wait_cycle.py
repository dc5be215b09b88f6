"""Verdicts on ranks that wait for each other in two collectives, one of which was skipped.

If only active entries are kept, the earlier calls are unknown. But a collective that most members are in was due, so
the ranks that wait in a different one skipped it; between two ranks there is no majority.
"""

from __future__ import annotations

from collections import defaultdict

from dtdebug.recorded.flight_recorder.rank_program import P2P
from dtdebug.recorded.flight_recorder.verdict_input import (
    Records,
    call_of,
    group_ref,
    sites_of,
    sort_sites,
    standing_still,
)
from dtdebug.recorded.flight_recorder.wait_graph import Wait
from dtdebug_taxonomy.model.ranks import Alternative, CollectiveRef, Verdict, say, spell

_SURE, _UNSURE = 0.55, 0.4


def of_circle(records: Records) -> Verdict | None:
    """Return the verdict on a circle without an absent rank; None if it does not consist of collectives."""
    if records.waits.sinks() or any(not w.awaited and w.op not in P2P for w in records.waits.waits):
        return None
    circle = records.waits.in_circles()
    inside: dict[tuple[str, str, int | None], list[Wait]] = defaultdict(list)
    for w in records.waits.waits:
        if w.awaited & circle and w.op not in P2P:
            inside[w.group, w.op, w.seq].append(w)
    rows = [
        (key, tuple(sorted({w.rank for w in mine})), tuple(sorted(frozenset.union(*(w.awaited for w in mine)))))
        for key, mine in inside.items()
        if circle & {w.rank for w in mine}
    ]
    if not rows:
        return None
    begun = {key: _earliest_start(records, mine) for key, mine in inside.items()}
    rows.sort(key=lambda row: (len(row[1]) <= len(row[2]), len(row[2]), -len(row[1]), begun[row[0]], row[0][0]))
    (group, op, seq), there, missing = rows[0]
    call = call_of(records, op, seq, group)
    if len(there) > len(missing):
        culprits, waiting = missing, standing_still(records, missing)
        summary = f"{say(there, 'are').capitalize()} in {call}; {say(missing, 'wait')} elsewhere and never entered it."
        others = tuple(
            Alternative(
                kind="replaced",
                culprits=missing,
                because="ranks that make the same calls in another order look alike",
                refute="the source at the call sites, or a dump that holds ended entries too",
            )
            for _ in culprits[:1]
        )
        rivals = [row for row in rows[1:] if (len(row[1]), len(row[2])) == (len(there), len(missing))]
        others += tuple(
            Alternative(
                kind="skipped",
                culprits=absent,
                because=f"{say(mine, 'are')} in {call_of(records, key[1], key[2], key[0])}, which they never entered",
                refute="the first of these operations to be begun is the one that was passed by",
            )
            for key, mine, absent in rivals[:3]
        )
        sure = _UNSURE if rivals else _SURE
    else:
        culprits, waiting, sure = (), standing_still(records, ()), _UNSURE
        summary = f"{spell(sorted(circle)).capitalize()} wait for each other; which of them is wrong is not known."
        others = tuple(
            Alternative(
                kind="skipped",
                culprits=absent,
                because=f"{say(mine, 'are')} in {call_of(records, key[1], key[2], key[0])}, which they never entered",
                refute="the source says what comes first here",
            )
            for key, mine, absent in rows[:4]
        )
    return Verdict(
        kind="skipped",
        culprits=culprits,
        waiting=waiting,
        group=group_ref(records, group),
        collective=CollectiveRef(op, seq),
        sites=sort_sites(sites_of(records, culprits, waiting), culprits),
        confidence=sure,
        summary=summary,
        alternatives=others,
    )


def _earliest_start(records: Records, waits: list[Wait]) -> float:
    """Return when a rank first began to wait, in seconds since the epoch by its own clock."""
    times = [
        records.programs[w.rank].time(w.position)
        for w in waits
        if w.position is not None and w.rank in records.programs
    ]
    return min((t for t in times if t), default=0.0)
