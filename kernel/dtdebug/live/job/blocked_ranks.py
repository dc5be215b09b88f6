"""Finds ranks blocked outside of communication while all others wait for them.

A rank that waits for a lock, a pipe, a timer, a child or the GIL can't arrive, whatever the others wait in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from dtdebug.recorded.flight_recorder.ended_ranks import has_finished
from dtdebug_taxonomy.model.claims import Claim, texts
from dtdebug_taxonomy.model.ranks import CallSite, CollectiveRef, Kind, RankState, Verdict, say, spell
from dtdebug_taxonomy.model.waiting import ACTIVE, WaitKind, phrase
from dtdebug_taxonomy.stacks.claims_of_state import claims_of
from dtdebug_taxonomy.stacks.frames import call_sites

_OUTSIDE: frozenset[WaitKind] = frozenset(
    ("lock", "pipe", "socket", "child", "subprocess", "loader", "sleep", "events", "rpc", "disk", "stopped")
)
"""`thread` counts too, unless the awaited thread may be in a collective, as in the backward pass."""
_AMONG: frozenset[WaitKind] = frozenset(("collective", "store", "rendezvous"))
_AT_EXIT = ("/threading.py", "/concurrent/futures/thread.py", "/multiprocessing/util.py", "/weakref.py")
"""Files of the outermost frame during interpreter shutdown."""
_SURE, _SEVERAL = 0.85, 0.6
_MOST = 8


class Split(NamedTuple):
    """Partition of a job's living ranks that were read."""

    held: tuple[RankState, ...]
    """Ranks that hold the GIL."""
    outside: tuple[RankState, ...]
    """Ranks that wait for something outside of the job, and for no other rank listed here."""
    waiting: tuple[RankState, ...]
    """Ranks that wait in communication, or for something that another rank holds."""


def blocked_verdict(states: Sequence[RankState]) -> Verdict | None:
    """Return the verdict if every living rank is either blocked outside of communication or waits in it; else None."""
    split = _split(states)
    if split is None:
        return None
    kind: Kind = "gil_held" if split.held else "not_arrived"
    those = split.held or split.outside
    culprits = tuple(sorted(s.rank for s in those if s.rank is not None))
    waiting = tuple(sorted(s.rank for s in split.waiting if s.rank is not None))
    found = [claim for s in those[:_MOST] for claim in claims_of(s)]
    theirs = [claim for s in split.waiting[:_MOST] for claim in claims_of(s)[:1]]
    claims = [*(c for c in found if c.what != "system"), *theirs, *(c for c in found if c.what == "system")]
    return Verdict(
        kind=kind,
        culprits=culprits,
        waiting=waiting,
        collective=_collective(split.waiting),
        sites=call_sites((*those, *split.waiting)),
        confidence=_SURE if len(culprits) == 1 else _SEVERAL,
        summary=_summary(those, culprits, waiting, split.waiting, claims),
        claims=tuple(claims),
        evidence=texts(claims),
    )


def exiting_verdict(states: Sequence[RankState], standing: Sequence[RankState]) -> Verdict | None:
    """Return the verdict if the only ranks left have finished the program but not the process.

    Python waits there for non-daemon threads, for child processes and for `atexit` handlers.
    """
    gone = [s for s in states if s.alive is False]
    if not standing or len(gone) + len(standing) < len(states) or not all(map(has_finished, gone)):
        return None
    if not all(map(_ends, standing)):
        return None
    culprits = tuple(sorted(s.rank for s in standing if s.rank is not None))
    claims = [claim for s in standing[:_MOST] for claim in claims_of(s)]
    w = standing[0].waiting
    why = f": it waits {phrase(w)}" if w is not None and w.kind not in ACTIVE else ""
    place = (CallSite(culprits[0], w.file, w.line, w.function),) if w is not None and w.file else ()
    return Verdict(
        kind="not_arrived",
        culprits=culprits,
        sites=place or call_sites(standing),
        confidence=_SURE,
        summary=f"{say(culprits, 'have').capitalize()} run the program to its end, and the process does not end{why}.",
        claims=tuple(claims),
        evidence=texts(claims),
    )


