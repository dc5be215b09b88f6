"""Stores the last measurements of `dtdebug doctor` in the state directory, as answers to the wizard's questions."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from dtdebug.errors import UsageError
from dtdebug.privacy.sanitize import arguments
from dtdebug.storage import state_dir

_LIFE = 3600.0
"""Seconds for which measurements of a host remain valid."""


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    """Measurements of one examination."""

    command: tuple[str, ...] = ()
    observations: dict[str, tuple[str, str]] = {}
    """Observation -> (value, source of the value)."""
    time: float = 0.0
    """Time of storage, in seconds since the epoch."""

    def save(self) -> bool:
        """Store it; False if the state directory can't be written."""
        shown = tuple(arguments(self.command))
        return state_dir.save(state_dir.DOCTOR, msgspec.structs.replace(self, command=shown, time=time.time()))


def of_run(command: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return the measurements for exactly this command, up to its secrets, within the last hour."""
    kept = state_dir.load(state_dir.DOCTOR, Examination)
    known = kept is not None and kept.command == tuple(arguments(command)) and 0 <= time.time() - kept.time < _LIFE
    return kept.observations if kept is not None and known else {}


def last_measured() -> dict[str, tuple[str, str]]:
    """Return the last measurements, whatever the command.

    Raises:
        UsageError: there are none within the last hour.

    """
    kept = state_dir.load(state_dir.DOCTOR, Examination)
    if kept is None or not 0 <= time.time() - kept.time < _LIFE:
        raise UsageError("--doctor: `dtdebug doctor` has not run within the last hour")
    return kept.observations
