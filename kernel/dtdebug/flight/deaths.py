"""Ranks that have ended: who failed by itself, and whose end is an echo of another's."""

from __future__ import annotations

from dtdebug_taxonomy.failure.roles import loses_peer
from dtdebug_taxonomy.ranks import RankState

_LAUNCHER = ("SIGTERM", "SIGINT", "SIGHUP")
"""What launchers send to those who survive."""


def failed(state: RankState) -> bool:
    """It ended in a way that is a failure."""
    return state.alive is False and bool(state.exit_code or state.signal or state.exception)


def is_victim(state: RankState) -> bool:
    """It ended because the launcher killed it, or because it lost its connection to another rank."""
    return state.signal in _LAUNCHER or lost_peer(state)


def lost_peer(state: RankState) -> bool:
    """What it raised says that a peer was lost or late, not what was wrong."""
    return loses_peer(state.exception, state.stack)


def end(state: RankState) -> str:
    """How it ended, in words."""
    if state.exception:
        return state.exception[:300]
    if state.signal:
        return f"ended by {state.signal}"
    if state.exit_code == 0:
        return "its program ended with exit code 0 while others still needed it"
    return f"exit code {state.exit_code}" if state.exit_code else "its process has ended"
