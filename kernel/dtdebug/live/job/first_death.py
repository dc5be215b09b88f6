"""Determines how each rank ended, and which end caused the others, by cause and not by clock.

A rank whose peer has gone fails with an error of communication, often before the culprit's process ends. So a rank
that raised a different error, or was killed, comes before all ranks that only lost their peers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from dtdebug.live.probe.liveness import Death
from dtdebug.privacy.sanitize import clean
from dtdebug.recorded.flight_recorder.ended_ranks import ending, lost_peer
from dtdebug_taxonomy.logs import exits
from dtdebug_taxonomy.logs.child_processes import in_process, says_child_has_gone
from dtdebug_taxonomy.logs.events import PrintedException
from dtdebug_taxonomy.logs.tasks import Surroundings
from dtdebug_taxonomy.model.claims import Claim, Record, distinct, texts
from dtdebug_taxonomy.model.ranks import EXITED, MOST_RANKS, PROCESS, RankState, Verdict, spell
from dtdebug_taxonomy.stacks.frames import call_sites
from dtdebug_taxonomy.text.whole_parts import message_parts

_END, _SAID = "end", "said at its end"
_STARVED = "was killed by the kernel: the memory ran out"
_MOST_VICTIMS = 64
_CERTAIN, _LIKELY = 0.95, 0.8
_DISAGREEING = frozenset({"skipped", "extra", "replaced", "wrong_size", "wrong_dtype", "wrong_root"})


class Ends(NamedTuple):
    """The ranks with their ends, and notes on them."""

    states: list[RankState]
    notes: tuple[str, ...]
    roots: tuple[int, ...]
    """Ranks whose end the others' ends do not explain."""
    named: int | None = None
    """Rank that torchrun calls the root cause."""
    raised: tuple[int, ...] = ()
    """Roots that report their own error, or were killed for memory."""
    starved: tuple[int, ...] = ()
    """Ranks that the kernel killed for memory."""
    children: tuple[PrintedException, ...] = ()
    """Exceptions of multiprocessing processes that are not ranks."""
    said: exits.Exits | None = None
    """Printed reports of ends."""


def ends(
    output: str,
    states: Sequence[RankState],
    deaths: Sequence[Death] = (),
    *,
    starved: Collection[int] = (),
    starvations: int = 0,
    silent: Collection[int] = (),
) -> Ends:
    """Refine the states by printed reports of launcher and ranks, by observed deaths, and by the kernel's OOM kills.

    `silent` are processes that ended without a final record of their agent: no interpreter shut them down. `starved`
    are processes that the kernel killed for memory, `starvations` their number in our control group.
    """
    known = {s.rank: s.host for s in states if s.rank is not None}
    world = max((s.world_size or 0 for s in states), default=0)
    said = exits.exits_in(output, Surroundings(world=world, hosts=known, printing=known))
    told = _PrintedEnds(said.exits)
    refined = [_refine(state, said, told, deaths) for state in _with_unseen(states, said)]
    refined = [_add_watchdog_message(state, said) for state in _add_gloo_message(refined, said)]
    refined = [_mark_silent_end(state) if state.pid in silent else state for state in refined]
    roots = _roots(refined, said, deaths)
    hungry = tuple(s.rank for s in refined if s.pid in starved and s.rank is not None)
    killed = [s for s in refined if s.signal == "SIGKILL" and s.rank is not None]
    notes: list[str] = []
    if starvations > 0 and killed and not hungry:
        notes.append(f"the kernel killed {starvations} process(es) of this control group for memory meanwhile")
        hungry = tuple(s.rank for s in killed if s.rank in roots) if len(killed) == 1 else ()
    if roots:
        notes += correction(said.named, roots, refined)
    spoke = tuple(s.rank for s in refined if s.rank in roots and (s.exception or s.exit_code or s.rank in hungry))
    ranks = {s.facts.get(PROCESS) for s in refined}
    children = tuple(raised for name, raised in said.processes.items() if name not in ranks)
    return Ends(refined, tuple(notes), roots, said.named, spoke, hungry, children, said)


