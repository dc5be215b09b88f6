"""Ranks that are held up by something other than communication, in which all others wait for them.

Who waits for a lock, a pipe, a timer, a child or the GIL can't come, whatever operation or number the others wait for.
An exception holds a rank up if it has ended the thread that was to come, or if the rank still handles it, as in the
`finally` of a program whose other ranks go on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from dtdebug.flight.deaths import finished
from dtdebug_taxonomy.claims import Claim, Record, distinct, texts
from dtdebug_taxonomy.failure.children import in_process
from dtdebug_taxonomy.failure.raised import Raised
from dtdebug_taxonomy.frames import call_site, call_sites, own_frame, placed
from dtdebug_taxonomy.rank_claims import claims_of
from dtdebug_taxonomy.ranks import Broken, CallSite, CollectiveRef, Kind, RankState, Verdict, say, spell
from dtdebug_taxonomy.spelling import shortened
from dtdebug_taxonomy.waiting import ACTIVE, WaitKind, phrase

_OUTSIDE: frozenset[WaitKind] = frozenset(
    ("lock", "pipe", "socket", "child", "subprocess", "loader", "sleep", "events", "rpc", "disk", "stopped")
)
"""`thread` too, unless the thread that it waits for may be in a collective, as in the backward pass."""
_OF_CHILD: frozenset[WaitKind] = frozenset(("child", "pipe", "subprocess", "loader", "lock", "events"))
"""How a rank may wait for what a child process gives."""
_AMONG: frozenset[WaitKind] = frozenset(("collective", "store", "rendezvous"))
_AT_EXIT = ("/threading.py", "/concurrent/futures/thread.py", "/multiprocessing/util.py", "/weakref.py")
"""Files of the outermost frame while the interpreter shuts down."""
_SURE, _SEVERAL = 0.85, 0.6
_MOST = 8
_EXPLAINED = frozenset(("not_arrived", "not_understood"))
"""Kinds that say where ranks are and not why; a rank that called something else did so by its program."""
_SHOWN = 4
_ALONE = 0.6
"""Confidence that the only thread that failed is what everybody waits for, where nothing else says so."""


class Split(NamedTuple):
    """The living ranks of a job that were read."""

    held: tuple[RankState, ...]
    """Those that keep the GIL."""
    outside: tuple[RankState, ...]
    """Those that wait for something outside of the job, and for no other of these."""
    waiting: tuple[RankState, ...]
    """Those that wait in communication, or for what another rank holds."""


def elsewhere(states: Sequence[RankState]) -> Verdict | None:
    """The verdict where every living rank is either held up elsewhere or waits in communication; else None."""
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


def unended(states: Sequence[RankState], standing: Sequence[RankState]) -> Verdict | None:
    """The verdict where all that is left of the job are ranks whose program has run to its end, and not their process.

    Python waits there for threads that are no daemons, for child processes and for what `atexit` was given.
    """
    gone = [s for s in states if s.alive is False]
    if not standing or len(gone) + len(standing) < len(states) or not all(map(finished, gone)):
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
    """Its interpreter shuts down: what it runs then is below no module."""
    started = any(f.function in ("<module>", "_bootstrap") for f in state.stack)
    return bool(state.stack) and not started and state.stack[0].file.endswith(_AT_EXIT)


def holds_gil(state: RankState) -> bool:
    """A thread of it keeps the GIL, by its state or by what its main thread is in."""
    kind = state.waiting.kind if state.waiting is not None else ""
    return state.alive is not False and (state.gil_held or kind == "gil")


def in_communication(state: RankState) -> bool:
    """Its main thread waits for other ranks."""
    if holds_gil(state):
        return False
    return state.pending is not None or (state.waiting is not None and state.waiting.kind in _AMONG)


def thread_communicates(state: RankState) -> bool:
    """Its main thread waits for its threads, one of which waits for other ranks."""
    waits = state.waiting is not None and state.waiting.kind == "thread"
    return waits and any(other.kind in _AMONG for other in state.beside)


def _split(states: Sequence[RankState]) -> Split | None:
    """The parts, if nobody is left over and both those who wait and those who are waited for exist."""
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
    if not ends and not held:  # they hold what each other waits for
        return Split(held, tuple(outside), inside) if inside else None
    waiting = (*inside, *(s for s in outside if s not in ends))
    return Split(held, tuple(ends), waiting) if waiting else None


def _is_outside(state: RankState) -> bool:
    w = state.waiting
    if w is not None and w.kind == "thread":  # the frames of its own that wait, and no other thread that communicates
        return bool(w.op) and not thread_communicates(state)
    return w is not None and w.kind in _OUTSIDE


def _summary(
    those: Sequence[RankState],
    culprits: Sequence[int],
    waiting: Sequence[int],
    inside: Sequence[RankState],
    claims: Sequence[Claim],
) -> str:
    """The culprit first, what it is in and where; then who waits for it."""
    first = claims[0].text.rstrip(".")
    if len(those) > 1:
        first = f"{spell(culprits, _MOST).capitalize()} never came; {first[0].lower()}{first[1:]}"
    ops = [op for op, _ in Counter(_call(s) for s in inside).most_common(3) if op]
    locks = sorted({s.waiting.path for s in inside if s.waiting is not None and s.waiting.kind == "lock"} - {""})
    call = f" in {' and '.join(ops)}" if ops else f" to release {' and '.join(locks[:3])}" if locks else ""
    return f"{first}; {say(waiting, 'wait')} for {'it' if len(those) == 1 else 'them'}{call}."


def _call(state: RankState) -> str:
    if state.pending is not None:
        return state.pending.op
    return state.waiting.op if state.waiting is not None else ""


def _collective(inside: Sequence[RankState]) -> CollectiveRef | None:
    """What most of them wait in; None where no state says."""
    calls = Counter((_call(s), s.pending.seq if s.pending is not None else None) for s in inside if _call(s))
    return CollectiveRef(*calls.most_common(1)[0][0]) if calls else None


def with_broken_threads(verdict: Verdict, states: Sequence[RankState]) -> Verdict:
    """The verdict with what ended threads of the ranks that are waited for."""
    living = [s for s in states if s.broken and s.alive is not False and s.rank is not None]
    if not living or verdict.kind in ("none", "dead", "left"):
        return verdict
    named = [s for s in living if s.rank in verdict.culprits and _may_wait_for_it(s)]
    if not named and not verdict.culprits and len(living) == 1:
        named = [s for s in living if _may_wait_for_it(s)]
    claims = distinct((*(_claim(s, b) for s in living for b in s.broken[:1]), *verdict.claims))
    told = {"claims": claims, "evidence": texts(claims)}
    if not named or verdict.kind not in _EXPLAINED:
        return msgspec.structs.replace(verdict, **told)
    first = named[0]
    rest_waits = [s for s in states if s.rank in verdict.culprits and not s.broken]
    culprits = verdict.culprits or (first.rank or 0,)
    if all(in_communication(s) or thread_communicates(s) for s in rest_waits):  # as they do in a circle
        culprits = tuple(rank for rank in culprits if rank not in {s.rank for s in rest_waits})
    waiting = tuple(sorted({*verdict.waiting, *verdict.culprits} - {*culprits}))
    site = call_site(first.rank, first.broken[0].stack)
    sites = (*([site] if site is not None else []), *(s for s in verdict.sites if s.rank != first.rank))
    rest = verdict.summary[:1].lower() + verdict.summary[1:]
    return msgspec.structs.replace(
        verdict,
        kind="not_arrived",
        culprits=culprits,
        waiting=waiting,
        sites=sites,
        confidence=verdict.confidence if verdict.culprits else _ALONE,
        summary=f"{_claim(first, first.broken[0]).text.rstrip('.')}, which ended that thread; {rest}",
        **told,
    )


def with_handled_exceptions(verdict: Verdict, states: Sequence[RankState]) -> Verdict:
    """The verdict with the exception that led a rank, and no other, out of the common program.

    Nothing has printed it: the rank waits in an `except`, in a `finally`, or in what ends a `with`.
    """
    living = [s for s in states if s.handling is not None and s.alive is not False and s.rank is not None]
    if not living or verdict.kind in ("none", "dead", "left"):
        return verdict
    places = Counter(_raised_at(s) for s in living)
    alone = [s for s in living if places[_raised_at(s)] == 1 or len(living) < len(states) / 2]
    named = [s for s in alone if s.rank in verdict.culprits]
    if len(named) != 1 or named[0].handling is None:  # of others it is told, for it may have been handled long ago
        told = distinct((*verdict.claims, *(_claim(s, s.handling) for s in alone[:_SHOWN] if s.handling is not None)))
        return msgspec.structs.replace(verdict, claims=told, evidence=texts(told)) if alone else verdict
    rank, site = named[0].rank or 0, call_site(named[0].rank, named[0].handling.stack)
    claim = _claim(named[0], named[0].handling)
    claims = distinct((claim, *verdict.claims))
    rest = verdict.summary[:1].lower() + verdict.summary[1:]
    rest = f"it {rest.removeprefix(f'rank {rank} ')}" if rest.startswith(f"rank {rank} ") else rest
    return msgspec.structs.replace(
        verdict,
        culprits=(rank,),
        waiting=tuple(sorted({*verdict.waiting, *verdict.culprits} - {rank})),
        sites=(*([site] if site is not None else []), *(s for s in verdict.sites if s.rank != rank)),
        summary=f"{claim.text.rstrip('.')}; {rest}",
        claims=claims,
        evidence=texts(claims),
    )


def with_failed_child(verdict: Verdict, states: Sequence[RankState], children: Sequence[Raised]) -> Verdict:
    """The verdict with what a child process has raised, where the one rank that is waited for waits for a child."""
    named = [s for s in states if s.rank in verdict.culprits and s.alive is not False]
    waits = named[0].waiting if len(named) == len(verdict.culprits) == 1 else None
    if waits is None or waits.kind not in _OF_CHILD or verdict.kind not in _EXPLAINED or len(children) != 1:
        return verdict
    child, rank = children[0], verdict.culprits[0]
    if child.rank not in (None, rank):
        return verdict
    record = Record(source="output", line=child.line, words=child.text)
    claim = placed(Claim(what="raised", ranks=(rank,), record=record, words=in_process(child)), own_frame(child.frames))
    claims = distinct((claim, *verdict.claims))
    rest = verdict.summary[:1].lower() + verdict.summary[1:]
    return msgspec.structs.replace(
        verdict,
        summary=f"{claim.text.rstrip('.')}, which ended that process; {rest}",
        claims=claims,
        evidence=texts(claims),
    )


def _raised_at(state: RankState) -> object:
    stack = state.handling.stack if state.handling is not None else ()
    frame = own_frame(stack) or (stack[-1] if stack else None)
    return frame and (frame.file, frame.line)


def _may_wait_for_it(state: RankState) -> bool:
    """Its main thread waits for a thread, or for other ranks; a sleep or a lock holds it up whatever a thread did."""
    w = state.waiting
    return in_communication(state) or (w is not None and w.kind in ("thread", "events"))


def _claim(state: RankState, broken: Broken) -> Claim:
    handled = state.handling is broken
    where = "which it still handles" if handled else f"in its thread {broken.thread or 'without a name'}"
    words = f"{shortened(broken.exception)} ({where})"
    record = Record(source="agent", rank=state.rank, words=broken.exception)
    own = own_frame(broken.stack) or (broken.stack[-1] if broken.stack else None)
    return placed(Claim(what="raised", ranks=(state.rank or 0,), record=record, words=words), own)
