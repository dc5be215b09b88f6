"""A curve: the values of one name over the steps of one process or run."""

from __future__ import annotations

import math
from array import array
from typing import NamedTuple

from dtdebug.recorded.curves.names import Kind, Name


class Owner(NamedTuple):
    """Origin of a curve."""

    file: str
    rank: int | None = None
    run: str = ""
    """Name of the run, where a file holds several."""


class Curve:
    """Values of one name over the steps of one process or run."""

    __slots__ = (
        "attempts", "epochs", "exact", "lines", "loads", "mixed", "name", "owner", "rounded", "steps", "total", "unit",
        "values",
    )  # fmt: skip

    def __init__(self, owner: Owner, name: Name, unit: str = "step") -> None:
        self.owner, self.name, self.unit = owner, name, unit
        self.steps, self.values, self.epochs = array("d"), array("d"), array("d")
        self.lines = array("q")
        self.attempts: list[int] = [0]
        """Places at which the counter was set back: a restart or a resumed attempt begins there."""
        self.loads: list[int] = []
        """Places before which a line says that a checkpoint is loaded, or that training is resumed."""
        self.mixed = False
        """True if several counters run through each other: the values are not of one training."""
        self.total = 0.0
        """Steps of an epoch or of the whole, where the counter names them."""
        self.exact = True
        """False if a zero may be a rounded number."""
        self.rounded = False
        """True if the step is a fraction of an epoch with few digits, which several steps share."""

    def __len__(self) -> int:
        return len(self.values)

    @property
    def kind(self) -> Kind:
        """Kind of the values."""
        return self.name.kind

    def label(self, place: int) -> str:
        """Return the step of a value in words."""
        step = self.steps[place]
        number = f"{step:,.0f}" if step == int(step) else f"{step:g}"
        epoch = self.epochs[place] if self.epochs else -1.0
        if self.unit == "epoch":
            return f"epoch {step:g}"
        words = f"{self.unit} {number}"
        return f"epoch {epoch:g} {words}" if epoch >= 0 else words

    def finite(self, begin: int = 0, end: int | None = None) -> tuple[list[int], list[float]]:
        """Return the places and values that are finite."""
        stop = len(self.values) if end is None else end
        places = [i for i in range(begin, stop) if math.isfinite(self.values[i])]
        return places, [self.values[i] for i in places]

    def thinned(self, most: int) -> Curve:
        """Return the curve with each n-th value, if it has more than `most`."""
        every = -(-len(self.values) // most)
        if every <= 1:
            return self
        thin = Curve(self.owner, self.name, self.unit)
        thin.steps, thin.values, thin.lines = self.steps[::every], self.values[::every], self.lines[::every]
        thin.epochs, thin.total, thin.mixed, thin.exact = self.epochs[::every], self.total, self.mixed, self.exact
        thin.attempts, thin.loads = (
            sorted({-(-begin // every) for begin in places if -(-begin // every) < len(thin)})
            for places in (self.attempts, self.loads)
        )
        return thin

    def spans(self) -> list[tuple[int, int]]:
        """Return begin and end of each attempt."""
        return list(zip(self.attempts, [*self.attempts[1:], len(self.values)], strict=True))


class Curves(NamedTuple):
    """Curves of some files, and what could not be read."""

    curves: list[Curve]
    notes: list[str]


def spell(value: float) -> str:
    """Return a value with four digits."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    return f"{value:.4g}" if abs(value) < 1e5 or abs(value) >= 1e15 else f"{value:,.0f}"