def correction(named: int | None, culprits: Collection[int], states: Iterable[RankState]) -> list[str]:
    """Return a note if torchrun's root cause, the end that it saw first, is not one of the culprits."""
    if named is None or not culprits or named in culprits:
        return []
    victim = next((s for s in states if s.rank == named), None)
    why = f": {_how(victim)}" if victim and _how(victim) else ""
    return [f"torchrun names rank {named} (first observed); it is a victim{why}"]


def settle(
    verdict: Verdict | None, ended: Ends, earlier: Verdict | None = None, *, measured: bool = False
) -> Verdict | None:
    """Return the verdict of the records, unless a rank's own end explains more.

    If the records show that a rank made a different call from its peers, that is the cause of all ends. `earlier` was
    found before the ends; `measured`: after no progress for the user's limit, so that only a rank that failed on its
    own since then overrides it. Time-outs, signals and the launcher's kills do not.
    """
    if measured and earlier is not None and not ended.raised:
        return earlier
    if not ended.roots:
        gone = verdict is None or verdict.kind in ("none", "not_understood", "dead")
        return earlier if gone and earlier is not None else verdict
    if verdict is not None and verdict.kind in _DISAGREEING and not set(ended.roots) - set(verdict.culprits):
        return verdict
    own = _verdict(ended)
    if verdict is None or verdict.kind in ("none", "not_understood"):
        return own
    if verdict.kind == "dead" and set(verdict.culprits) == set(own.culprits):
        # The records' verdict has the collective and the waiting ranks; `own` has the sentence about the end.
        placed = {site.rank for site in own.sites}
        claims = distinct((*own.claims, *(c for c in verdict.claims if c.what not in ("raised", "ended", "left"))))
        return msgspec.structs.replace(
            verdict,
            summary=own.summary,
            sites=(*own.sites, *(site for site in verdict.sites if site.rank not in {*own.culprits, *placed})),
            waiting=verdict.waiting or own.waiting,
            confidence=max(own.confidence, verdict.confidence),
            claims=claims,
            evidence=texts(claims),
        )
    return msgspec.structs.replace(own, group=verdict.group, collective=verdict.collective)


def undo_interrupt(state: RankState) -> RankState:
    """Restore a rank that the user's interrupt ended to its state before: that end is not a failure."""
    return standing(state) if _is_interrupted(state) else state


def standing(state: RankState) -> RankState:
    """Return the state as if the rank had not ended."""
    return msgspec.structs.replace(state, alive=True, exception="", exit_code=None, signal="")


def _with_unseen(states: Sequence[RankState], said: exits.Exits) -> list[RankState]:
    """Add an empty state for each rank that appears only in the output."""
    known = {s.rank for s in states}
    told = {*said.exceptions, *(e.rank for e in said.exits if e.rank is not None)}
    return [*states, *(RankState(rank=rank) for rank in sorted(told - known) if rank < MOST_RANKS)]


class _PrintedEnds:
    """Printed reports of ends, by process and by rank; the last report counts."""

    def __init__(self, printed: Iterable[exits.Exit]) -> None:
        self._by_pid: dict[int, tuple[int, exits.Exit]] = {}
        self._by_rank: dict[int, tuple[int, exits.Exit]] = {}
        self._without_pid: dict[int, tuple[int, exits.Exit]] = {}
        for row in enumerate(printed):
            told = row[1]
            if told.pid:
                self._by_pid[told.pid] = row
            if told.rank is not None:
                self._by_rank[told.rank] = row
                if told.pid is None:
                    self._without_pid[told.rank] = row

    def of(self, state: RankState) -> tuple[int | None, str]:
        """Return exit code and signal of a rank: by its process, else by its number."""
        rank = -1 if state.rank is None else state.rank
        rows = (self._by_pid.get(state.pid or 0), self._without_pid.get(rank))
        _, told = max((row for row in rows if row), default=(0, exits.Exit()), key=lambda row: row[0])
        if told.code is None and not told.signal and rank in self._by_rank:
            told = self._by_rank[rank][1]
        return told.code, told.signal


