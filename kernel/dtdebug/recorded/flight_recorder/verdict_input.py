"""Input of a verdict, and the claims and call sites that every verdict needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from dtdebug.recorded.flight_recorder.group_layout import Layout
from dtdebug.recorded.flight_recorder.rank_program import Program
from dtdebug.recorded.flight_recorder.wait_graph import Wait, Waits
from dtdebug_taxonomy.model.claims import Claim, Record
from dtdebug_taxonomy.model.ranks import CallSite, Frame, GroupRef, RankState, say
from dtdebug_taxonomy.model.waiting import ACTIVE, phrase
from dtdebug_taxonomy.stacks.activity import is_in_backward
from dtdebug_taxonomy.stacks.claims_of_state import claims_of
from dtdebug_taxonomy.stacks.frames import call_site, own_frame, place_claim, shown_frame

_SITES = 64
"""Maximum number of ranks whose call site is listed."""
_BACKWARD = "_engine_run_backward"
"""Function of torch/autograd/graph.py that is on a rank's stack during its backward pass."""
_CLAIMED = 16
"""Maximum number of claims of one kind in a verdict."""
_NAMED = 3
"""Maximum number of groups named in a sentence."""


class Records(NamedTuple):
    """Input of a verdict."""

    programs: Mapping[int, Program]
    states: Mapping[int, RankState]
    layout: Layout
    waits: Waits
    expected: tuple[int, ...]
    """Ranks of the run, by world size."""
    standing: bool = False
    """True if an observer saw that the ranks do not move."""


def standing_still(records: Records, culprits: Iterable[int]) -> tuple[int, ...]:
    """Return the hanging ranks without the culprits."""
    return tuple(sorted({w.rank for w in records.waits.waits} - set(culprits)))


def longest_wait(records: Records, culprits: Iterable[int]) -> Wait | None:
    """Return the operation in which most ranks wait for the culprits."""
    wanted = set(culprits)
    waits = [w for w in records.waits.waits if w.awaited & wanted]
    if not waits:
        return None
    (key, _), *_ = Counter((w.group, w.op, w.seq) for w in waits).most_common(1)
    return next(w for w in waits if (w.group, w.op, w.seq) == key)


_SOON = 3.0
"""Seconds that an operation may be in progress without hanging; writing a dump takes up to two."""
_USUAL, _LONGEST = 1.5, 30.0
"""Factor by which a wait may exceed the longest one before without being a hang, and the limit in seconds."""


def in_flight(records: Records, wait: Wait | None) -> float:
    """Return the seconds from an operation's start to the first dump of a rank missing in it; 0 if that is too long."""
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
    """Return the limit in seconds for a living rank: a job with slow steps has paused as long before."""
    longest = max((late - early for early, late in pairwise(p.created) if early), default=0.0)
    return min(_LONGEST, max(_SOON, _USUAL * longest))


def confidence(records: Records, *, certain: bool, told: bool) -> float:
    """Return how well the records exclude other readings, 0 to 1."""
    value = 0.95 if certain else 0.5
    if not told:
        value -= 0.15
    if len(records.programs) < len(records.expected):
        value -= 0.05
    return round(value, 2)


def group_ref(records: Records, name: str) -> GroupRef:
    """Return a group by name and members."""
    return GroupRef(records.layout.name(name) if name else "", records.layout.members.get(name, ()))


def frame_in_words(frame: Frame) -> str:
    """Format a frame for a sentence."""
    return f"{frame.file}:{frame.line} in {frame.function}"


def where_now(records: Records, rank: int) -> str:
    """Describe where a rank's main thread is: innermost frame, and the user's line that led there."""
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
    function = "backward" if is_in_backward(state) else inner.function
    return frame_in_words(user) if user == inner else f"{function}, called from {frame_in_words(user)}"


def seen_at(records: Records, rank: int) -> list[Claim]:
    """Return claims on a rank's current or last known place; empty if unknown."""
    state = records.states.get(rank)
    frame = None if state is None else shown_frame(state.stack)
    if state is not None and frame is not None:
        inner = state.stack[-1]
        words = "" if inner == frame else f"in {inner.function} of {inner.file}:{inner.line}"
        record = Record(source="stack", path=frame.file, line=frame.line, rank=rank, words=frame.code)
        now = place_claim(Claim(what="at", ranks=(rank,), record=record, words=words), frame)
        return [*(c for c in claims_of(state) if c.words), now]
    if rank not in records.programs and (state is None or state.alive is None):
        return [Claim(what="system", ranks=(rank,), record=Record(source="dump", rank=rank), words="left no dump")]
    return called_last(records, [rank])


def called_last(records: Records, ranks: Iterable[int]) -> list[Claim]:
    """Return claims on the last call that each rank's recorder kept."""
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
        claims.append(place_claim(claim, site))
    return claims


def waits_of(records: Records, waits: Iterable[Wait]) -> list[Claim]:
    """Return one claim for each set of ranks that wait at one place in one operation for the same ranks."""
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
        claims.append(place_claim(claim, frame))
    return claims


def so_far(p: Program) -> str:
    """Describe how much a rank has called according to its dump."""
    if p.begun:
        return f"its counters say that it has begun {p.begun:,} operations"
    return "its dump has no entry and no counter"


def sites_of(records: Records, culprits: Sequence[int], waiting: Sequence[int]) -> dict[int, CallSite]:
    """Return the sites of ranks: from the stack, else of their unfinished call, else of their last call."""
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
    """Return a clause if ranks wait for the call inside the backward pass and the culprits are not in theirs."""
    inside = {rank for rank, s in records.states.items() if any(f.function == _BACKWARD for f in s.stack)}
    there = sorted({w.rank for w in records.waits.waits if (w.op, w.seq) == (op, seq)} & inside)
    if not there or inside & set(culprits):
        return ""
    return f"; {say(there, 'wait')} for it in backward()"


def sort_sites(sites: dict[int, CallSite], culprits: Sequence[int]) -> tuple[CallSite, ...]:
    """Sort call sites, those of the culprits first."""
    return tuple(sites[r] for r in sorted(sites, key=lambda r: (r not in culprits, r)))


def call_of(records: Records, op: str, seq: int | None, *groups: str) -> str:
    """Format a call for a sentence: `all_reduce #41 of dp`; at most three groups are named."""
    names = [records.layout.name(group) for group in groups[:_NAMED]]
    names += [f"{len(groups) - _NAMED} more"] if len(groups) > _NAMED else []
    said = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    return f"{op}{f' #{seq}' if seq else ''} of {said}"
