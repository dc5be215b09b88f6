"""The lines that the ranks of a watched training write, one type for each kind."""

from __future__ import annotations

import msgspec

Value = float | str
"""A number; as text where it is not finite."""


class WatchRecord(msgspec.Struct, tag_field="k", frozen=True):
    """One line."""


class Process(WatchRecord, frozen=True, tag="process"):
    """Which process wrote what follows."""

    pid: int
    parent: int = 0
    host: str = ""
    rank: int | None = None
    world: int | None = None


class Site(WatchRecord, frozen=True, tag="site"):
    """A place in the user's code, to which the others refer by number."""

    i: int
    file: str
    line: int
    fn: str = ""


class Model(WatchRecord, frozen=True, tag="model"):
    """A wrapped model."""

    m: int
    kind: str
    group: list[int]
    site: int = 0
    p: str = ""
    ps: list[Value] = []
    """Its parameters when it was wrapped."""
    loaded: bool = False
    """Weights had been loaded into it, or into a part of it."""
    rng: str = ""
    """The state of the generator that will draw for it."""


class Hook(WatchRecord, frozen=True, tag="hook"):
    """A communication hook."""

    m: int
    name: str


class Hooked(WatchRecord, frozen=True, tag="hooked"):
    """Values that a communication hook was given, or a reduction by hand (`m` is -1), and what was made of them."""

    m: int
    n: int
    s: int
    given: list[Value]
    after: list[Value]
    group: list[int] = []


class Shape(WatchRecord, frozen=True, tag="shape"):
    """Where a model is, and of which types."""

    m: int
    device: str
    dtypes: list[str]
    numel: int = 0
    uuid: str = ""
    layers: list[str] = []
    """Its kinds of layers with their settings, of torch's own layers whose replicas have to be alike."""


class Forward(WatchRecord, frozen=True, tag="forward"):
    """A forward pass with gradients."""

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
    """A backward pass."""

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


class Set(msgspec.Struct, frozen=True):
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
    """Elements of the largest tensor that the program reduced beside the gradients."""
    shaped: bool = False
    """Since the step before it reduced tensors of the sizes of all of these gradients."""
    rooted: int = 0
    """Gradients that were reduced to another rank than this one."""
    b: str = ""
    bs: list[Value] = []
    """Buffers of a replica that nobody makes equal."""


class Step(WatchRecord, frozen=True, tag="step"):
    """A step of an optimizer."""

    o: int
    s: int
    f: dict[str, int]
    hyper: list[dict[str, list[Value]]]
    sets: list[Set]
    grads: int
    trainable: int
    backwards: int
    cleared: bool
    site: int = 0
    calls: list[str] = []
    """Functions of torch.distributed that the process has called until then."""
    models: list[int] = []
    """Models of which the optimizer holds parameters."""


class Begun(WatchRecord, frozen=True, tag="begun"):
    """The first step of a process."""

    initialized: bool
    rank: int | None = None
    world: int | None = None
    other: bool = False
    """Another library than torch.distributed may exchange gradients."""


class Order(WatchRecord, frozen=True, tag="order"):
    """A sampler that divides data between ranks begins."""

    i: int
    n: int
    epoch: int
    shuffle: bool
    replicas: int
    rank: int
    s: int
    loader: int = -1
    seed: int = 0
    site: int = 0


class Batch(WatchRecord, frozen=True, tag="batch"):
    """A loader gave a batch."""

    i: int
    e: int
    n: int
    h: str
    s: int
    b: int
    site: int = 0
    made: int = 0
    shuffles: bool = False
    """It draws the order of its samples."""
    workers: int = 0
    """Workers that each read the data set as a stream."""
    of: int = 0
    """Batches of an epoch; 0 where nobody knows."""
    rows: list[int] = []
    """Hashes of some of its samples, where none comes twice in an epoch."""


class Epoch(WatchRecord, frozen=True, tag="epoch"):
    """A loader has given all its batches."""

    i: int
    e: int
    n: int
    trained: int
    s: int
    site: int = 0


class Fetch(WatchRecord, frozen=True, tag="fetch"):
    """A data set was asked for samples; `before`: generators that it drew from -> their state before."""

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
    """Samples; 0 where the data set numbers none."""


class Mesh(WatchRecord, frozen=True, tag="mesh"):
    """A mesh of ranks was made."""

    shape: list[int]
    names: list[str]
    ranks: list[int]
    site: int = 0


class MadeGroup(WatchRecord, frozen=True, tag="group"):
    """A group was made."""

    ranks: list[int] | None
    site: int = 0


class Join(WatchRecord, frozen=True, tag="join"):
    """The program let ranks join early; `f`: model -> its forward passes until then."""

    f: dict[str, int] = {}


class Dropped(WatchRecord, frozen=True, tag="dropped"):
    """A work that nobody waits for."""

    call: str
    site: int
    s: int


class Early(WatchRecord, frozen=True, tag="early"):
    """A step read gradients that were still being exchanged."""

    call: str
    site: int
    s: int


class Outside(WatchRecord, frozen=True, tag="outside"):
    """A call on a group of which the rank is no member."""

    call: str
    site: int
    s: int


class Joined(WatchRecord, frozen=True, tag="joined"):
    """A collective of the program's own while ranks may have joined."""

    call: str
    site: int
    s: int


class Clip(WatchRecord, frozen=True, tag="clip"):
    """Clipped gradients: still `scaled`, shards by a rank's `own` norm, `early` before a sum, `late` after the step."""

    how: str
    call: str
    s: int
    site: int = 0


class Unloaded(WatchRecord, frozen=True, tag="unloaded"):
    """A state dict of which no name is one of the model's was loaded, and that was no error."""

    given: int
    first: str
    s: int
    site: int = 0


class Gathered(WatchRecord, frozen=True, tag="gathered"):
    """Outputs of `n` parameters were gathered, and none of these gets a gradient; `n` is 0 where one gets it later."""

    call: str
    s: int
    n: int
    site: int = 0


class Replicated(WatchRecord, frozen=True, tag="replicated"):
    """A tensor was declared to be the same on all ranks of a group."""

    group: list[int]
    n: int
    shape: list[int]
    values: list[Value]
    s: int
    site: int = 0


class Phases(WatchRecord, frozen=True, tag="phases"):
    """What the main thread was busy with in a window of time."""

    t: float
    seconds: float
    steps: int
    counts: dict[str, int]
    lines: list[tuple[str, str, int, int]]
    waited: float = 0.0
    """Seconds for which the main thread could have run and had no processor; 0 where the kernel does not say."""


class Off(WatchRecord, frozen=True, tag="off"):
    """The watch has ended itself there."""

    why: str


class LastWords(WatchRecord, frozen=True, tag="end"):
    """The last words."""

    spent: float
    seconds: float


class Full(WatchRecord, frozen=True, tag="full"):
    """The file has reached its limit."""


Any_ = (
    Process | Site | Model | Hook | Shape | Forward | Backward | Step | Begun | Order | Batch | Epoch | Fetch | Mesh
    | MadeGroup | Hooked | Join | Dropped | Early | Outside | Joined | Clip | Unloaded | Gathered | Replicated | Phases
    | Off | LastWords | Full
)  # fmt: skip