def _refine(state: RankState, said: exits.Exits, told: _PrintedEnds, deaths: Sequence[Death]) -> RankState:
    code, signal = state.exit_code, state.signal
    death = next((d for d in deaths if d.of(state)), None)
    if death is not None and death.status is not None:
        code, signal = (death.status, "") if death.status >= 0 else (None, exits.signal_name(-death.status))
    elif code is None and not signal:
        code, signal = told.of(state)
    exception, stack = state.exception, state.stack
    if not exception and state.rank is not None:
        exception = clean(said.exceptions.get(state.rank, ""))
        stack = said.stacks.get(state.rank) or stack
    if not exception and (printed := said.processes.get(state.facts.get(PROCESS, ""))) is not None:
        exception, stack = clean(printed.text[:500]), printed.frames  # multiprocessing prints it and keeps no exception
    child = said.children.get(-1 if state.rank is None else state.rank)
    if child is not None and says_child_has_gone(exception, stack):
        exception, stack = clean(in_process(child)), child.frames
    facts = state.facts
    if said.unopened and code == exits.UNOPENED and not exception and EXITED not in facts:
        facts = {**facts, _SAID: clean(said.unopened)}
    ended = death is not None or code is not None or bool(signal)
    return msgspec.structs.replace(
        state,
        exit_code=code,
        signal=signal,
        exception=exception,
        facts=facts,
        stack=stack,
        alive=False if ended else state.alive,
    )


def _add_gloo_message(states: list[RankState], said: exits.Exits) -> list[RankState]:
    """Add the printed gloo message to the aborted rank, if there is exactly one."""
    aborted = [s for s in states if s.signal == "SIGABRT" and not s.exception]
    if len(aborted) != 1 or not said.sizes:
        return states
    told = msgspec.structs.replace(aborted[0], exception=f"gloo::EnforceNotMet: {said.sizes}")
    return [told if s is aborted[0] else s for s in states]


def _add_watchdog_message(state: RankState, said: exits.Exits) -> RankState:
    """Add the NCCL watchdog's message to the rank that it ended: the process may crash during the shutdown."""
    words = said.watchdogs.get(-1 if state.rank is None else state.rank)
    if words is None or state.exception or state.signal not in ("SIGABRT", "SIGSEGV"):
        return state
    return msgspec.structs.replace(state, exception=clean(f"c10::DistBackendError: {words}"))


def _mark_silent_end(state: RankState) -> RankState:
    """Mark a rank that ended in an unknown way, but not by its program."""
    if state.alive is not False or state.exception or state.signal or state.exit_code is not None:
        return state
    return msgspec.structs.replace(state, facts={**state.facts, _END: "without last words: killed, or os._exit"})


def _roots(states: Sequence[RankState], said: exits.Exits, deaths: Sequence[Death]) -> tuple[int, ...]:
    """Return ranks whose end no other explains: own exceptions, then violent ends, then a launcher's signals."""
    ranked = [s for s in states if s.rank is not None]
    order = {d.pid: d.time for d in deaths}
    raised = [
        s
        for s in ranked
        if (s.exception and not lost_peer(s) and not _is_interrupted(s))
        or (not s.exception and not s.signal and s.exit_code)
    ]
    violent = [
        s
        for s in ranked
        if s.signal and s.signal not in exits.LAUNCHER and not s.exception and not _aborted_by_gloo(s, said)
    ]
    mute = [s for s in ranked if s.facts.get(_END) and s not in raised]
    violent += mute if not raised and not violent else []
    if raised:
        raised = _drop_explained_exits(raised, order)
        # A launcher sends SIGKILL to ranks that ignore SIGTERM: a violent end is a cause only if it came first.
        first = min((order[s.pid] for s in raised if s.pid in order), default=None)
        violent = [s for s in violent if first is not None and s.pid in order and order[s.pid] < first]
    elif len(violent) > 1 and (seen := [order[s.pid] for s in violent if s.pid in order]):
        violent = [s for s in violent if s.signal != "SIGKILL" or s.pid not in order or order[s.pid] <= min(seen)]
    roots = raised + violent or [s for s in ranked if s.rank in said.signalled_from_outside]
    return tuple(sorted({s.rank for s in roots if s.rank is not None}))


