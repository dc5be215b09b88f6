"""Reconciles the recorded verdict with observed progress: moving ranks are not hung, others may not be understood.

`none` needs every rank to have made progress; a rank that still works is slow, whatever waits for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from dtdebug.live.job.blocked_ranks import blocked_verdict, exiting_verdict, thread_communicates
from dtdebug.live.job.failed_threads import with_broken_threads, with_gone_threads, with_handled_exceptions
from dtdebug.live.job.lock_holders import holders_in_circle, with_remote_call
from dtdebug.live.job.not_understood import claim_on, not_understood, waited_seconds
from dtdebug.live.probe.init_verdict import arrival
from dtdebug.recorded.flight_recorder.ended_ranks import ending, has_finished
from dtdebug_taxonomy.logs.exits import LAUNCHER
from dtdebug_taxonomy.model.claims import texts
from dtdebug_taxonomy.model.ranks import RankState, Verdict, of_ranks, say, spell
from dtdebug_taxonomy.model.waiting import ACTIVE, phrase
from dtdebug_taxonomy.stacks.activity import SLOW, doing, is_compiler
from dtdebug_taxonomy.stacks.claims_of_state import claims_of
from dtdebug_taxonomy.stacks.frames import call_sites, is_library

_FACTS = frozenset(("skipped", "extra", "replaced", "wrong_size", "wrong_dtype", "wrong_root", "dead", "left"))
"""Kinds that hold whatever the rank does now."""
_BY_STACKS = frozenset(("not_arrived", "skipped", "replaced"))
_CIRCLE = 0.8
"""Kinds, and the maximum confidence in them, that stacks alone may override for ranks that wait for each other."""
_DOUBTFUL, _PARTLY = 0.4, 0.3
"""Confidence that a rank which still works hangs, and that there is no hang if some ranks gave no answer."""
_CHANGED = "counters or stacks changed between two looks"
_PROCESSES = ("subprocess", "child")
_LONG = 10.0
"""Seconds that ranks may wait for a rank, without a limit from the user, before it counts as late."""
_ENTIRELY = frozenset(("saving_checkpoint", "loading_checkpoint", "preparing_data", "downloading"))
"""Activities whose library may call the user's code; imports and compilation may have the whole program below them."""
_WORDS = {
    "importing": "importing a module", "compiling": "compiling", "downloading": "downloading",
    "preparing_data": "preparing data", "loading_checkpoint": "loading a checkpoint",
    "saving_checkpoint": "saving a checkpoint", "evaluating": "evaluating",
}  # fmt: skip


class TwoLooks(NamedTuple):
    """Result of observing the ranks twice."""

    states: Sequence[RankState]
    progress: Mapping[int, str]
    moving: bool | None = None
    """True if the counters moved until then, False if they rested for the user's limit, None if not watched."""
    seconds: float = 0.0
    """Seconds without changed counters."""


def reconcile_verdict(verdict: Verdict | None, seen: TwoLooks) -> Verdict:
    """Return the verdict, reconciled with the observed ranks."""
    found = with_gone_threads(with_broken_threads(_reconcile(verdict, seen), seen.states), seen.states)
    return with_remote_call(with_handled_exceptions(found, seen.states), seen.states)


def _reconcile(verdict: Verdict | None, seen: TwoLooks) -> Verdict:
    states = [s for s in seen.states if s.rank is not None]
    if verdict is None or verdict.kind in ("none", "not_arrived", "fabric", "not_understood"):
        verdict = arrival(states) or verdict
        if not seen.moving and (circle := holders_in_circle(states, verdict)) is not None:
            return circle
    verdict = _held_up(verdict, states, seen)
    if verdict is None or verdict.kind in ("none", "not_understood") or _by_threads(verdict, states):
        return _without_culprits(verdict, states, seen)
    if verdict.kind in _FACTS:
        return verdict
    works = [r for r in verdict.culprits if _is_working(r, seen)]
    slow = healthy(verdict.culprits, states)
    if verdict.culprits and len(works) == len(verdict.culprits):
        return _slow(verdict, states, seen, slow)
    if verdict.kind == "not_arrived" and slow:
        return _may_come(verdict, states, f"is {slow}; no progress was seen", "at")
    return verdict


def _by_threads(verdict: Verdict, states: Sequence[RankState]) -> bool:
    """True if the culprits wait for their own threads, which are in communication: they are blocked like the others."""
    named = of_ranks(states, verdict.culprits)
    return verdict.kind == "not_arrived" and bool(named) and all(map(thread_communicates, named))


