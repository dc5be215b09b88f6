"""Records that the ranks of a watched training write, one type for each kind of line."""

from __future__ import annotations

import msgspec

Value = float | str
"""Number; text if it is not finite."""


class WatchRecord(msgspec.Struct, tag_field="k", frozen=True):
    """One line of a rank's notes."""


class Process(WatchRecord, frozen=True, tag="process"):
    """Process that wrote the following lines."""

    pid: int
    parent: int = 0
    host: str = ""
    rank: int | None = None
    world: int | None = None


class Site(WatchRecord, frozen=True, tag="site"):
    """Place in the user's code, to which other records refer by number."""

    i: int
    file: str
    line: int
    fn: str = ""


class Model(WatchRecord, frozen=True, tag="model"):
    """Wrapped model."""

    m: int
    kind: str
    group: list[int]
    site: int = 0
    p: str = ""
    ps: list[Value] = []
    """Parameters when it was wrapped."""
    loaded: bool = False
    """Weights had been loaded into it, or into a part of it."""
    rng: str = ""
    """State of the generator that it will use."""


class Hook(WatchRecord, frozen=True, tag="hook"):
    """Communication hook."""

    m: int
    name: str


class HookedValues(WatchRecord, frozen=True, tag="hooked"):
    """Input and output values of a communication hook, or of a manual reduction (`m` is -1)."""

    m: int
    n: int
    s: int
    given: list[Value]
    after: list[Value]
    group: list[int] = []


class Shape(WatchRecord, frozen=True, tag="shape"):
    """Device and types of a model."""

    m: int
    device: str
    dtypes: list[str]
    numel: int = 0
    uuid: str = ""
    layers: list[str] = []
    """Layers of torch.nn with their settings, which must be equal on all replicas."""


class Forward(WatchRecord, frozen=True, tag="forward"):
    """Forward pass with gradients."""

    s: int
    m: int
    n: int
    h: str
    kinds: list[str]
    train: bool
    varies: bool
    synced: bool
    cast: list[str]
    rng: str
    site: int = 0


class Backward(WatchRecord, frozen=True, tag="backward"):
    """Backward pass."""

    s: int
    n: int
    loss: Value
    scaled: bool
    rng: str
    mean: bool
    m: int
    f: int
    site: int = 0
    divided: list[float] = []
    """Numbers above 1 by which the program divided the loss."""


class ParameterSet(msgspec.Struct, frozen=True):
    """Parameters of a step that belong together."""

    kind: str
    m: int
    n: int
    shapes: str
    group: list[int]
    g: str
    gs: list[Value]
    p0: str
    p0s: list[Value]
    finite: bool
    own: int
    of: int
    largest: int
    p1: str = ""
    p1s: list[Value] = []
    since: dict[str, int] = {}
    hook: str = ""
    unknown: int = 0
    twice: bool = False
    ratio: float | None = None
    op: str = ""
    other: int = 0
    """Elements of the largest tensor that the program reduced other than gradients."""
    shaped: bool = False
    """Since the previous step it reduced tensors of the sizes of all of these gradients."""
    rooted: int = 0
    """Number of gradients reduced to another rank."""
    b: str = ""
    bs: list[Value] = []
    """Buffers of a replica that are not synchronised."""


class Step(WatchRecord, frozen=True, tag="step"):
    """Step of an optimizer."""

    o: int
    s: int
    f: dict[str, int]
    hyper: list[dict[str, list[Value]]]
    sets: list[ParameterSet]
    grads: int
    trainable: int
    backwards: int
    cleared: bool
    site: int = 0
    calls: list[str] = []
    """Functions of torch.distributed that the process has called until then."""
    models: list[int] = []
    """Models whose parameters the optimizer holds."""


class FirstStep(WatchRecord, frozen=True, tag="begun"):
    """First step of a process."""

    initialized: bool
    rank: int | None = None
    world: int | None = None
    other: bool = False
    """A library other than torch.distributed may exchange gradients."""


class Order(WatchRecord, frozen=True, tag="order"):
    """Start of a sampler that divides data between ranks."""

    i: int
    n: int
    epoch: int
    shuffle: bool
    replicas: int
    rank: int
    s: int
    loader: int = -1
    e: int = 0
    """Epoch of that loader, from 1."""
    data: int = 0
    """Number of its data set; 0 if it is unknown."""
    samples: int = 0
    backwards: int = 0
    seed: int = 0
    site: int = 0


