"""Finds threads or child processes that ended inside a living rank, by an exception or silently.

An exception blocks a rank if it ended the thread that the others wait for, or if the rank still handles it, as in the
`finally` of a program whose other ranks continue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from dtdebug.live.job.blocked_ranks import in_communication, thread_communicates
from dtdebug_taxonomy.logs.child_processes import in_process
from dtdebug_taxonomy.logs.events import PrintedException
from dtdebug_taxonomy.model.claims import Claim, Record, distinct, texts
from dtdebug_taxonomy.model.rank_ranges import shorten_text
from dtdebug_taxonomy.model.ranks import Frame, RankState, SurvivedException, Verdict, of_ranks, say, spell
from dtdebug_taxonomy.model.waiting import ALONE, Waiting, WaitKind
from dtdebug_taxonomy.stacks.frames import call_site, own_frame, place_claim

_OF_CHILD: frozenset[WaitKind] = frozenset(("child", "pipe", "subprocess", "loader", "lock", "events"))
"""Kinds of wait for something that a child process provides."""
_EXPLAINED = frozenset(("not_arrived", "not_understood"))
"""Kinds that state where ranks are but not why; a rank that made a different call did so by its program."""
_SHOWN = 4
_ALONE = 0.6
"""Confidence that the only failed thread is what all ranks wait for, without further evidence."""


def with_broken_threads(verdict: Verdict, states: Sequence[RankState]) -> Verdict:
    """Add the exceptions that ended threads of the awaited ranks."""
    living = [s for s in states if s.broken and s.alive is not False and s.rank is not None]
    if not living or verdict.kind in ("none", "dead", "left"):
        return verdict
    named = [s for s in of_ranks(living, verdict.culprits) if _may_wait_for_it(s)]
    if not named and not verdict.culprits and len(living) == 1:
        named = [s for s in living if _may_wait_for_it(s)]
    claims = distinct((*(_claim(s, b) for s in living for b in s.broken[:1]), *verdict.claims))
    told = {"claims": claims, "evidence": texts(claims)}
    if not named or verdict.kind not in _EXPLAINED:
        return msgspec.structs.replace(verdict, **told)
    first = named[0]
    rest_waits = [s for s in of_ranks(states, verdict.culprits) if not s.broken]
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
    """Add the exception that led one rank, and no other, out of the common program.

    Nothing has printed it: the rank waits in an `except`, in a `finally`, or at the end of a `with`.
    """
    living = [s for s in states if s.handling is not None and s.alive is not False and s.rank is not None]
    if not living or verdict.kind in ("none", "dead", "left"):
        return verdict
    places = Counter(_raised_at(s) for s in living)
    alone = [s for s in living if places[_raised_at(s)] == 1 or len(living) < len(states) / 2]
    named = of_ranks(alone, verdict.culprits)
    if len(named) != 1 or named[0].handling is None:  # others are only reported, as they may have been handled long ago
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


def with_gone_threads(verdict: Verdict, states: Sequence[RankState]) -> Verdict:
    """Add the threads that the waiting ranks still have, if the awaited rank has none left."""
    waits = _one_waits(verdict, states)
    others = [s for s in of_ranks(states, verdict.waiting) if s.alive is not False]
    if waits is None or ALONE not in waits.words or not others:
        return verdict
    have = [{(w.thread, w.file, w.function): w for w in s.beside if w.thread and w.file} for s in others]
    common = [w for thread, w in have[0].items() if all(thread in rest for rest in have)]
    if not common:
        return verdict
    ranks, one = tuple(sorted(s.rank for s in others if s.rank is not None)), common[0]
    record = Record(source="stack", path=one.file, line=one.line, rank=ranks[0])
    words = f"there is their thread {one.thread}"
    claim = place_claim(
        Claim(what="at", ranks=ranks, record=record, words=words), Frame(one.file, one.line, one.function)
    )
    claims = distinct((claim, *verdict.claims))
    has = f"{say(ranks, 'have')} a thread {one.thread}, {spell(verdict.culprits)} has none of that name"
    return msgspec.structs.replace(
        verdict, summary=f"{verdict.summary.rstrip('.')}; {has}.", claims=claims, evidence=texts(claims)
    )


def with_failed_child(verdict: Verdict, states: Sequence[RankState], children: Sequence[PrintedException]) -> Verdict:
    """Add the exception of a child process, if the only awaited rank waits for a child."""
    waits = _one_waits(verdict, states)
    if waits is None or waits.kind not in _OF_CHILD or len(children) != 1:
        return verdict
    child, rank = children[0], verdict.culprits[0]
    if child.rank not in (None, rank):
        return verdict
    record = Record(source="output", line=child.line, words=child.text)
    claim = place_claim(
        Claim(what="raised", ranks=(rank,), record=record, words=in_process(child)), own_frame(child.frames)
    )
    claims = distinct((claim, *verdict.claims))
    rest = verdict.summary[:1].lower() + verdict.summary[1:]
    return msgspec.structs.replace(
        verdict,
        summary=f"{claim.text.rstrip('.')}, which ended that process; {rest}",
        claims=claims,
        evidence=texts(claims),
    )


def _one_waits(verdict: Verdict, states: Sequence[RankState]) -> Waiting | None:
    """Return what the only awaited rank is in, if the verdict states where it is but not why."""
    named = [s for s in of_ranks(states, verdict.culprits) if s.alive is not False]
    return named[0].waiting if len(named) == len(verdict.culprits) == 1 and verdict.kind in _EXPLAINED else None


def _raised_at(state: RankState) -> object:
    stack = state.handling.stack if state.handling is not None else ()
    frame = own_frame(stack) or (stack[-1] if stack else None)
    return frame and (frame.file, frame.line)


def _may_wait_for_it(state: RankState) -> bool:
    """True if the main thread waits for a thread or for other ranks; a sleep or a lock is independent of threads."""
    w = state.waiting
    return in_communication(state) or (w is not None and w.kind in ("thread", "events"))


def _claim(state: RankState, broken: SurvivedException) -> Claim:
    handled = state.handling is broken
    where = "which it still handles" if handled else f"in its thread {broken.thread or 'without a name'}"
    words = f"{shorten_text(broken.exception)} ({where})"
    record = Record(source="agent", rank=state.rank, words=broken.exception)
    own = own_frame(broken.stack) or (broken.stack[-1] if broken.stack else None)
    return place_claim(Claim(what="raised", ranks=(state.rank or 0,), record=record, words=words), own)