def _held_up(verdict: Verdict | None, states: Sequence[RankState], seen: TwoLooks) -> Verdict | None:
    """Return the ranks that block all others, if the verdict does not name them; else the verdict."""
    found = (
        None if seen.moving or (verdict is not None and verdict.kind in ("dead", "left")) else blocked_verdict(states)
    )
    if found is None or any(seen.progress.get(rank) == "slow" for rank in (*found.culprits, *found.waiting)):
        return verdict
    if seen.moving is None and any(seen.progress.get(rank, "unknown") == "unknown" for rank in found.culprits):
        return verdict  # it may have been there only for a moment
    if verdict is None or verdict.kind in ("none", "not_understood"):
        return found
    same = set(verdict.culprits) <= set(found.culprits)
    if found.kind == "gil_held" and verdict.kind == "not_arrived" and same:
        known = {"group": verdict.group, "collective": verdict.collective or found.collective}
        return msgspec.structs.replace(found, **known)
    doubtful = verdict.kind in _BY_STACKS and verdict.confidence <= _CIRCLE
    others = set(verdict.culprits) - set(found.culprits)
    wait_too = others == set(verdict.culprits) or others <= set(found.waiting)  # in a call of another group
    return found if doubtful and others and wait_too else verdict


def healthy(ranks: Iterable[int], states: Sequence[RankState]) -> str:
    """Return the slow activity that all these ranks are in, by the libraries' frames; "" if there is none."""
    by_rank = {s.rank: s for s in states}
    found = {_activity(by_rank[r]) if r in by_rank else "" for r in ranks}
    return _WORDS.get(found.pop(), "") if len(found) == 1 else ""


def _activity(state: RankState) -> str:
    stack, waits = state.stack, state.waiting
    if waits is not None and waits.kind in _PROCESSES and is_compiler(waits.command):
        return "compiling"
    own = max((n for n, frame in enumerate(stack) if not is_library(frame.file)), default=-1)
    what = doing(stack[own + 1 :])
    if what in SLOW:
        return what
    what = doing([frame for frame in stack if is_library(frame.file)])
    return what if what in _ENTIRELY else ""


def _is_working(rank: int, seen: TwoLooks) -> bool:
    return seen.progress.get(rank) in ("slow", "busy")


def _without_culprits(verdict: Verdict | None, states: Sequence[RankState], seen: TwoLooks) -> Verdict:
    """Return the verdict if the records name no culprit: no hang, or not understood."""
    if not states:
        return Verdict(kind="not_understood", summary="No rank was seen.")
    if seen.moving:
        return _well(verdict, states, "its counters moved until it was last read")
    living = [s for s in states if s.alive is not False]
    if not living:
        return _ended_verdict(verdict, states)
    moved = [s for s in living if _has_moved(s, seen)]
    rest = [s for s in living if s not in moved]
    if not rest:
        return _well(verdict, moved, "")
    dark = [s for s in rest if s.alive is None]
    if len(dark) == len(rest) and _all_came(moved, seen, {s.rank for s in dark if s.rank is not None}):
        well = _well(verdict, moved, "")
        said = (
            f"{spell([s.rank for s in dark if s.rank is not None], 8)} gave no answer, but ended operations with them"
        )
        return msgspec.structs.replace(well, confidence=_PARTLY, summary=f"{well.summary} {said[0].upper()}{said[1:]}.")
    if moved and not dark and seen.moving is None and all(s.pending for s in rest):
        ranks = tuple(s.rank for s in moved if s.rank is not None)
        others = tuple(s.rank for s in rest if s.rank is not None)
        well, waits = _well(verdict, moved, ""), [claim for s in rest[:8] for claim in claims_of(s)[:1]]
        claims = (*well.claims, *waits)
        head = f"{say(ranks, 'are')} at work{_place(moved)}; {say(others, 'wait')} for that"
        told = {"claims": claims, "evidence": texts(claims), "waiting": others}
        if max(map(waited_seconds, rest)) < _LONG:
            summary = f"No hang so far: {head}."
            return msgspec.structs.replace(well, summary=summary, confidence=0.5, stragglers=ranks, **told)
        return Verdict(
            kind="not_arrived",
            culprits=ranks,
            sites=call_sites((*moved, *rest)),
            confidence=_DOUBTFUL,
            summary=f"{head[0].upper()}{head[1:]}.",
            **told,  # type: ignore[arg-type]
        )
    still = [s for s in rest if s.rank is not None and s.alive is not None]
    return exiting_verdict(states, still) or not_understood(states, still, seen.progress, seen.seconds)


def _has_moved(state: RankState, seen: TwoLooks) -> bool:
    """True if the rank made progress; CPU time alone does not count inside an operation while counters rest."""
    now = seen.progress.get(-1 if state.rank is None else state.rank)
    inside = any(g.enqueued and g.completed is not None and g.enqueued > g.completed for g in state.groups)
    return now == "slow" or (now == "busy" and not (seen.moving is False and inside))


def _all_came(moved: Sequence[RankState], seen: TwoLooks, dark: set[int]) -> bool:
    """True if the silent ranks have ended operations together with a rank whose counters moved."""
    counted = [s for s in moved if seen.progress.get(s.rank or 0) == "slow"]
    return any(dark <= set(g.ranks) and g.completed for s in counted for g in s.groups)


