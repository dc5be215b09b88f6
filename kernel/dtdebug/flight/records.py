"""What a verdict is made from, and the sentences and places that every account of it needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from dtdebug.flight.groups import Layout
from dtdebug.flight.program import Program
from dtdebug.flight.waits import Wait, Waits
from dtdebug_taxonomy.claims import Claim, Record
from dtdebug_taxonomy.frames import call_site, own_frame, placed, shown_frame
from dtdebug_taxonomy.rank_claims import claims_of
from dtdebug_taxonomy.ranks import CallSite, Frame, GroupRef, RankState, say
from dtdebug_taxonomy.waiting import ACTIVE, phrase

_SITES = 64
"""Ranks whose call site is listed."""
_BACKWARD = "_engine_run_backward"
"""Function of torch/autograd/graph.py in which a rank is during its backward pass."""
_CLAIMED = 16
"""Claims of one kind that a verdict makes."""
_NAMED = 3
"""Groups that a sentence names."""


class Records(NamedTuple):
    """Everything that a verdict is made from."""

    programs: Mapping[int, Program]
    states: Mapping[int, RankState]
    layout: Layout
    waits: Waits
    expected: tuple[int, ...]
    """Ranks that the run has, by world size."""
    standing: bool = False
    """Somebody saw that the ranks do not move."""


def standing_still(records: Records, culprits: Iterable[int]) -> tuple[int, ...]:
    """Ranks that hang, the culprits aside."""
    return tuple(sorted({w.rank for w in records.waits.waits} - set(culprits)))


def longest_wait(records: Records, culprits: Iterable[int]) -> Wait | None:
    """The operation in which most ranks wait for the culprits."""
    wanted = set(culprits)
    waits = [w for w in records.waits.waits if w.awaited & wanted]
    if not waits:
        return None
    (key, _), *_ = Counter((w.group, w.op, w.seq) for w in waits).most_common(1)
    return next(w for w in waits if (w.group, w.op, w.seq) == key)


_SOON = 3.0
"""Seconds that an operation may have been under way without hanging; writing a dump takes up to two."""
_USUAL, _LONGEST = 1.5, 30.0
"""How much longer than any before a rank may wait without hanging, and seconds beyond which it does."""


def in_flight(records: Records, wait: Wait | None) -> float:
    """Seconds from the begin of an operation to the first dump of a rank that is missing in it, if few; else 0."""
    p = records.programs.get(wait.rank) if wait is not None else None
    if (
        records.standing
        or p is None
        or wait is None
        or wait.position is None
        or not wait.awaited <= records.programs.keys()
    ):
        return 0.0
    begun = p.time(wait.position)
    those = [records.programs[r].taken for r in wait.awaited if r in records.programs] or [p.taken]
    taken = min((t for t in those if t is not None), default=None)
    if not begun or taken is None:
        return 0.0
    age = taken - begun
    state = records.states.get(wait.rank)
    soon = _soon(p) if state is not None and state.alive and state.pending is not None else _SOON
    return max(age, 0.001) if -60 < age < soon else 0.0


def _soon(p: Program) -> float:
    """Of a rank that lives: a job with slow steps has paused before for as long as it does now."""
    longest = max((late - early for early, late in pairwise(p.created) if early), default=0.0)
    return min(_LONGEST, max(_SOON, _USUAL * longest))


def confidence(records: Records, *, certain: bool, told: bool) -> float:
    """How far the records exclude other readings, 0 to 1."""
    value = 0.95 if certain else 0.5
    if not told:
        value -= 0.15
    if len(records.programs) < len(records.expected):
        value -= 0.05
    return round(value, 2)


def group_ref(records: Records, name: str) -> GroupRef:
    """A group by name and members."""
    return GroupRef(records.layout.name(name) if name else "", records.layout.members.get(name, ()))


def frame_in_words(frame: Frame) -> str:
    """A frame in a sentence."""
    return f"{frame.file}:{frame.line} in {frame.function}"


def where_now(records: Records, rank: int) -> str:
    """Where a rank's main thread is: innermost frame, and the user's line that led there."""
    state = records.states.get(rank)
    if state is None or not state.stack:
        return ""
    if state.waiting is not None and state.waiting.kind == "stopped":
        return f"{frame_in_words(shown_frame(state.stack) or state.stack[-1])}, {phrase(state.waiting)}"
    inner, user = state.stack[-1], own_frame(state.stack)
    waiting = state.waiting
    if user is None or (user == inner and (waiting is None or waiting.kind == "sleep")):
        return frame_in_words(inner)
    if waiting is not None and waiting.kind not in (*ACTIVE, "collective"):
        return f"{frame_in_words(user)}: it waits {phrase(waiting)}"
    return frame_in_words(user) if user == inner else f"{inner.function}, called from {frame_in_words(user)}"


def seen_at(records: Records, rank: int) -> list[Claim]:
    """Where a rank is, or was last, if anything is known."""
    state = records.states.get(rank)
    frame = None if state is None else shown_frame(state.stack)
    if state is not None and frame is not None:
        inner = state.stack[-1]
        words = "" if inner == frame else f"in {inner.function} of {inner.file}:{inner.line}"
        record = Record(source="stack", path=frame.file, line=frame.line, rank=rank, words=frame.code)
        now = placed(Claim(what="at", ranks=(rank,), record=record, words=words), frame)
        return [*(c for c in claims_of(state) if c.words), now]
    if rank not in records.programs and (state is None or state.alive is None):
        return [Claim(what="system", ranks=(rank,), record=Record(source="dump", rank=rank), words="left no dump")]
    return called_last(records, [rank])


def called_last(records: Records, ranks: Iterable[int]) -> list[Claim]:
    """The last call that each rank's recorder kept."""
    claims = []
    for rank in [*ranks][:_CLAIMED]:
        p = records.programs.get(rank)
        if p is None:
            continue
        if not len(p.order):
            record = Record(source="dump", path=f"rank_{rank}", rank=rank)
            claims.append(Claim(what="system", ranks=(rank,), record=record, words=f"nothing open; {so_far(p)}"))
            continue
        last = len(p.order) - 1
        site = shown_frame(p.site(last))
        claim = Claim(
            what="last",
            ranks=(rank,),
            record=Record(source="dump", path=f"rank_{rank}", rank=rank),
            op=p.symbol(last).op,
            seq=p.seqs[last] or None,
            group=records.layout.name(p.group(last)),
        )
        claims.append(placed(claim, site))
    return claims


