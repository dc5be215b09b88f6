"""Wait-for graph: for each unfinished operation, the ranks that have not arrived."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dtdebug.recorded.flight_recorder.ended_ranks import is_victim, lost_peer
from dtdebug.recorded.flight_recorder.group_layout import DEFAULT, Layout
from dtdebug.recorded.flight_recorder.rank_program import P2P, Open, Program
from dtdebug_taxonomy.model.ranks import Operation, RankState

_PAIRS = ("send", "recv", "isend", "irecv")


class Wait(NamedTuple):
    """A rank in an operation, and the ranks that it waits for."""

    rank: int
    group: str
    op: str
    seq: int | None
    position: int | None
    """Position in the rank's program, if recorded."""
    awaited: frozenset[int]
    """Ranks that have not arrived; empty if all have and it is still unfinished."""


class Waits:
    """The wait-for graph at one moment."""

    def __init__(self, programs: Mapping[int, Program], layout: Layout, states: Sequence[RankState]) -> None:
        self._programs, self._layout = programs, layout
        self._states = {s.rank: s for s in states if s.rank is not None}
        self._absent: dict[tuple[str, int | None], tuple[frozenset[int], frozenset[int], frozenset[int]]] = {}
        self._elsewhere: dict[tuple[str, str, int | None], frozenset[int]] = {}
        self._heads: dict[int, tuple[bool, Open | None]] = {}
        self._collectives: dict[int, dict[tuple[str, int], Open]] = {}
        self._halves: dict[int, dict[tuple[str, int], list[Open]]] = {}
        self.waits: list[Wait] = []
        for rank in sorted({*programs, *self._states}):
            self._of(rank)
        self.awaited: dict[int, set[int]] = defaultdict(set)
        """Rank -> the ranks that wait for it."""
        waiting: dict[frozenset[int], list[int]] = defaultdict(list)  # those in one collective await the same ranks
        for w in self.waits:
            waiting[w.awaited].append(w.rank)
        for awaited, ranks in waiting.items():
            for other in awaited:
                self.awaited[other].update(ranks)
        self.waiting = {w.rank for w in self.waits}

    def _of(self, rank: int) -> None:
        p, state = self._programs.get(rank), self._states.get(rank)
        if state is not None and state.alive is False and not is_victim(state):
            return  # the dump of a rank ended by others still shows what it waited for
        pending = state.pending if state is not None else None
        before = len(self.waits)
        if p is not None:
            first: dict[str, Open] = {}
            for o in p.open:
                if o.peer is not None:
                    self._peer(rank, o, p.symbol_table[o.symbol].op, o.peer)
                elif p.symbol_table[o.symbol].op not in P2P:
                    first.setdefault(o.group, o)
            if state is not None and not p.open:
                self._add_failed_wait(rank, p, state)
            for o in first.values():
                missing = self._missing(rank, o)
                # an operation that all have entered is not waited in while it is queued
                if missing or (self.at_head(rank, o) and not self.unbegun(rank, o.group, o.seq)):
                    self.waits.append(Wait(rank, o.group, p.symbol_table[o.symbol].op, o.seq, o.position, missing))
        known = {(w.group, w.op) for w in self.waits[before:]}
        if pending is not None and (pending.group, pending.op) not in known:
            self._live(rank, pending, recorded=bool(p is not None and p.open))

    def _add_failed_wait(self, rank: int, p: Program, state: RankState) -> None:
        """Add the wait of a rank that lost its peers: some recorders (gloo) keep its failed collective as ended."""
        last = len(p.order) - 1
        if last < 0 or not lost_peer(state) or p.symbol(last).op in P2P:
            return
        created = p.time(last) or 0.0
        o = Open(last, p.group(last), p.symbols[last], p.seqs[last], 0, False, None, created)
        missing = self._missing(rank, o)
        if missing:
            self.waits.append(Wait(rank, o.group, p.symbol(last).op, o.seq, last, missing))

    def _live(self, rank: int, pending: Operation, *, recorded: bool) -> None:
        """Add the wait from the rank's stack, if the recorder has no entry: gloo's send and recv, old versions."""
        group = pending.group or DEFAULT
        if pending.op in _PAIRS and pending.peer is not None:
            there = self._states.get(pending.peer)
            other = there.pending if there is not None else None
            met = other is not None and other.op in _PAIRS and other.peer == rank and other.op[-4:] != pending.op[-4:]
            awaited = frozenset() if met else frozenset({pending.peer})
            self.waits.append(Wait(rank, group, pending.op, pending.seq, None, awaited))
        elif pending.peers:  # which of them are done is unknown; those in the same batch have arrived
            there_too = {s.rank for s in self._states.values() if s.pending is not None and rank in s.pending.peers}
            self.waits.append(Wait(rank, group, pending.op, None, None, frozenset(pending.peers) - there_too))
        elif not recorded and pending.op not in _PAIRS:
            key = (group, pending.op, pending.seq)
            if key not in self._elsewhere:  # computed once for all ranks that wait in it
                self._elsewhere[key] = self._not_there(group, pending)
            self.waits.append(Wait(rank, group, pending.op, pending.seq, None, self._elsewhere[key] - {rank}))

    def _not_there(self, group: str, pending: Operation) -> frozenset[int]:
        """Return the members of a group whose stacks do not show this collective."""
        members = self._layout.members.get(group, ())
        others = {m: s.pending for m in members if (s := self._states.get(m)) is not None and s.pending is not None}
        met_there = {m for m, other in others.items() if _alike(other, group, pending.seq)}
        if pending.seq is None:  # both names come from stacks: comparable
            met_there = {m for m in met_there if others[m].op == pending.op}
        return frozenset(members) - met_there

    def _peer(self, rank: int, o: Open, op: str, peer: int) -> None:
        """Add the wait of a point-to-point operation for its other half, which the other side also keeps open.

        If the other half is queued behind another operation, it has not arrived yet.
        """
        group = o.group
        members = self._layout.members.get(group, ())
        there = members[peer] if peer < len(members) else peer
        here = members.index(rank) if rank in members else rank
        other = self._programs.get(there)
        halves = self._passing(there).get((group, here), ()) if other is not None else ()
        met = other is not None and any(
            other.symbol_table[x.symbol].op[-4:] != op[-4:] and self.at_head(there, x) for x in halves
        )
        if not met or self.at_head(rank, o):
            self.waits.append(Wait(rank, group, op, None, o.position, frozenset() if met else frozenset({there})))

    def _missing(self, rank: int, o: Open) -> frozenset[int]:
        key = (o.group, o.seq)
        if key not in self._absent:  # computed once for all ranks that wait in it
            self._absent[key] = self._absence(o)
        missing, started, idle = self._absent[key]
        if not missing and (rank in started or (not started and self.at_head(rank, o))):
            return idle - {rank}  # begun on some devices, still queued behind another operation on others
        return missing

    def unbegun(self, rank: int, group: str, seq: int | None) -> bool:
        """True if the rank has called it and only its device has not begun it.

        Only with TORCH_NCCL_ENABLE_TIMING=1 does the recorder know when a device begins.
        """
        _, started, idle = self._absent.get((group, seq), ((), frozenset(), frozenset()))
        return bool(started) and rank in idle

    def _absence(self, o: Open) -> tuple[frozenset[int], frozenset[int], frozenset[int]]:
        missing: set[int] = set()
        started: set[int] = set()
        idle: set[int] = set()
        unknown: set[int] = set()
        for m in self._layout.members.get(o.group, ()):
            p = self._programs.get(m)
            if p is None:
                state = self._states.get(m)
                if state is None or state.alive is False or not _alike(state.pending, o.group, o.seq):
                    missing.add(m)
            elif p.latest_seq(o.group) < o.seq:
                missing.add(m)
            else:
                mine = self._open(m, o.group, o.seq)
                if mine is not None and mine.started:
                    started.add(m)
                elif mine is not None and not self.at_head(m, mine):
                    idle.add(m)
                elif mine is not None:
                    unknown.add(m)
        if started:  # this device reports starts, so operations without one have not begun
            idle |= unknown
        return frozenset(missing), frozenset(started), frozenset(idle)

    def _open(self, rank: int, group: str, seq: int) -> Open | None:
        """Return a collective that a rank has not ended."""
        if rank not in self._collectives:
            p, found = self._programs[rank], self._collectives.setdefault(rank, {})
            for x in p.open:
                if p.symbol_table[x.symbol].op not in P2P:
                    found.setdefault((x.group, x.seq), x)
        return self._collectives[rank].get((group, seq))

    def _passing(self, rank: int) -> dict[tuple[str, int], list[Open]]:
        """Return (group, other side) -> sends and receives that a rank has not ended."""
        if rank not in self._halves:
            found = self._halves[rank] = defaultdict(list)
            for x in self._programs[rank].open:
                if x.peer is not None:
                    found[x.group, x.peer].append(x)
        return self._halves[rank]

    def at_head(self, rank: int, o: Open) -> bool:
        """True if the rank's device is at this operation: it started there, or is the first unfinished one.

        Kernels of one stream run in the order in which a rank called them; across streams, the first unfinished one
        holds up its dependents.
        """
        if rank not in self._heads:
            unfinished = self._programs[rank].open
            first = min(unfinished, key=lambda x: x.position, default=None)
            self._heads[rank] = any(x.started for x in unfinished), first
        any_started, first = self._heads[rank]
        if o.started or any_started:
            return o.started
        first = first or o
        together = o.peer is not None and (o.group, o.p2p_seq) == (first.group, first.p2p_seq)
        return together or o.position <= first.position

    def pull(self, rank: int) -> int:
        """Return the number of ranks that wait for a rank."""
        return len(self.awaited.get(rank, ()))

    def sinks(self) -> list[int]:
        """Return awaited ranks that wait for no rank themselves: the ends of the chains of waiting."""
        return sorted(r for r in self.awaited if r not in self.waiting)

    def cycle(self) -> list[int]:
        """Return the smallest set of ranks that wait for each other in a circle, if any."""
        return min(self._circles(), key=len, default=[])

    def in_circles(self) -> set[int]:
        """Return all ranks that wait, directly or via others, for themselves."""
        return {rank for circle in self._circles() for rank in circle}

    def edges(self) -> dict[int, frozenset[int]]:
        """Return rank -> the ranks that it waits for, of those that wait."""
        edges: dict[int, frozenset[int]] = defaultdict(frozenset)
        for w in self.waits:
            edges[w.rank] |= w.awaited
        return dict(edges)

    def _circles(self) -> list[list[int]]:
        edges = self.edges()
        reach = {rank: _reachable(edges, rank) for rank in edges}
        return [sorted(o for o in reach[r] if r in reach.get(o, ())) for r in edges if r in reach[r]]


def _alike(pending: Operation | None, group: str, seq: int | None) -> bool:
    """True if the stack shows a collective that may be this one; missing details count as a match."""
    if pending is None or pending.op in _PAIRS:
        return False
    return (pending.group or DEFAULT) == group and (None in (pending.seq, seq) or pending.seq == seq)


def _reachable(edges: Mapping[int, frozenset[int]], start: int) -> set[int]:
    found: set[int] = set()
    new = set(edges.get(start, ()))
    while new:
        found |= new
        new = {b for a in new for b in edges.get(a, ())} - found
    return found
