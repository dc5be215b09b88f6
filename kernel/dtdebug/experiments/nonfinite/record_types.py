"""Records that the ranks of a checked training write."""

from __future__ import annotations

import msgspec


class Origin(msgspec.Struct, frozen=True, rename={"where": "in", "owner": "class"}):
    """Origin of a value that is not finite, on one rank."""

    where: str
    """forward, loss, loss backward, or backward."""
    op: str = ""
    module: str = ""
    owner: str = ""
    """Class of the module."""
    file: str = ""
    line: int = 0
    kind: str = ""
    """nan or inf."""
    rows: list[int] = []
    """Samples of the batch; empty if all, or if that is not known."""
    largest: float | None = None
    smallest: float | None = None
    dtype: str = ""
    masked: bool = False
    """Its inputs are infinite on purpose, as those of a mask."""
    what: str = ""
    among: list[str] = []


class Found(msgspec.Struct, frozen=True):
    """One line of a rank's notes."""

    rank: int
    world: int = 1
    host: str = ""
    failed: str = ""
    trigger: str = ""
    """loss or gradient."""
    value: str = ""
    at: tuple[str, int] = ("", 0)
    step: int = 0
    found: Origin | None = None
    inputs: bool = True
    """The inputs of the models are finite."""
    samples: list[int] = []
    """Numbers of the affected samples in the data set."""
    device: str = ""
    before: tuple[float | None, float | None] = (0.0, 0.0)
    """Norm of the gradients, and learning rate, of the step before."""
    sharded: bool = False
    called: tuple[str, int] = ("", 0)
    ended: int = 0
    """Steps of a rank that ended by itself."""
    spent: float = 0.0
