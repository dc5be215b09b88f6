"""Observations of a training while it ran: violated invariants, and ranks that were late."""

from __future__ import annotations

import msgspec


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """Violation of an invariant that holds in every healthy training."""

    invariant: str
    """Name of the invariant: `inputs-alike`."""
    ranks: tuple[int, ...]
    """Ranks on which it was seen; all compared ones if the records do not show which is wrong."""
    step: int
    """Optimizer step in progress when it was first seen, 1 for the first."""
    file: str = ""
    line: int = 0
    """Line in the user's own code; 0 if there is none."""
    symptom: str
    """Code of the study: `D.2.4`."""
    means: str
    """Observation and its consequence, as a sentence."""
    cause: str = ""
    """Sentence about what is wrong, if the measurement itself shows it."""
    fix: str = ""
    """Its remedy."""
    diff: str = ""
    """Patch of the user's file that is this remedy; empty if there is none, or if it may not be enough."""
    sure: bool = True
    """The measurement leaves no other cause."""


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """Time of one rank by phase."""

    rank: int
    seconds: float
    """Seconds that were sampled."""
    samples: int
    step_seconds: float | None = None
    """Mean seconds of a step, if steps were counted."""
    shares: dict[str, float] = {}
    """Phase -> share of the samples."""


class Late(msgspec.Struct, frozen=True, kw_only=True):
    """Phase that makes the others wait, or that delays all."""

    ranks: tuple[int, ...]
    phase: str
    share: float
    """Share of the time that these ranks spend in it."""
    others: float | None = None
    """The same for the other ranks; None if all are alike."""
    file: str = ""
    line: int = 0
    symptom: str = "D.2.3"
    means: str = ""
