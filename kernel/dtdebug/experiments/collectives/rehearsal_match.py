"""Checks that the calls of rehearsed ranks match, by walking all ranks at once, as they would run.

A rank continues after an asynchronous call, and stops at a synchronous one until all rehearsed members of the group
are there. Ranks that were not rehearsed are assumed to act like the others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from dtdebug.experiments.collectives.recording_format import Key

ENDED = "has ended"
_WINDOW = 3
"""Number of matching calls that show that two ranks are shifted."""


class RankCall(msgspec.Struct, frozen=True):
    """Call of a rank."""

    number: int
    key: Key


class Deadlock(msgspec.Struct, frozen=True, kw_only=True):
    """Place where ranks wait for a call that others do not make."""

    ranks: tuple[int, ...]
    """Ranks that diverge from the others."""
    index: int
    """Number of the call in a rank that makes it, from 1."""
    calls: dict[int, str]
    """Rank -> its call there."""
    file: str
    line: int
    """Line of the call that some ranks do not make."""


Group = tuple[tuple[int, ...], int]


def deadlock(courses: Mapping[int, Sequence[RankCall]], complete: frozenset[int]) -> Deadlock | None:
    """Return the first divergence, or None; `complete` are the ranks whose program ended normally."""
    in_group: dict[int, dict[Group, list[RankCall]]] = {rank: _by_group(calls) for rank, calls in courses.items()}
    groups = sorted({group for calls in in_group.values() for group in calls})
    found = []
    for group in groups:
        members = [rank for rank in courses if rank in group[0] or not group[0]]
        parted = _group_mismatch({rank: in_group[rank].get(group, []) for rank in members}, complete)
        if parted is not None:
            found.append(parted)
    if found:
        return min(found, key=lambda d: d.index)
    return _crossed_groups(courses, complete) or _messages(courses, complete)


def _by_group(calls: Sequence[RankCall]) -> dict[Group, list[RankCall]]:
    found: dict[Group, list[RankCall]] = defaultdict(list)
    for call in calls:
        if not _is_message(call.key):
            found[(call.key.group, call.key.ordinal)].append(call)
    return found


def _is_message(key: Key) -> bool:
    return key.op == "send" or key.op.startswith("recv")


def _fits(key: Key) -> tuple[object, ...]:
    """Return the properties that must be equal on all ranks of a collective."""
    same_shape = key.op.startswith(("allreduce", "broadcast", "reduce_"))
    root = key.peer if key.op in ("broadcast_", "reduce_", "gather_", "scatter_") else None
    elements = tuple(_numel(shape) for shape in key.shapes) if same_shape and not key.op.startswith("reduce_s") else ()
    return (key.op, root, elements, key.dtypes if same_shape else ())


def _numel(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _group_mismatch(calls: dict[int, list[RankCall]], complete: frozenset[int]) -> Deadlock | None:
    for at in range(max((len(c) for c in calls.values()), default=0)):
        here = {rank: c[at] if at < len(c) else None for rank, c in calls.items()}
        known = {rank: call for rank, call in here.items() if call is not None or rank in complete}
        kinds = {rank: _fits(call.key) if call is not None else () for rank, call in known.items()}
        if len(set(kinds.values())) > 1:
            first = _shift(calls, at)
            if first < at:  # similar calls hid it up to here
                known = {rank: c[first] if first < len(c) else None for rank, c in calls.items()}
                kinds = {rank: (_place(call),) if call is not None else () for rank, call in known.items()}
            return _describe_deadlock(known, kinds, calls, first)
    return None


def _shift(calls: dict[int, list[RankCall]], at: int) -> int:
    """Return the index of a call that one rank makes and another skips, at or before the first mismatch of kinds."""
    lines = {rank: [_place(call) for call in theirs] for rank, theirs in calls.items()}
    for index in range(at):
        for one in lines.values():
            for other in lines.values():
                here = one[index : index + 1] != other[index : index + 1]
                if here and one[index + 1 : index + 1 + _WINDOW] == other[index : index + _WINDOW]:
                    return index
    return at


def _place(call: RankCall) -> tuple[str, int, str]:
    return call.key.file, call.key.line, call.key.op


def _describe_deadlock(
    here: dict[int, RankCall | None], kinds: dict[int, tuple[object, ...]], calls: dict[int, list[RankCall]], at: int
) -> Deadlock:
    """Blame the call that ranks make unequally often; the ranks that differ from most diverge."""
    counts = {rank: Counter(map(_place, theirs)) for rank, theirs in calls.items()}

    def uneven(call: RankCall) -> bool:
        place = _place(call)
        return len({counts[rank][place] for rank in here}) > 1

    present = [(rank, call) for rank, call in here.items() if call is not None]
    call = next((c for _, c in present if uneven(c)), present[0][1])
    place = _place(call)
    if uneven(call):
        by_count = Counter(counts[r][place] for r in here)
        usual = max(by_count, key=lambda n: (by_count[n], n))
        apart = tuple(r for r in here if counts[r][place] != usual)
    else:
        by_kind = Counter(kinds.values())
        most = max(by_kind, key=lambda k: (by_kind[k], k == kinds[min(here)]))
        apart = tuple(r for r in here if kinds[r] != most)
    return Deadlock(
        ranks=apart,
        index=call.number,
        calls={r: _name(c) for r, c in here.items()},
        file=call.key.file,
        line=call.key.line,
    )


def _name(call: RankCall | None) -> str:
    return call.key.op if call is not None else ENDED


def _crossed_groups(courses: Mapping[int, Sequence[RankCall]], complete: frozenset[int]) -> Deadlock | None:
    """Find ranks that wait in different groups for each other, although each group alone matches."""
    at = dict.fromkeys(courses, 0)
    arrived: dict[tuple[Group, int], set[int]] = defaultdict(set)
    count: dict[int, Counter[Group]] = {rank: Counter() for rank in courses}
    waits: dict[int, tuple[Group, int]] = {}
    moved = True
    while moved:
        moved = False
        for rank, calls in courses.items():
            while at[rank] < len(calls):
                key = calls[at[rank]].key
                if _is_message(key):
                    at[rank] += 1
                    moved = True
                    continue
                group = (key.group, key.ordinal)
                if rank not in waits:
                    count[rank][group] += 1
                    waits[rank] = (group, count[rank][group])
                    arrived[waits[rank]].add(rank)
                    moved = True
                if key.waits and not {r for r in courses if r in key.group} <= arrived[waits[rank]]:
                    break
                waits.pop(rank)
                at[rank] += 1
                moved = True
    stuck = {rank: calls[at[rank]] for rank, calls in courses.items() if at[rank] < len(calls)}
    awaited = {r for call in stuck.values() for r in courses if r in call.key.group}
    if not stuck or not awaited <= stuck.keys() | complete:
        return None
    first = min(stuck)
    return Deadlock(
        ranks=tuple(stuck),
        index=stuck[first].number,
        calls={rank: call.key.op for rank, call in stuck.items()},
        file=stuck[first].key.file,
        line=stuck[first].key.line,
    )


def _messages(courses: Mapping[int, Sequence[RankCall]], complete: frozenset[int]) -> Deadlock | None:
    """Find a message that is awaited and never sent, between ranks that were rehearsed to their end."""
    sent: Counter[tuple[object, ...]] = Counter()
    for rank, calls in courses.items():
        for call in calls:
            if call.key.op == "send":
                sent[(rank, call.key.peer, call.key.group, call.key.tag)] += 1
    for rank, calls in courses.items():
        for call in calls:
            key = call.key
            if key.op == "recv_" and key.peer in courses and key.peer in complete:
                channel = (key.peer, rank, key.group, key.tag)
                sent[channel] -= 1
                if sent[channel] < 0:
                    return Deadlock(
                        ranks=(key.peer,),
                        index=call.number,
                        calls={rank: key.op, key.peer: ENDED},
                        file=key.file,
                        line=key.line,
                    )
    return None
