"""What `dtdebug doctor` measured last, kept in the state directory: answers to the wizard's questions, with reasons."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from dtdebug import state
from dtdebug.errors import UsageError

_LIFE = 3600.0
"""Seconds for which a host is taken to be as it was measured."""


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    """One examination."""

    command: tuple[str, ...] = ()
    observations: dict[str, tuple[str, str]] = {}
    """Observation -> (value, how it is known)."""
    time: float = 0.0
    """When it was kept, in seconds since the epoch."""

    def save(self) -> bool:
        """Keeps it; False if the state directory can't be written."""
        return state.save(state.DOCTOR, msgspec.structs.replace(self, time=time.time()))


def of_run(command: Sequence[str]) -> dict[str, tuple[str, str]]:
    """What was measured for this very command within the last hour."""
    kept = state.load(state.DOCTOR, Examined)
    known = kept is not None and kept.command == tuple(command) and 0 <= time.time() - kept.time < _LIFE
    return kept.observations if kept is not None and known else {}


def last_measured() -> dict[str, tuple[str, str]]:
    """What was measured last, whatever the command.

    Raises:
        UsageError: nothing was within the last hour.

    """
    kept = state.load(state.DOCTOR, Examined)
    if kept is None or not 0 <= time.time() - kept.time < _LIFE:
        raise UsageError("--doctor: `dtdebug doctor` has not run within the last hour")
    return kept.observations
