"""Finds the holder of what a rank waits for: circles of locks or pipes, and the rank that has not answered a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from dtdebug_taxonomy.model.claims import Claim, texts
from dtdebug_taxonomy.model.ranks import CallSite, RankState, Verdict, of_ranks, say, spell
from dtdebug_taxonomy.model.waiting import REMOTE, Waiting
from dtdebug_taxonomy.stacks.claims_of_state import claims_of
from dtdebug_taxonomy.stacks.frames import call_sites

_HELD = ("lock", "pipe")
_SURE, _LIKELY = 0.95, 0.8
_LINKS, _MOST = 4, 8
"""Maximum numbers of ranks of a circle, and of other ranks, whose waits are listed."""


def holders_in_circle(states: Sequence[RankState], verdict: Verdict | None) -> Verdict | None:
    """Return the verdict if ranks hold what each other waits for; `verdict` supplies the collective of the rest.

    The holder itself may wait in communication for the only rank that has not arrived.
    """
    living = {s.rank: s for s in states if s.rank is not None and s.alive is not False}
    awaited = {
        rank: s.waiting.rank
        for rank, s in living.items()
        if s.waiting is not None and s.waiting.kind in _HELD and s.waiting.rank in living and s.waiting.rank != rank
    }
    if awaited and verdict is not None and verdict.kind == "not_arrived" and len(verdict.culprits) == 1:
        awaited |= {rank: verdict.culprits[0] for rank in verdict.waiting if rank in living and rank not in awaited}
    circle = _circle(awaited)
    if not circle:
        return None
    inside = [living[rank] for rank in circle]
    rest = [s for rank, s in living.items() if rank not in circle]
    links = [c if c.of else replace(c, of=(awaited[rank],)) for rank in circle if (c := claims_of(living[rank])[0])]
    claims = (*links, *(claim for s in rest[:_MOST] for claim in claims_of(s)[:1]))
    culprits = tuple(sorted(circle))
    others = tuple(sorted(s.rank for s in rest if s.rank is not None))
    said = "; ".join(f"{c.text[:1].lower()}{c.text[1:].rstrip('.')}" for c in links[:_LINKS])
    tail = f". {say(others, 'wait').capitalize()} for them" if others else ""
    found = Verdict(
        kind="not_arrived",
        culprits=culprits,
        waiting=others,
        sites=call_sites((*inside, *rest)),
        confidence=_SURE,
        summary=f"{spell(culprits).capitalize()} wait for each other, and none can go on: {said}{tail}.",
        claims=claims,
        evidence=texts(claims),
    )
    return found if verdict is None else replace(found, group=verdict.group, collective=verdict.collective)


def with_remote_call(verdict: Verdict, states: Sequence[RankState]) -> Verdict:
    """Add the only thread that runs a remote call, if the named rank waits for an answer.

    If nothing is understood, that thread's rank is the one that the asking ranks wait for.
    """
    living = [s for s in states if s.rank is not None and s.alive is not False]
    rows = [(s, w) for s in living for w in s.beside if w.words == REMOTE]
    if len(rows) != 1:
        return verdict
    state, answers = rows[0]
    claim = next(c for c in claims_of(state) if c.what == "system" and REMOTE in c.words and answers.thread in c.words)
    if verdict.kind == "not_understood" and not verdict.culprits:
        asking = [s for s in living if s is not state and _asks(s)]
        return _remote_call_verdict(verdict, state, answers, claim, asking) if asking else verdict
    named = of_ranks(living, verdict.culprits)
    if len(named) != 1 or named[0] is state or not _asks(named[0]):
        return verdict
    claims = (claim, *verdict.claims)
    return replace(verdict, summary=f"{verdict.summary} {claim.text}", claims=claims, evidence=texts(claims))


def _remote_call_verdict(
    verdict: Verdict, state: RankState, answers: Waiting, claim: Claim, asking: Sequence[RankState]
) -> Verdict:
    """Return the verdict on the rank whose thread `answers` a call that the `asking` ranks wait for."""
    at = CallSite(claim.ranks[0], answers.file, answers.line, answers.function)
    waits = [c for s in asking for c in claims_of(s)[:1]]
    claims = (*waits, claim, *(c for c in verdict.claims if c not in waits and c.text != claim.text))
    return replace(
        verdict,
        kind="not_arrived",
        culprits=claim.ranks,
        waiting=tuple(s.rank for s in asking if s.rank is not None),
        sites=(at, *(site for site in verdict.sites if site.rank != state.rank)) if answers.file else verdict.sites,
        confidence=_LIKELY,
        summary=f"{waits[0].text} {claim.text}",
        claims=claims,
        evidence=texts(claims),
    )


def _asks(state: RankState) -> bool:
    """True if the main thread waits for the answer to a call."""
    w = state.waiting
    return w is not None and (w.kind == "rpc" or w.op.endswith("Future.wait"))


def _circle(awaited: Mapping[int, int]) -> list[int]:
    """Return the ranks of a circle, in the order in which they wait for each other; empty if there is none."""
    for first in awaited:
        path: list[int] = []
        rank = first
        while rank in awaited and rank not in path:
            path.append(rank)
            rank = awaited[rank]
        if rank == first and len(path) > 1:
            return path
    return []
