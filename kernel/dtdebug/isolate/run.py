"""What a run of the job is: what was changed in it, and what it has shown."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from dtdebug.isolate.identity import FailureIdentity

Outcome = Literal["same", "ok", "other", "timeout"]
RANKS, NODES, ENVIRONMENT, VERSION = "ranks", "nodes", "environment.", "version."
"""Names of what is no factor of a file: the number of ranks, that of torchrun's agents, a variable of the environment,
a package in another version."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What a run has shown."""

    factors: dict[str, str]
    outcome: Outcome
    seconds: float
    pace: float = 0.0
    """Seconds of a step, or of the whole run, of a job that is slow; 0 where it was not measured."""
    failure: FailureIdentity | None = None
    unproven: tuple[str, ...] = ()
    """What was to be changed, and was not seen to be."""
    saw: dict[str, str] = {}
    """What the program uses: part -> value."""
    at: dict[str, tuple[str, ...]] = {}
    """Where: part -> `FILE:LINE` of the user's own."""
    denied: tuple[str, ...] = ()
    wrote: tuple[str, ...] = ()
    """Files outside of the copy that were there before, and that are new."""
    folder: str = ""


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """What the user chose for all runs."""

    hang_after: float = 30.0
    in_place: bool = False
    may_write: tuple[str, ...] = ()
    """Folders and files elsewhere that the runs may change."""
    kind: Literal["fails", "slow", "differs"] = "fails"
    """What is followed."""
    slow_above: float | None = None
    """Seconds of a step above which it is slow; else as slow as it is at first."""
    recorded: Path | None = None
    """The run that was recorded, of a job that differs from it."""
    seeds: str = ""
    """Those of its ranks."""
