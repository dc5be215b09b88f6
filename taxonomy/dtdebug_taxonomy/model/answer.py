"""Types of the short answer that every front end shows: what happened, where, why, the fix, and one next step."""

from __future__ import annotations

from typing import Literal

import msgspec

Certainty = Literal["certain", "likely", "possible", "own", "place", "stated", "unknown", "well"]
"""Certainty of the cause; own: the program's own code raised it; place: only the ranks and lines are known; stated:
the message itself says what is wrong; well: nothing failed."""


class Spot(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One place of the user's program, and the ranks that stand or failed there."""

    ranks: tuple[int, ...] = ()
    """Empty if no rank is known."""
    file: str = ""
    line: int = 0
    code: str = ""
    """The user's source line, stripped; empty if the file is not at hand."""
    mark: tuple[int, int] = (0, 0)
    """First and last column of the marked expression within `code`, the last one excluded; (0, 0) marks nothing."""
    state: str = ""
    """Action of the ranks there: `waits 74 s in all_reduce #21`, `raised KeyError: 'lr'`."""
    values: tuple[tuple[str, str], ...] = ()
    """Names and values that matter at this line: ("batches", "5")."""


class Fix(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Remedy of the cause."""

    text: str
    """The remedy in the imperative, in one sentence."""
    file: str = ""
    line: int = 0
    """The line of the user's file to edit; 0 if none can be named."""
    diff: str = ""
    """Unified diff of the user's own file; never of an example."""
    proven: bool = True
    """False if only the cause is known: nothing shows that the remedy is what the program needs."""
    tried: str = ""
    """Result of a run with the diff: `with this diff the job succeeds after 12 s`."""


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The one next step, if the cause is unknown."""

    text: str
    command: str = ""
    outcome: str = ""
    """Meaning of its possible outcomes."""


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The short answer; each fact stands in it once."""

    headline: str
    """The cause in words if it is known, else the event."""
    event: str = ""
    """The event, if the headline is the cause and the spots do not show it."""
    spots: tuple[Spot, ...] = ()
    why: str = ""
    """The best reason in one sentence."""
    record: str = ""
    """Record of the reason: `line 12 of the output`, `train.py:9`."""
    fix: Fix | None = None
    sure: Certainty = "unknown"
    guess: str = ""
    """A cause that only the user's words suggest, where none is known; about half of them are right."""
    next: Step | None = None
    notes: tuple[str, ...] = ()
