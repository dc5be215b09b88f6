"""One fault of a curve, with its record.

A curve of a healthy training is noisy, falls at its own pace and may have outliers, so each threshold is a multiple of
its own noise and a share of its own level at once: what is within either is no finding. The figures were set on curves
drawn by seed and are measured on others (`benchmarks/curves.py`): false alarms count more than hits.
"""

from __future__ import annotations

from typing import Literal

import msgspec

FindingKind = Literal[
    "not_finite", "vanishes", "ranks_differ", "rises_with_rate", "diverges", "resumed_from_start", "rate_starts_over",
    "counter_starts_over", "jumps",
    "repeats", "zero_rate", "scale_at_floor", "does_not_move", "spike", "memory_of_rank", "memory_grows", "slower",
    "drifts", "overfits", "runs_differ",
]  # fmt: skip
"""Kinds of findings, the gravest first."""
ORDER: tuple[FindingKind, ...] = FindingKind.__args__  # type: ignore[attr-defined]


class Value(msgspec.Struct, frozen=True):
    """One value with its place."""

    step: str
    value: str
    """As text: JSON has neither NaN nor infinity."""
    line: int = 0
    curve: str = ""


class CurveFinding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that is wrong with a curve."""

    kind: FindingKind
    curve: str
    """Name of the curve as it is printed."""
    says: str
    """The event in one sentence."""
    why: str = ""
    """The values that show it."""
    file: str = ""
    line: int = 0
    ranks: tuple[int, ...] = ()
    step: str = ""
    run: str = ""
    values: tuple[Value, ...] = ()
    cause: bool = False
    """True if it names another curve that moved with it, not the event alone."""
    next: str = ""
    """The first thing to look at."""
    command: str = ""

    @property
    def grave(self) -> bool:
        """True if it is a fault by itself; a spike from which the loss came back is only worth a look.

        Two runs may differ on purpose: what was changed between them is not in their curves.
        """
        return self.kind not in ("spike", "runs_differ")
