"""Records that the ranks of a compared training write."""

from __future__ import annotations

import msgspec


class Made(msgspec.Struct, frozen=True):
    """Line of an operation, and the user's line that led to it."""

    file: str = ""
    line: int = 0
    own_file: str = ""
    own_line: int = 0
    text: str = ""


class Term(msgspec.Struct, frozen=True):
    """One term of a loss."""

    factors: list[tuple[str, float]] = []
    """(div or mul, number), the outermost first."""
    op: str = ""
    kind: str = ""
    """mean or sum over values; empty if unknown."""
    count: float = 0.0
    made: list[Made] = []
    """Where each factor was applied."""
    at: Made = Made()
    """Where the operation below the factors was made."""

    @property
    def scale(self) -> float:
        """Product of its factors."""
        product = 1.0
        for how, value in self.factors:
            product *= value if how == "mul" else 1 / value if value else 0.0
        return product


class Loss(msgspec.Struct, frozen=True):
    """One backward pass."""

    file: str = ""
    line: int = 0
    terms: list[Term] = []
    value: float | None = None


class Summed(msgspec.Struct, frozen=True):
    """Sum over all ranks of a value that has a gradient."""

    file: str = ""
    line: int = 0
    shape: list[int] = []
    norm: float = 0.0
    """Norm of the gradient that this rank's loss gives it."""
    scaled: bool = False
    """The loss is the sum itself, or numbers times it, plus other terms."""


class Loose(msgspec.Struct, frozen=True):
    """Parameter that the optimizer holds and no called module has."""

    name: str = ""
    shape: list[int] = []
    norm: float = 0.0
    """Norm of its gradient at the step."""


class SeenCall(msgspec.Struct, frozen=True):
    """One outermost call of a model."""

    root: str = ""
    kind: str = ""
    wrapper: str = ""
    file: str = ""
    line: int = 0
    training: int = 0
    """Number of its modules in training mode."""
    used: bool = False
    """A gradient came back through its output."""


class Facts(msgspec.Struct, frozen=True):
    """One rank's step."""

    optimizer: str = ""
    parameters: int = 0
    known: int = 0
    """Parameters of the optimizer that belong to a module that was called."""
    graded: int = 0
    calls: list[SeenCall] = []
    losses: list[Loss] = []
    clipped: str = ""
    exchanged: list[str | int] = []
    sums: list[Summed] = []
    loose: list[Loose] = []
    frozen: list[str] = []
    batchnorm: list[str] = []
    sharded: bool = False
    backwards: int = 0
    rows: list[list[int]] = []
    """For each call: hashes of its samples."""
    weights: dict[str, float | None] = {}
    """Sums of the weights before the step, of those that each rank has whole."""
    group: list[int] = []
    """Ranks that share one model by tensor parallelism."""
    placed: dict[str, float | None] = {}
    """Sums of this rank's parts of sharded layers."""


class Explained(msgspec.Struct, frozen=True, rename={"state": "is"}):
    """Composition of a gradient from the ranks' own."""

    state: str = "none"
    off: float = 0.0
    same: bool = True
    factor: float = 1.0
    """Common factor to the mean."""
    weights: dict[str, list[float]] = {}
    """Rank that holds the gradient -> shares of the ranks' own."""
    passes: list[tuple[int, int, float]] = []
    """(rank, backward pass, its share)."""
    rest: float = 0.0


class Compared(msgspec.Struct, frozen=True):
    """One parameter's gradient."""

    name: str
    size: float = 0.0
    tolerance: float = 0.0
    local: list[int] = []
    """Ranks without a gradient of their own."""
    after: Explained = Explained()
    step: Explained = Explained()
    factor: list[float | None] = []
    finite: bool = True
    cleared: list[int] = []
    """Backward passes of the first rank whose gradient was cleared before another pass of the step."""


class RandomStep(msgspec.Struct, frozen=True):
    """Difference between two equal recomputations."""

    parameter: str = ""
    first: list[str | float] = []


class Again(msgspec.Struct, frozen=True):
    """Outcome of the recomputation on one process."""

    matches: dict[str, list[tuple[str, str, float, float]]] = {}
    """Rank -> (parameter, how its own gradient differs, factor, relative difference)."""
    differs: dict[str, list[str | float]] = {}
    random: RandomStep | None = None
    left_out: str = ""
    call: str = ""
    """Operation that could not be repeated."""
    ranks: list[int] = []


class Layers(msgspec.Struct, frozen=True):
    """Differences of ranks that share sharded layers to one process that has them whole."""

    group: list[int] = []
    inputs: list[int] = []
    """Ranks whose inputs are not those of the first."""
    drawn: bool = False
    summed: bool = False
    """The model sums over these ranks by a call of its own."""
    output: list[int | str] = []
    """Call and module from which on no output is that of one process."""
    biases: list[str] = []
    """Biases that, counted once for each rank, explain all outputs."""
    apart: list[tuple[str, str, float]] = []
    """(parameter, state, factor) of gradients that each rank has whole, and otherwise than the others."""
    gradients: list[tuple[str, str, float, float]] = []
    """(parameter, how it differs, factor, relative difference) of other gradients, in the order of the forward pass."""
    scaled: list[tuple[str, list[float]]] = []
    """(parameter, factor on each rank) of gradients that agree, and are multiplied before the step."""
    agree: tuple[int, float] | None = None
    """Number of gradients that were compared with the whole layers', and the worst of those that agree."""


class Pipeline(msgspec.Struct, frozen=True):
    """Step of the stages of one rank, by whole batches."""

    stages: list[int] = []
    of: int = 0
    micro: int = 1
    """Micro-batches of a pass."""
    scales: bool = False
    """The schedule divides the gradients by the number of micro-batches."""
    passes: int = 1
    drawn: bool = False
    """A module draws random numbers."""
    terms: list[Term] = []
    """Loss on the rank of the last stage."""
    gradients: list[tuple[str, list[float], float]] = []
    """(stage and parameter, shares of the passes' whole batches, relative rest)."""
    between: list[float] = []
    """By what all gradients are multiplied between the last pass and the step, if it is one number."""
    file: str = ""
    line: int = 0


class Row(msgspec.Struct, frozen=True):
    """One line of a rank's notes."""

    rank: int
    step: int = 0
    world: int = 0
    facts: Facts | None = None
    missing: list[int] = []
    compared: list[Compared] = []
    again: Again | None = None
    layers: Layers | None = None
    pipeline: Pipeline | None = None
    unrepeated: str = ""
    ended: int = 0
    weights: dict[str, float | None] = {}
    spent: float = 0.0
    wrapped: str = ""
    hook: str = ""
    failed: str = ""
    uncovered: str = ""
    empty: bool = False
