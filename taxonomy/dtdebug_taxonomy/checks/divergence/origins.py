"""Values as far as ranks may differ in them, and the calls in which a value of this rank alone begins."""

from __future__ import annotations

import ast
import re
from typing import Literal, NamedTuple, Protocol

from dtdebug_taxonomy.checks.shared.names import LOADER, SAMPLER
from dtdebug_taxonomy.checks.shared.ranks_seen import depends_on_rank
from dtdebug_taxonomy.checks.shared.stepping import AGREES
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.syntax import Function

Kind = Literal["rank", "text", "batch", "part", "loader", "clock", "file", "random", "machine", "signal", "parameter"]

CLOCKS = {
    *("time.time", "time.monotonic", "time.perf_counter", "time.time_ns", "time.monotonic_ns", "time.perf_counter_ns"),
    *("datetime.datetime.now", "datetime.datetime.utcnow"),
}
_MACHINE = {
    *("socket.gethostname", "platform.node", "os.uname", "os.getpid", "uuid.uuid4", "uuid.uuid1", "os.cpu_count"),
    *("shutil.disk_usage", "os.getloadavg", "torch.cuda.mem_get_info", "torch.cuda.memory_allocated"),
    *("torch.cuda.memory_reserved", "torch.cuda.max_memory_allocated", "psutil.virtual_memory", "os.urandom"),
}
_LOOKS = re.compile(r"(^|\.)(exists|isfile|isdir|is_file|is_dir|lexists)$")
_LISTS = {"os.listdir", "os.scandir", "glob.glob", "glob.iglob"}
_RANDOM = re.compile(r"(random|numpy\.random)\.(random|rand|randint|choice|uniform|randrange|getrandbits|randn|normal)")
_TORCH_RANDOM = re.compile(r"torch\.(rand|randn|randint|randperm|normal)")
_PURE = {
    *("len", "float", "int", "bool", "abs", "min", "max", "sum", "any", "all", "list", "tuple", "set", "sorted"),
    *(
        "enumerate",
        "zip",
        "iter",
        "round",
        "range",
        "reversed",
        "map",
        "filter",
        "divmod",
    ),
    *("itertools.islice", "itertools.chain", "dict", "frozenset"),
}
_REDUCES = re.compile(
    r"sum|min|max|any|all|(torch|numpy)\.(\w*(mean|sum|min|max|median|cat|stack|concatenate|array)|tensor)"
)
_FILLED = "filled"
"""Name of the origin of a list that a loop over batches fills, which unlike a loader can be computed with."""
_OF_TEXT = {"str", "repr", "format", "os.path.join", "os.path.abspath", "os.path.dirname", "pathlib.Path", "torch.load"}
"""Functions that make a text or path of their arguments, or read what a path names."""
_PURE_PACKAGES = ("torch.", "math.", "numpy.")
_OBJECTS = ("torch.distributed.", "torch.nn.parallel.", "torch.cuda.", "torch.device", "torch.optim.", "torch.utils.")
_STATIC = frozenset(
    {"shape", "dtype", "device", "ndim", "is_cuda", "requires_grad", "training", "size", "dim", "grad_fn"}
)
"""Attributes and methods of tensors that are equal for batches of one loader."""
_SEEDS = re.compile(r"(^|_|\.)(manual_)?seed(s|_all|_everything)?($|_)|set_(global_)?(random_)?seed|seed_everything")


class Origin(NamedTuple):
    """Reason why a value may differ between ranks."""

    kind: Kind
    name: str = ""
    """Parameter that it enters by, or the call that gives it."""
    item: bool = False
    """True for an item of the parameter."""


class Callee(NamedTuple):
    """Function, lambda, class or object of one that a value may be."""

    code: Code
    node: Function | ast.Lambda | ast.ClassDef
    owner: ast.ClassDef | None = None
    """Class of the object whose method it is."""
    made: bool = False
    """True for an object of the class."""


class Seeded(Protocol):
    """Program of which is known how its ranks draw numbers: `interpreter.Interpreter`."""

    code: Code

    def seeds_by_rank(self) -> bool: ...  # noqa: D102 - as there
    def is_unseeded(self) -> bool: ...  # noqa: D102


class Value(NamedTuple):
    """Knowledge of an expression's value."""

    origins: frozenset[Origin] = frozenset()
    callees: frozenset[Callee | str] = frozenset()
    """Functions and objects that it may be; a text is a library's function in which the ranks wait."""
    agreed: bool = False
    """True if the ranks have exchanged it."""
    parts: tuple[Value, ...] = ()
    """Values of the elements of a tuple."""

    def __or__(self, other: Value) -> Value:
        """Return what both may be: a value that the ranks exchange in one way counts as exchanged."""
        if self is other or other is EQUAL:
            return self
        if self is EQUAL:
            return other
        if self.agreed or other.agreed:
            return AGREED
        pairs = zip(self.parts, other.parts, strict=True) if len(self.parts) == len(other.parts) else ()
        return Value(
            self.origins | other.origins, self.callees | other.callees, parts=tuple(one | two for one, two in pairs)
        )

    def of_kind(self, *kinds: Kind) -> bool:
        """True if an origin has one of these kinds."""
        return any(o.kind in kinds for o in self.origins)

    @property
    def items(self) -> Value:
        """Value of the items of a sequence or loader."""
        return Value(frozenset(_item(o) for o in self.origins))