def waits_of(records: Records, waits: Iterable[Wait]) -> list[Claim]:
    """Who waits in what for whom, and where; ranks in one place for the same together."""
    found: dict[tuple[object, ...], tuple[Wait, Frame | None, list[int]]] = {}
    for w in waits:
        state, p = records.states.get(w.rank), records.programs.get(w.rank)
        stack = state.stack if state is not None and state.stack else ()
        if not stack and p is not None and w.position is not None:
            stack = p.site(w.position)
        frame = shown_frame(stack)
        key = (w.group, w.op, w.seq, w.awaited, frame and (frame.file, frame.line))
        found.setdefault(key, (w, frame, []))[2].append(w.rank)
    claims = []
    for w, frame, ranks in sorted(found.values(), key=lambda row: -len(row[2]))[:_CLAIMED]:
        state = records.states.get(ranks[0])
        live = state is not None and bool(state.stack)
        record = Record(source="stack" if live else "dump", path=f"rank_{ranks[0]}", rank=ranks[0])
        since = state.pending.since if state is not None and state.pending is not None else None
        claim = Claim(
            what="waits",
            ranks=tuple(ranks),
            record=record,
            op=w.op,
            seq=w.seq,
            group=records.layout.name(w.group),
            of=tuple(sorted(w.awaited)),
            seconds=max(0.0, state.time - since) if state is not None and state.time and since else None,
        )
        claims.append(placed(claim, frame))
    return claims


def so_far(p: Program) -> str:
    """How much a rank has called by its dump, in words."""
    if p.begun:
        return f"its counters say that it has begun {p.begun:,} operations"
    return "its dump has no entry and no counter"


def sites_of(records: Records, culprits: Sequence[int], waiting: Sequence[int]) -> dict[int, CallSite]:
    """Where ranks are: by their stack, else where they made the call that has not ended, else their last call."""
    found: dict[int, CallSite] = {}
    for rank in [*culprits, *waiting][:_SITES]:
        state, p = records.states.get(rank), records.programs.get(rank)
        stack: Sequence[Frame] = state.stack if state is not None else ()
        if not stack and p is not None and len(p.order):
            mine = [w.position for w in records.waits.waits if w.rank == rank and w.position is not None]
            stack = p.site(mine[0] if mine else len(p.order) - 1)
        if (site := call_site(rank, stack)) is not None:
            found[rank] = site
    return found


def by_backward(records: Records, culprits: Sequence[int], op: str, seq: int | None) -> str:
    """Words for a call that ranks wait in inside of the backward pass, where the culprits are not in theirs."""
    inside = {rank for rank, s in records.states.items() if any(f.function == _BACKWARD for f in s.stack)}
    there = sorted({w.rank for w in records.waits.waits if (w.op, w.seq) == (op, seq)} & inside)
    if not there or inside & set(culprits):
        return ""
    return f", which {say(there, 'wait')} in inside of the backward pass"


def ordered(sites: dict[int, CallSite], culprits: Sequence[int]) -> tuple[CallSite, ...]:
    """Call sites, those of the culprits first."""
    return tuple(sites[r] for r in sorted(sites, key=lambda r: (r not in culprits, r)))


def call_of(records: Records, op: str, seq: int | None, *groups: str) -> str:
    """A call in a sentence: `all_reduce #41 of dp`; of several groups the first ones are named."""
    names = [records.layout.name(group) for group in groups[:_NAMED]]
    names += [f"{len(groups) - _NAMED} more"] if len(groups) > _NAMED else []
    said = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    return f"{op}{f' #{seq}' if seq else ''} of {said}"