def _drop_explained_exits(raised: Sequence[RankState], order: Mapping[int, float]) -> list[RankState]:
    """Drop exit statuses that another rank's own exception explains.

    1 is Python's status after any exception, so that exception was not seen; other numbers are the program's own.
    """
    first = min((order.get(s.pid or 0, 0.0) for s in raised if s.exception), default=None)
    if first is None:
        return [*raised]
    return [s for s in raised if s.exception or (s.exit_code != 1 and order.get(s.pid or 0, 0.0) <= first)]


def _is_interrupted(state: RankState) -> bool:
    return state.exception.startswith("KeyboardInterrupt") or (state.signal == "SIGINT" and not state.exception)


def _aborted_by_gloo(state: RankState, said: exits.Exits) -> bool:
    """True if gloo ended the rank: it aborts ranks whose peers sent a different size; the records show who is wrong."""
    return state.signal == "SIGABRT" and said.enforce and (not said.enforced or state.rank in said.enforced)


def _verdict(ended: Ends) -> Verdict:
    """Return the verdict that the ends alone allow."""
    by_rank = {s.rank: s for s in ended.states}
    culprits = [by_rank[rank] for rank in ended.roots]
    victims = [s for s in ended.states if s.rank not in ended.roots and s.rank is not None and _how(s)]
    waiting = [s for s in ended.states if s.rank not in ended.roots and s.rank is not None and (s.pending or s.stack)]
    claims = [_claim(s, ended) for s in (*culprits, *victims[:_MOST_VICTIMS])]
    summary = _summary(claims[: len(culprits)])
    if victims:
        summary += f"; {spell([s.rank for s in victims if s.rank is not None], 8)} failed because of it"
    return Verdict(
        kind="dead",
        culprits=ended.roots,
        waiting=tuple(s.rank for s in ended.states if s.rank is not None and s.rank not in ended.roots),
        sites=call_sites((*culprits, *waiting)),
        confidence=_CERTAIN if len(ended.roots) == 1 else _LIKELY,
        summary=f"{summary}.",
        claims=tuple(claims),
        evidence=texts(claims),
    )


def _summary(claims: Sequence[Claim]) -> str:
    """Describe how ranks ended, with equal ends joined."""
    alike: dict[Claim, list[int]] = {}
    for c in claims:
        key = msgspec.structs.replace(c, ranks=(), record=Record(source="exit"))
        alike.setdefault(key, []).extend(c.ranks)
    rows = [msgspec.structs.replace(c, ranks=tuple(ranks)).text.rstrip(".") for c, ranks in alike.items()]
    return "; ".join(rows[:3])


def _claim(state: RankState, ended: Ends) -> Claim:
    """Return the claim on how the rank ended."""
    claim = ending(state)
    if line := _line(state, ended):
        claim = msgspec.structs.replace(claim, record=msgspec.structs.replace(claim.record, source="output", line=line))
    if state.rank in ended.starved:
        record = Record(source="kernel", rank=state.rank, words="oom_kill")
        return msgspec.structs.replace(claim, what="ended", words=_STARVED, record=record)
    if claim.what == "ended" and _SAID in state.facts:
        return msgspec.structs.replace(claim, words=f"{claim.words}: {state.facts[_SAID]}")
    if claim.what == "ended" and _END in state.facts:
        return msgspec.structs.replace(claim, words=f"ended {state.facts[_END]}")
    return claim


def _line(state: RankState, ended: Ends) -> int:
    """Return the output line that reports the same end of the rank; 0 if there is none."""
    if ended.said is None or state.rank is None:
        return 0
    if state.exception:
        same = clean(ended.said.exceptions.get(state.rank, "")) == state.exception
        return ended.said.lines.get(state.rank, 0) if same else 0
    how = (state.rank, state.exit_code, state.signal)
    return max((e.line for e in ended.said.exits if (e.rank, e.code, e.signal) == how), default=0)


def _how(state: RankState) -> str:
    """Describe how the rank ended, to follow its number; "" if it did not fail."""
    if state.exception:
        return f"raised {message_parts(state.exception, 200).removesuffix('.')}"
    if state.signal:
        return f"was ended by {state.signal}"
    if state.exit_code:
        call = f" by {state.facts[EXITED]}" if EXITED in state.facts else ""
        return f"ended with exit status {state.exit_code}{call}"
    return f"ended {state.facts[_END]}" if _END in state.facts else ""
