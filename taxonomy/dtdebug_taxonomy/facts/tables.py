"""What the tables of facts hold, row by row."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Kind = Literal["collective", "object", "point-to-point", "group"]


def _version(source: str, package: str) -> str:
    return next(part for part in source.split(", ") if part.startswith(f"{package} ")).partition("+")[0]


class Fact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of all entries: immutable, strict about keys."""


class Table(Fact, frozen=True, kw_only=True):
    """Base of all generated tables."""

    source: str
    generated_by: str


class Lifetime(Fact, frozen=True):
    """In which of the versions that were looked at a name exists; empty = from before, or to this day."""

    since: str = ""
    until: str = ""


class Nccl(Table, frozen=True, kw_only=True):
    """What NCCL reads from the environment."""

    versions: tuple[str, ...]
    variables: dict[str, Lifetime]
    constants: tuple[str, ...]
    """Names of the same form that are no variables (enumerators)."""


class Meaning(Fact, frozen=True, kw_only=True):
    """What a documented variable does, in our words."""

    means: str
    values: str = ""
    default: str = ""
    debugging: bool = False
    """Meant for looking for a fault, not to be left in scripts."""
    wrong: str = ""
    """What goes wrong with it."""
    url: str = ""
    """Where that is documented; empty where all of a table have one page."""


class Vendor(Fact, frozen=True, kw_only=True):
    """The variables of one project or vendor, or the names that it exports."""

    url: str
    """Where those are documented that have no address of their own."""
    variables: dict[str, Meaning] = {}
    names: dict[str, Meaning] = {}


class Read(Fact, frozen=True):
    """Where in torch a variable is read: a file under `torch/`."""

    where: str


class Renamed(Fact, frozen=True, kw_only=True):
    """A variable that has a new name; the old one may still work, with a warning."""

    new: str
    since: str = ""
    url: str = ""


class TorchEnv(Table, frozen=True, kw_only=True):
    """What torch reads from the environment."""

    variables: dict[str, Read]
    strings: dict[str, Read]
    """Names in torch's libraries: nearly all are variables, but that is not certain."""
    renamed: dict[str, Renamed]


class Option(Fact, frozen=True, kw_only=True):
    """An option of a launcher."""

    spellings: tuple[str, ...]
    takes_value: bool = True
    choices: tuple[str | int, ...] = ()
    default: str = ""
    type: str = ""
    means: str = ""


class Launcher(Fact, frozen=True, kw_only=True):
    """A command that starts ranks."""

    source: str
    url: str
    options: dict[str, Option]
    """By the first long spelling."""

    def option(self, spelling: str) -> Option | None:
        """The option that is spelt so, if there is one."""
        known = self.options.get(spelling)
        return known or next((o for o in self.options.values() if spelling in o.spellings), None)


class Launchers(Table, frozen=True, kw_only=True):
    """What launchers take, by their names."""

    launchers: dict[str, Launcher]


class DeepSpeedKey(Fact, frozen=True, kw_only=True):
    """A key of the DeepSpeed configuration."""

    type: Literal["boolean", "integer", "number", "string", "array", "object", ""] = ""
    default: Any = None
    auto: bool = False
    """Transformers or Accelerate replace "auto"; DeepSpeed alone does not."""
    open: bool = False
    """Keys below it are not all in the table."""
    replaced_by: str = ""


class DeepSpeedConfig(Table, frozen=True, kw_only=True):
    """The DeepSpeed configuration, keys dotted."""

    keys: dict[str, DeepSpeedKey]
    removed: tuple[str, ...]
    """Keys that this version of DeepSpeed refuses."""


class ConfigKey(Fact, frozen=True, kw_only=True):
    """A key of Accelerate's `default_config.yaml`."""

    type: str = ""
    default: Any = None


class AccelerateConfig(Table, frozen=True, kw_only=True):
    """Accelerate's configuration, keys of sections dotted."""

    keys: dict[str, ConfigKey]


class Arguments(Table, frozen=True, kw_only=True):
    """The arguments of one class over its versions."""

    versions: tuple[str, ...]
    arguments: dict[str, Lifetime]


class Replacement(Fact, frozen=True, kw_only=True):
    """What to write instead of a removed argument, and where that is said."""

    use: str
    url: str
    removed: str = ""
    """The exact version without it, where a table knows only which of those looked at had it last."""


class NnModule(Table, frozen=True, kw_only=True):
    """Public attributes of `torch.nn.Module`, and what each wrapper has besides."""

    module: tuple[str, ...]
    wrappers: dict[str, tuple[str, ...]]


class Function(Fact, frozen=True, kw_only=True):
    """A function of torch.distributed that talks to other ranks, or makes groups of them."""

    kind: Kind
    parameters: tuple[str, ...]
    """Those that may be given by position."""
    required: int = 0
    """So many of the first parameters have no default."""
    keyword_only: tuple[str, ...] = ()
    async_op: bool = False


class TorchDistributed(Table, frozen=True, kw_only=True):
    """The functions of torch.distributed."""

    functions: dict[str, Function]


class PublicName(Fact, frozen=True, kw_only=True):
    """A function or class of a framework."""

    kind: Literal["class", "function"]
    takes: str
    """Its arguments with their defaults, in parentheses; empty where its sources do not say."""


class PublicNames(Table, frozen=True, kw_only=True):
    """What frameworks export."""

    names: dict[str, PublicName]
    elsewhere: dict[str, PublicName]
    """Names of packages and modules that are less used: too common to recognise a call by the last part alone."""
    methods: dict[str, dict[str, str]]
    """Class -> method -> what it takes; empty for a property."""

    def version(self, package: str) -> str:
        """The package with the version whose sources were read."""
        return _version(self.source, package)


class ReadVariable(Fact, frozen=True):
    """A variable of the environment that a project reads."""

    where: str
    """The file, with the project's name before it."""
    default: str = ""
    type: str = ""
    new: str = ""
    """What it is called now."""


class Environment(Table, frozen=True, kw_only=True):
    """What frameworks, engines, networks and devices' runtimes read from the environment."""

    variables: dict[str, ReadVariable]

    def version(self, project: str) -> str:
        """The project with the version, or the day, of the sources that were read."""
        return _version(self.source, project)


class Family(Fact, frozen=True):
    """What goes wrong with all names or variables of one kind that have no text of their own."""

    pattern: str
    """Of the whole name."""
    wrong: str