def _item(origin: Origin) -> Origin:
    if origin.kind == "parameter":
        return origin._replace(item=True)
    if origin.kind == "rank":
        return Origin("text", origin.name)  # of a row that was chosen by the rank
    return Origin("batch", origin.name) if origin.kind in {"part", "loader"} else origin


def as_sequence(value: Value) -> Value:
    """Return the value of what holds such values, one for each round: as long on all ranks as their loops."""
    return Value(frozenset(_holder(o) for o in value.origins), agreed=value.agreed)


def _holder(origin: Origin) -> Origin:
    if origin.kind == "parameter":
        return origin._replace(item=False)
    return Origin("loader", _FILLED) if origin.kind == "batch" else origin


def _reduce(value: Value) -> Value:
    """Return what is computed from all that a list holds."""
    filled = Origin("loader", _FILLED)
    return value._replace(origins=frozenset(Origin("batch") if o == filled else o for o in value.origins))


def as_text(value: Value) -> Value:
    """Return the value of a text or path that is made of a value.

    It may contain the rank, as the name of a file does; what a program asks of it is seldom that.
    """
    return Value(
        frozenset(Origin("text", o.name) if o.kind == "rank" else o for o in value.origins), agreed=value.agreed
    )


EQUAL = Value()
AGREED = Value(agreed=True)


def own(kind: Kind, name: str = "") -> Value:
    """Return a value with one origin."""
    return Value(frozenset({Origin(kind, name)}))


def mix(*values: Value) -> Value:
    """Return the value of an expression that is computed from these."""
    if all(v is EQUAL for v in values):
        return EQUAL
    origins = frozenset(o for v in values for o in v.origins)
    if not origins and any(v.agreed for v in values):
        return AGREED
    return Value(origins, frozenset(c for v in values for c in v.callees))


def communicates(name: str) -> bool:
    """True if ranks exchange values in a function of this qualified name, judging by the name."""
    return bool(AGREES.search(name.rpartition(".")[2])) and not name.startswith("torch.cuda.")


def looks_for_file(name: str, call: ast.Call) -> bool:
    """True if a call, whose function has this qualified name, asks whether a file is there."""
    return bool(_LOOKS.search(name) or (isinstance(call.func, ast.Attribute) and _LOOKS.search("." + call.func.attr)))


def value_of_call(home: Seeded, call: ast.Call, name: str, given: Value) -> Value | None:
    """Return the value of a library's call by its qualified name, given its arguments'; None if it is unknown."""
    code = home.code
    if name in CLOCKS:
        return own("clock", name)
    if name in _MACHINE:
        return own("machine", name)
    if looks_for_file(name, call):
        return own("file", "own" if given.of_kind("rank", "text", "part", "batch", "machine") else "shared")
    if name in _LISTS:
        return own("part") if given.of_kind("rank", "text", "machine") else EQUAL
    if _RANDOM.fullmatch(name):
        return own("random", name) if home.is_unseeded() else EQUAL
    if _TORCH_RANDOM.fullmatch(name) and home.seeds_by_rank():
        return own("batch", name)
    if name == LOADER:
        return own("part") if given.of_kind("part") else own("loader") if _is_split(code, call) else EQUAL
    if name == "next":
        return given.items
    if name == "isinstance" or (name.startswith("torch.") and name.rpartition(".")[2] in _STATIC):
        return EQUAL
    if name == "len" and given.of_kind("loader"):
        return EQUAL
    if name in _OF_TEXT:
        return as_text(given)
    if name in _PURE or (name.startswith(_PURE_PACKAGES) and not name.startswith(_OBJECTS)):
        return _reduce(given) if _REDUCES.fullmatch(name) else given
    return None


def _is_split(code: Code, loader: ast.Call) -> bool:
    """True if a loader's sampler is the library's for several ranks, or a class that is told the rank."""
    samplers = [a for a in (code.argument(loader, "sampler", 3), code.argument(loader, "batch_sampler", 4)) if a]
    made = (v for s in samplers for v in (s, *code.values(s)) if isinstance(v, ast.Call))
    return any(code.is_made_by(s, SAMPLER) for s in samplers) or any(
        depends_on_rank(code, a) for c in made for a in (*c.args, *(k.value for k in c.keywords))
    )


def value_of_attribute(of: Value, attribute: str) -> Value:
    """Return the value of an attribute, or of a method's result, of a value that is no object of the project."""
    return EQUAL if attribute in _STATIC else Value(of.origins, agreed=of.agreed)


def seeds_by_rank(code: Code) -> bool:
    """True if the program seeds each rank differently."""
    return any(depends_on_rank(code, a) for c in _seeds(code) for a in c.args)


def is_unseeded(code: Code) -> bool:
    """True if each rank draws its own numbers: the program seeds by its rank or process, or does not seed."""
    seeds = _seeds(code)
    named = {code.name(inner.func) for c in seeds for inner in code.inside(c, ast.Call) if inner is not c}
    return bool(named & _MACHINE) or seeds_by_rank(code) if seeds else code.role == "program"


def _seeds(code: Code) -> list[ast.Call]:
    return [c for name, calls in code.calls_by_name.items() if _SEEDS.search(name) for c in calls]
