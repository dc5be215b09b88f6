"""Types of a run of the job: its changes, and its results."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from dtdebug.experiments.isolate.failure_identity import FailureIdentity

Outcome = Literal["same", "ok", "other", "timeout"]
RANKS, NODES, ENVIRONMENT, VERSION = "ranks", "nodes", "environment.", "version."
"""Names of changes other than factors: ranks, torchrun agents, an environment variable, a package version."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """Results of a run."""

    factors: dict[str, str]
    outcome: Outcome
    seconds: float
    pace: float = 0.0
    """Seconds per step, or of the whole run, for a slow job; 0 if not measured."""
    failure: FailureIdentity | None = None
    unproven: tuple[str, ...] = ()
    """Changes that were not seen to be made."""
    saw: dict[str, str] = {}
    """Part that the program uses -> value."""
    at: dict[str, tuple[str, ...]] = {}
    """Part -> `FILE:LINE` in the user's code."""
    denied: tuple[str, ...] = ()
    wrote: tuple[str, ...] = ()
    """Files outside of the copy: existing ones that it tried to change (`denied`), and new ones."""
    folder: str = ""


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """User's choices for all runs."""

    hang_after: float = 30.0
    in_place: bool = False
    may_write: tuple[str, ...] = ()
    """Folders and files elsewhere that the runs may change."""
    kind: Literal["fails", "slow", "differs"] = "fails"
    """Kind of failure to search for."""
    slow_above: float | None = None
    """Seconds per step above which the job is slow; None: as slow as the first run."""
    recorded: Path | None = None
    """Recorded run from which the job differs."""
    seeds: str = ""
    """Seeds of the recorded ranks."""
