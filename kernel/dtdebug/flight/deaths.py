"""Ranks that have ended: who failed by itself, and whose end is an echo of another's."""

from __future__ import annotations

import re

from dtdebug_taxonomy.ranks import RankState

_LAUNCHER = ("SIGTERM", "SIGINT", "SIGHUP")
"""What launchers send to those who survive."""
_COMMUNICATION = re.compile(
    r"(?i)connection (?:closed|reset|refused|aborted)|closed by peer|broken pipe|timed? ?out|timeout|watchdog|socket"
    r"|\brecv\b|recvvalue|read error|write error|DistBackendError|DistNetworkError|DistStoreError|ncclRemoteError"
    r"|ncclSystemError|ncclInternalError|unhandled (?:cuda|system) error|NCCL communicator was aborted|nccl error"
    r"|monitored ?barrier|process group .{0,80}(?:abort|destroy)|remote (?:process|worker|peer)"
    r"|gloo.{0,200}(?:pair|transport|EnforceNotMet)|\bpeers?\b|Horovod has been shut ?down|collective .{0,80}mismatch"
)
_OWN = re.compile(
    r"(?:\w{1,100}\.){0,10}(?:AssertionError|AttributeError|FileNotFoundError|ImportError|IndexError|KeyError|MemoryError"
    r"|ModuleNotFoundError|NameError|NotImplementedError|OutOfMemoryError|PermissionError|SyntaxError|TypeError"
    r"|UnboundLocalError|ValueError|ZeroDivisionError)\b"
)
"""What a lost peer never raises, whatever the message says."""


def is_communication(exception: str) -> bool:
    """The exception says that a peer was lost or late, not what was wrong."""
    return not _OWN.match(exception) and bool(_COMMUNICATION.search(exception[:2_000]))


def failed(state: RankState) -> bool:
    """It ended in a way that is a failure."""
    return state.alive is False and bool(state.exit_code or state.signal or state.exception)


def is_victim(state: RankState) -> bool:
    """It ended because the launcher killed it, or because it lost its connection to another rank."""
    return state.signal in _LAUNCHER or (bool(state.exception) and is_communication(state.exception))


def end(state: RankState) -> str:
    """How it ended, in words."""
    if state.exception:
        return state.exception[:300]
    if state.signal:
        return f"ended by {state.signal}"
    if state.exit_code == 0:
        return "its program ended with exit code 0 while others still needed it"
    return f"exit code {state.exit_code}" if state.exit_code else "its process has ended"