def _well(verdict: Verdict | None, moved: Sequence[RankState], words: str) -> Verdict:
    claims = [claim_on("moved", [s], words=words) for s in moved[:8]] if words else []
    ranks = [s.rank for s in moved if s.rank is not None]
    if not claims:
        claims = [claim_on("moved", moved, words=f"{_CHANGED}, or it used the CPU")]
    late = verdict.stragglers if verdict is not None else ()
    slow = f" {say(late, 'arrive').capitalize()} last again and again." if late else ""
    summary = f"{say(ranks, 'are').capitalize()} making progress.{slow}"
    return Verdict(
        kind="none",
        confidence=0.9,
        summary=summary,
        claims=tuple(claims),
        evidence=(*texts(claims), *(verdict.evidence if late and verdict is not None else ())),
        stragglers=late,
    )


def _ended_verdict(verdict: Verdict | None, states: Sequence[RankState]) -> Verdict:
    """Return the verdict if all ranks have ended and no end explains the others."""
    if all(has_finished(s) for s in states):
        claim = claim_on("left", states)
        ranks = [s.rank for s in states if s.rank is not None]
        summary = f"{spell(ranks, 8).capitalize()} finished the program."
        return Verdict(kind="none", confidence=0.9, summary=summary, claims=(claim,), evidence=(claim.text,))
    claims = [ending(s) for s in states[:64]]
    said = verdict.summary if verdict is not None and verdict.kind == "not_understood" else ""
    ranks = [s.rank for s in states if s.rank is not None]
    alike = len(states) == len(claims) > 1 and len({(c.what, c.words, c.file, c.line) for c in claims}) == 1
    if alike and not said and claims[0].what == "raised":
        both = msgspec.structs.replace(claims[0], ranks=tuple(ranks)).text.rstrip(".")
        said = f"{both}; no record shows which of them did so first."
    elif alike and not said and all(s.signal in LAUNCHER and not s.exception for s in states):
        both = f"{spell(ranks, 8).capitalize()} were ended by {states[0].signal}"
        said = f"{both}; no record shows that one of them had failed."
    return Verdict(
        kind="not_understood",
        waiting=(),
        summary=said or f"{say(ranks, 'have').capitalize()} ended, and no record shows which of them failed first.",
        claims=tuple(claims),
        evidence=texts(claims),
    )


def _slow(verdict: Verdict, states: Sequence[RankState], seen: TwoLooks, what: str) -> Verdict:
    """Return the verdict if others wait for a rank that works: slow, and a hang only if it never ends."""
    rest = all(seen.progress.get(rank) == "stuck" for rank in verdict.waiting)
    waited = max((seen.seconds * rest, *(waited_seconds(s) for s in of_ranks(states, verdict.waiting))))
    young = seen.moving is not False and waited < _LONG and verdict.kind != "gil_held"
    culprits = of_ranks(states, verdict.culprits)
    if (what and verdict.kind == "not_arrived") or young:
        now = what or _at_rest(culprits)
        doing_now = now or "computing"
        claims = (claim_on("moved", culprits, words=_describe_work(culprits) if now else doing_now), *verdict.claims)
        return msgspec.structs.replace(
            verdict,
            kind="none",
            culprits=(),
            confidence=0.5,
            stragglers=verdict.culprits,
            summary=f"No hang so far: {say(verdict.culprits, 'are')} {doing_now}{_place(culprits)}; "
            f"{say(verdict.waiting, 'wait')} for that.",
            claims=claims,
            evidence=(texts(claims[:1])[0], *verdict.evidence),
            alternatives=(),
        )
    children = culprits and all(s.waiting is not None and s.waiting.kind in _PROCESSES for s in culprits)
    moves = "waits for a child process that works" if children else "moves from place to place"
    now = moves if _at_rest(culprits) else "is still computing"
    return _may_come(verdict, states, now, "moved")


def _at_rest(states: Sequence[RankState]) -> str:
    """Describe what ranks that have moved wait in now; "" if they are at work."""
    found = {phrase(s.waiting) if s.waiting is not None and s.waiting.kind not in ACTIVE else "" for s in states}
    words = found.pop() if len(found) == 1 else ""
    return words and f"waiting {words}"


def _describe_work(states: Sequence[RankState]) -> str:
    """Describe what shows that ranks are at work."""
    if states and all(s.waiting is not None and s.waiting.kind in _PROCESSES for s in states):
        return "its child processes use the CPU, or its stack changed between two looks"
    return _CHANGED if _at_rest(states) else "it uses the CPU"


def _may_come(verdict: Verdict, states: Sequence[RankState], words: str, what: str) -> Verdict:
    culprits = of_ranks(states, verdict.culprits)
    used = _describe_work(culprits)
    claim = claim_on("moved", culprits, words=used) if what == "moved" else None
    claims = (*([claim] if claim else []), *verdict.claims)
    return msgspec.structs.replace(
        verdict,
        confidence=min(verdict.confidence, _DOUBTFUL),
        summary=f"{verdict.summary.rstrip('.')}; it {words}.",
        claims=claims,
        evidence=(*([claim.text] if claim else []), *verdict.evidence),
    )


def _place(states: Sequence[RankState]) -> str:
    sites = Counter((site.file, site.line, site.function) for site in call_sites(states))
    if not sites:
        return ""
    (file, line, function), _ = sites.most_common(1)[0]
    return f" at {file}:{line} in {function}"
