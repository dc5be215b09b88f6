"""What was seen of a training while it ran: invariants that were violated, and ranks that were late."""

from __future__ import annotations

import msgspec


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """Something that holds in every healthy training and did not hold here."""

    invariant: str
    """Its name: `inputs-alike`."""
    ranks: tuple[int, ...]
    """Ranks on which it was seen; all that were compared where the records do not say which of them is wrong."""
    step: int
    """Optimizer step under way when it was first seen, 1 for the first."""
    file: str = ""
    line: int = 0
    """Place in the user's own code; 0 where there is none."""
    symptom: str
    """Code of the study: `D.2.4`."""
    means: str
    """What was seen, as a sentence, and what follows from it."""


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How one rank spent its time."""

    rank: int
    seconds: float
    """Seconds that were looked at."""
    samples: int
    step_seconds: float | None = None
    """Mean seconds of a step, where steps were counted."""
    shares: dict[str, float] = {}
    """Phase -> share of the samples."""


class Late(msgspec.Struct, frozen=True, kw_only=True):
    """A phase that makes the others wait, or that holds up all."""

    ranks: tuple[int, ...]
    phase: str
    share: float
    """Share of the time that these ranks spend in it."""
    others: float | None = None
    """The same of the other ranks; None where all are alike."""
    file: str = ""
    line: int = 0
    symptom: str = "D.2.3"
    means: str = ""
