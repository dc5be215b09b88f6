"""Classifies ranks that have ended: those that failed on their own, and victims of another's failure."""

from __future__ import annotations

from dtdebug_taxonomy.logs.exception_roles import loses_peer, nccl_said
from dtdebug_taxonomy.model.claims import Claim, Record
from dtdebug_taxonomy.model.rank_ranges import shorten_text
from dtdebug_taxonomy.model.ranks import EXITED, FINISHED, RankState
from dtdebug_taxonomy.stacks.frames import own_frame, place_claim

_WORDS = 200
"""Maximum number of characters of an exception that are shown."""
_LAUNCHER = ("SIGTERM", "SIGINT", "SIGHUP")
"""Signals that launchers send to the surviving ranks."""


def ended_in_failure(state: RankState) -> bool:
    """True if the rank ended in a failure."""
    return state.alive is False and not has_finished(state) and bool(state.exit_code or state.signal or state.exception)


def has_finished(state: RankState) -> bool:
    """True if the rank's program ran to its end: exit status 0, or a final record of its agent without a failure.

    The launcher may end such a process while its interpreter shuts down, because another rank has failed meanwhile.
    """
    if state.alive is not False or state.exception or state.exit_code:
        return False
    return (state.exit_code == 0 and not state.signal) or (FINISHED in state.facts and state.signal in ("", *_LAUNCHER))


def is_victim(state: RankState) -> bool:
    """True if the launcher killed the rank, or it lost its connection to another rank."""
    return not has_finished(state) and (state.signal in _LAUNCHER or lost_peer(state))


def lost_peer(state: RankState) -> bool:
    """True if the exception reports a lost or late peer, not the original error."""
    return loses_peer(state.exception, state.stack)


def ending(state: RankState) -> Claim:
    """Return the claim on how a rank ended."""
    ranks = () if state.rank is None else (state.rank,)
    if state.exception:
        said = nccl_said(state.exception)
        kind = state.exception.partition(":")[0]
        words = shorten_text(f"{kind}: {said}" if said else state.exception, _WORDS)
        record = Record(source="exception", rank=state.rank, words=words)
        return place_claim(Claim(what="raised", ranks=ranks, record=record, words=words), own_frame(state.stack))
    code = "" if state.exit_code is None else f"exit status {state.exit_code}"
    record = Record(source="exit", rank=state.rank, words=state.signal or code)
    call = state.facts.get(EXITED, "")
    frame = own_frame(state.stack) if call else None
    if has_finished(state):
        return place_claim(Claim(what="left", ranks=ranks, record=record, op=call), frame)
    words = f"was ended by {state.signal}" if state.signal else f"ended with {code}" if code else ""
    if call and not state.signal:
        words = f"{words}: it called {call}"
    claim = Claim(what="ended", ranks=ranks, record=record, op="" if state.signal else call, words=words)
    return place_claim(claim, None if state.signal else frame)
