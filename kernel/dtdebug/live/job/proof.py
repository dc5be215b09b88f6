"""Proves that living ranks can't continue: what they wait for waits for them in turn, or has ended.

Nothing else proves it, however long it takes: a child process, a worker, a server, a file, a timer, a thread, a link or
a computation may still come back, and then so does the rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from msgspec.structs import replace

from dtdebug.live.job.not_understood import waited_seconds
from dtdebug_taxonomy import named_files
from dtdebug_taxonomy.model.claims import SHARED_RANK
from dtdebug_taxonomy.model.ranks import OPEN, RankState, Verdict, in_doubt, of_ranks
from dtdebug_taxonomy.model.waiting import ALONE

_ARGUMENTS = frozenset(("wrong_size", "wrong_dtype", "wrong_root"))
"""Kinds for which the records have both sides of one call, and they do not fit."""
_DOUBTFUL = 0.4
"""Confidence up to which arguments are inferred."""
_ENDED = frozenset(("dead", "left"))
_HELD = frozenset(("lock", "pipe"))
"""Waits whose other side a rank may be."""
_LONG = 10.0
"""Seconds in one operation after which a rank that was read once counts as at rest."""

Edges = Mapping[int, frozenset[int]]
"""Rank -> the ranks that have not come to the operation that it is in."""


def limit_to_proof(
    verdict: Verdict, states: Sequence[RankState], awaits: Edges, progress: Mapping[int, str], *, moving: bool | None
) -> Verdict:
    """Return the verdict, as open if its ranks live and no record proves that they can't go on."""
    living = [s for s in states if s.rank is not None and s.alive]
    if verdict.kind == "none" or verdict.open or not living:
        return verdict
    rest = {s.rank for s in living if _is_at_rest(s, progress, moving)}
    if _is_proven(verdict, states, [s for s in living if s.rank in rest], awaits):
        return verdict
    said = verdict.summary
    return replace(verdict, open=True, summary=said if verdict.kind == "not_understood" else in_doubt(said))


def with_time_out(verdict: Verdict, states: Sequence[RankState]) -> Verdict:
    """Return an open verdict as proven if a rank that waited has failed since: it has waited for its own limit."""
    if not verdict.open or not any(s.alive is False and s.exception for s in of_ranks(states, verdict.waiting)):
        return verdict
    said = verdict.summary.removeprefix(OPEN)
    return replace(verdict, open=False, summary=f"{said[:1].upper()}{said[1:]}")


def _is_at_rest(state: RankState, progress: Mapping[int, str], moving: bool | None) -> bool:
    now = progress.get(-1 if state.rank is None else state.rank, "unknown")
    return now == "stuck" or (now != "slow" and (moving is False or waited_seconds(state) >= _LONG))


def _is_proven(verdict: Verdict, states: Sequence[RankState], rest: Sequence[RankState], awaits: Edges) -> bool:
    if verdict.kind in _ARGUMENTS:
        return verdict.confidence > _DOUBTFUL
    if verdict.kind in _ENDED:
        return any(s.alive is False for s in of_ranks(states, verdict.culprits))
    if any(_is_of_set_up(c.what, c.words) for c in verdict.claims):
        return True
    over = {s.rank for s in states if s.rank is not None and s.alive is False}
    over |= {s.rank for s in rest if s.rank is not None and _is_over(s)}
    return not {*verdict.culprits, *verdict.waiting}.isdisjoint(blocked_for_good(_edges(rest, awaits), over))


def blocked_for_good(edges: Mapping[int, Iterable[int]], over: Iterable[int]) -> set[int]:
    """Return the ranks that wait for each other or for one that never continues, directly or through others."""
    over = {*over}
    found, waits = {*edges}, {rank: {*awaited} for rank, awaited in edges.items()}
    while True:
        bound = found | over
        free = {rank for rank in found if waits[rank].isdisjoint(bound)}
        if not free:
            return bound
        found -= free


def _edges(states: Sequence[RankState], awaits: Edges) -> dict[int, set[int]]:
    """Return whom each rank at rest waits for: by its operation, a lock, a pipe, another call, or set-up."""
    edges = {s.rank: {*awaits.get(s.rank, ())} for s in states if s.rank is not None}
    for s in states:
        w = s.waiting
        if s.rank is not None and w is not None and w.kind in _HELD and w.rank not in (None, s.rank):
            edges[s.rank].add(w.rank or 0)
        if s.rank is not None and w is not None and w.kind == "rendezvous":
            edges[s.rank] |= {o.rank for o in states if o.rank is not None and not _is_at_set_up(o)}
    calls: dict[tuple[str, int], dict[str, list[int]]] = {}
    for s in states:
        if s.rank is not None and s.pending is not None and s.pending.seq is not None and not s.pending.peers:
            calls.setdefault((s.pending.group, s.pending.seq), {}).setdefault(s.pending.op, []).append(s.rank)
    for ops in calls.values():
        for one, other in combinations(ops.values(), 2):
            for rank in one:
                edges[rank] |= {*other}
            for rank in other:
                edges[rank] |= {*one}
    return edges


def _is_at_set_up(state: RankState) -> bool:
    return state.waiting is not None and state.waiting.kind == "rendezvous"


def _is_over(state: RankState) -> bool:
    """True if the process is stopped, or its main thread waits without limit for a thread and there is none."""
    w = state.waiting
    if w is None:
        return False
    return w.kind == "stopped" or (w.words.startswith(ALONE) and not _has_limit(state))


def _has_limit(state: RankState) -> bool:
    """True if the innermost call waits up to a time, or may do so: its source line is not at hand."""
    frame = state.stack[-1] if state.stack else None
    line = frame.code if frame is not None else ""
    if frame is not None and not line:
        line = named_files.source_line(frame.file, frame.line, anywhere=True)
    return not line.strip() or "timeout" in line


def _is_of_set_up(what: str, words: str) -> bool:
    """True for a setting that keeps a rank from ever meeting the others."""
    return what == "disagree" or (what == "system" and words.startswith((SHARED_RANK, "the launcher has started")))