class Batch(WatchRecord, frozen=True, tag="batch"):
    """Batch of a loader."""

    i: int
    e: int
    n: int
    h: str
    s: int
    b: int
    site: int = 0
    made: int = 0
    shuffles: bool = False
    """The loader draws the order of its samples."""
    workers: int = 0
    """Workers that each read the data set as a stream."""
    of: int = 0
    """Batches of an epoch; 0 if unknown."""
    rows: list[int] = []
    """Hashes of some of its samples, if none occurs twice in an epoch."""


class Epoch(WatchRecord, frozen=True, tag="epoch"):
    """End of a loader's epoch."""

    i: int
    e: int
    n: int
    trained: int
    s: int
    site: int = 0


class Fetch(WatchRecord, frozen=True, tag="fetch"):
    """Request of samples from a data set; `before`: generators that it used -> their state before."""

    w: int
    e: int
    n: int
    index: int
    before: dict[str, str]
    s: int
    site: int = 0
    file: str = ""
    line: int = 0
    size: int = 0
    """Number of samples; 0 if the data set does not number them."""


class Mesh(WatchRecord, frozen=True, tag="mesh"):
    """New mesh of ranks."""

    shape: list[int]
    names: list[str]
    ranks: list[int]
    site: int = 0


class MadeGroup(WatchRecord, frozen=True, tag="group"):
    """New process group."""

    ranks: list[int] | None
    site: int = 0


class Join(WatchRecord, frozen=True, tag="join"):
    """Start of a join context for uneven inputs; `f`: model -> its forward passes until then."""

    f: dict[str, int] = {}


class DroppedWork(WatchRecord, frozen=True, tag="dropped"):
    """Work that the program dropped without waiting."""

    call: str
    site: int
    s: int


class EarlyRead(WatchRecord, frozen=True, tag="early"):
    """Step that read gradients while they were still being exchanged."""

    call: str
    site: int
    s: int


class OutsideCall(WatchRecord, frozen=True, tag="outside"):
    """Call on a group that does not include the rank."""

    call: str
    site: int
    s: int


class JoinCollective(WatchRecord, frozen=True, tag="joined"):
    """Collective by the program itself while ranks may have joined."""

    call: str
    site: int
    s: int


class Clip(WatchRecord, frozen=True, tag="clip"):
    """Clipped gradients: still `scaled`, shards by a rank's `own` norm, `early` before a sum, `late` after the step."""

    how: str
    call: str
    s: int
    site: int = 0


class EmptyLoad(WatchRecord, frozen=True, tag="unloaded"):
    """Non-strict load of a state dict in which no name matched the model."""

    given: int
    first: str
    s: int
    site: int = 0


class GatheredOutput(WatchRecord, frozen=True, tag="gathered"):
    """Gathered outputs of `n` parameters without a gradient; `n` is 0 if one gets a gradient later."""

    call: str
    s: int
    n: int
    site: int = 0


class ReplicatedValues(WatchRecord, frozen=True, tag="replicated"):
    """Tensor declared equal on all ranks of a group."""

    group: list[int]
    n: int
    shape: list[int]
    values: list[Value]
    s: int
    site: int = 0


class Phases(WatchRecord, frozen=True, tag="phases"):
    """Samples of the main thread's phases in a window of time."""

    t: float
    seconds: float
    steps: int
    counts: dict[str, int]
    lines: list[tuple[str, str, int, int]]
    waited: float = 0.0
    """Seconds that the main thread was runnable without a processor; 0 if the kernel does not count them."""


class WatchOff(WatchRecord, frozen=True, tag="off"):
    """The watch was disabled."""

    why: str


class EndOfNotes(WatchRecord, frozen=True, tag="end"):
    """End of a process's notes."""

    spent: float
    seconds: float


class NotesFull(WatchRecord, frozen=True, tag="full"):
    """The file has reached its limit."""


AnyRecord = (
    Process | Site | Model | Hook | Shape | Forward | Backward | Step | FirstStep | Order | Batch | Epoch | Fetch | Mesh
    | MadeGroup | HookedValues | Join | DroppedWork | EarlyRead | OutsideCall | JoinCollective
    | Clip | EmptyLoad | GatheredOutput | ReplicatedValues | Phases | WatchOff | EndOfNotes | NotesFull
)  # fmt: skip