def _ends(state: RankState) -> bool:
    """True if the interpreter shuts down: its frames are then not below a module."""
    started = any(f.function in ("<module>", "_bootstrap") for f in state.stack)
    return bool(state.stack) and not started and state.stack[0].file.endswith(_AT_EXIT)


def holds_gil(state: RankState) -> bool:
    """True if one of its threads holds the GIL, by its state or by what its main thread is in."""
    kind = state.waiting.kind if state.waiting is not None else ""
    return state.alive is not False and (state.gil_held or kind == "gil")


def in_communication(state: RankState) -> bool:
    """True if the main thread waits for other ranks."""
    if holds_gil(state):
        return False
    return state.pending is not None or (state.waiting is not None and state.waiting.kind in _AMONG)


def thread_communicates(state: RankState) -> bool:
    """True if the main thread waits for its threads, one of which waits for other ranks."""
    waits = state.waiting is not None and state.waiting.kind == "thread"
    return waits and any(other.kind in _AMONG for other in state.beside)


def _split(states: Sequence[RankState]) -> Split | None:
    """Return the partition if it is complete and has both waiting and awaited ranks; else None."""
    living = [s for s in states if s.rank is not None and s.alive is not False]
    world = max((s.world_size or 0 for s in living), default=0)
    if not living or any(s.alive is None for s in living) or len({s.rank for s in states}) < world:
        return None
    held = tuple(s for s in living if holds_gil(s))
    inside = tuple(s for s in living if in_communication(s))
    outside = [s for s in living if s not in held and s not in inside and _is_outside(s)]
    if not (held or outside) or len(held) + len(inside) + len(outside) < len(living):
        return None
    ranks = {s.rank for s in living}
    ends = [s for s in outside if s.waiting is None or s.waiting.rank not in ranks - {s.rank}]
    if not ends and not held:  # each holds what the other waits for
        return Split(held, tuple(outside), inside) if inside else None
    waiting = (*inside, *(s for s in outside if s not in ends))
    return Split(held, tuple(ends), waiting) if waiting else None


def _is_outside(state: RankState) -> bool:
    w = state.waiting
    if w is not None and w.kind == "thread":  # waits in its own frames, and no other thread communicates
        return bool(w.op) and not thread_communicates(state)
    return w is not None and w.kind in _OUTSIDE


def _summary(
    those: Sequence[RankState],
    culprits: Sequence[int],
    waiting: Sequence[int],
    inside: Sequence[RankState],
    claims: Sequence[Claim],
) -> str:
    """Describe the culprit and its place, then the ranks that wait for it."""
    first = claims[0].text.rstrip(".")
    if len(those) > 1:
        first = f"{spell(culprits, _MOST).capitalize()} have not come; {first[0].lower()}{first[1:]}"
    ops = [op for op, _ in Counter(_call(s) for s in inside).most_common(3) if op]
    locks = sorted({s.waiting.path for s in inside if s.waiting is not None and s.waiting.kind == "lock"} - {""})
    call = f" in {' and '.join(ops)}" if ops else f" to release {' and '.join(locks[:3])}" if locks else ""
    return f"{first}; {say(waiting, 'wait')} for {'it' if len(those) == 1 else 'them'}{call}."


def _call(state: RankState) -> str:
    if state.pending is not None:
        return state.pending.op
    return state.waiting.op if state.waiting is not None else ""


def _collective(inside: Sequence[RankState]) -> CollectiveRef | None:
    """Return the operation that most of them wait in; None if unknown."""
    calls = Counter((_call(s), s.pending.seq if s.pending is not None else None) for s in inside if _call(s))
    return CollectiveRef(*calls.most_common(1)[0][0]) if calls else None
