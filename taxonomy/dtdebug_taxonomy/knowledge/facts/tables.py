"""Types of the rows in the tables of facts."""

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
    """Range of examined versions in which a name exists; empty = from before, or to this day."""

    since: str = ""
    until: str = ""


class Nccl(Table, frozen=True, kw_only=True):
    """Environment variables that NCCL reads."""

    versions: tuple[str, ...]
    variables: dict[str, Lifetime]
    constants: tuple[str, ...]
    """Names of the same form that are not variables (enumerators)."""


class Meaning(Fact, frozen=True, kw_only=True):
    """Meaning of a documented variable, in our words."""

    means: str
    values: str = ""
    default: str = ""
    debugging: bool = False
    """True if it is meant for debugging, not to be left in scripts."""
    wrong: str = ""
    """Common mistake with it."""
    url: str = ""
    """Address of its documentation; empty if the whole table has one page."""


class Vendor(Fact, frozen=True, kw_only=True):
    """The variables of one project or vendor, or the names that it exports."""

    url: str
    """Address of the documentation for entries without one of their own."""
    variables: dict[str, Meaning] = {}
    names: dict[str, Meaning] = {}


class EnvironmentRead(Fact, frozen=True):
    """File under `torch/` that reads a variable."""

    where: str


class RenamedVariable(Fact, frozen=True, kw_only=True):
    """Variable that has a new name; the old one may still work, with a warning."""

    new: str
    since: str = ""
    url: str = ""


class TorchEnv(Table, frozen=True, kw_only=True):
    """Environment variables that torch reads."""

    variables: dict[str, EnvironmentRead]
    strings: dict[str, EnvironmentRead]
    """Names in torch's libraries: nearly all are variables, but that is not certain."""
    renamed: dict[str, RenamedVariable]


class Option(Fact, frozen=True, kw_only=True):
    """Option of a launcher."""

    spellings: tuple[str, ...]
    takes_value: bool = True
    choices: tuple[str | int, ...] = ()
    default: str = ""
    type: str = ""
    means: str = ""


class Launcher(Fact, frozen=True, kw_only=True):
    """Command that starts ranks."""

    source: str
    url: str
    options: dict[str, Option]
    """Options by their first long spelling."""

    def option(self, spelling: str) -> Option | None:
        """Return the option with this spelling, or None."""
        known = self.options.get(spelling)
        return known or next((o for o in self.options.values() if spelling in o.spellings), None)


class Launchers(Table, frozen=True, kw_only=True):
    """Launchers and their options, by name."""

    launchers: dict[str, Launcher]


class DeepSpeedKey(Fact, frozen=True, kw_only=True):
    """Key of the DeepSpeed configuration."""

    type: Literal["boolean", "integer", "number", "string", "array", "object", ""] = ""
    default: Any = None
    auto: bool = False
    """True if Transformers or Accelerate replace "auto"; DeepSpeed alone does not."""
    open: bool = False
    """True if the table does not list all keys below it."""
    replaced_by: str = ""


class DeepSpeedConfig(Table, frozen=True, kw_only=True):
    """The DeepSpeed configuration, with dotted keys."""

    keys: dict[str, DeepSpeedKey]
    removed: tuple[str, ...]
    """Keys that this version of DeepSpeed rejects."""


class ConfigKey(Fact, frozen=True, kw_only=True):
    """Key of Accelerate's `default_config.yaml`."""

    type: str = ""
    default: Any = None


class AccelerateConfig(Table, frozen=True, kw_only=True):
    """Accelerate's configuration, with dotted keys for sections."""

    keys: dict[str, ConfigKey]


class Arguments(Table, frozen=True, kw_only=True):
    """The arguments of one class over its versions."""

    versions: tuple[str, ...]
    arguments: dict[str, Lifetime]


class Replacement(Fact, frozen=True, kw_only=True):
    """Replacement for a removed argument, with its documentation."""

    use: str
    url: str
    removed: str = ""
    """Exact version without it, if the table only has the last examined version with it."""


class NnModule(Table, frozen=True, kw_only=True):
    """Public attributes of `torch.nn.Module`, and what each wrapper has besides."""

    module: tuple[str, ...]
    wrappers: dict[str, tuple[str, ...]]


class Function(Fact, frozen=True, kw_only=True):
    """Function of torch.distributed that communicates with other ranks, or creates groups of them."""

    kind: Kind
    parameters: tuple[str, ...]
    """Parameters that may be passed by position."""
    required: int = 0
    """Number of leading parameters without a default."""
    keyword_only: tuple[str, ...] = ()
    async_op: bool = False


class TorchDistributed(Table, frozen=True, kw_only=True):
    """The functions of torch.distributed."""

    functions: dict[str, Function]


class PublicName(Fact, frozen=True, kw_only=True):
    """Function or class of a framework."""

    kind: Literal["class", "function"]
    takes: str
    """Arguments with their defaults, in parentheses; empty if its sources do not list them."""


class PublicNames(Table, frozen=True, kw_only=True):
    """Names that frameworks export."""

    names: dict[str, PublicName]
    elsewhere: dict[str, PublicName]
    """Names of less used packages and modules: too common to recognise a call by the last part alone."""
    methods: dict[str, dict[str, str]]
    """Class -> method -> its arguments; empty for a property."""

    def version(self, package: str) -> str:
        """Return the package with the version whose sources were read."""
        return _version(self.source, package)


class ReadVariable(Fact, frozen=True):
    """Environment variable that a project reads."""

    where: str
    """File that reads it, with the project's name in front."""
    default: str = ""
    type: str = ""
    new: str = ""
    """Current name of the variable."""


class Environment(Table, frozen=True, kw_only=True):
    """Environment variables that frameworks, engines, networks and device runtimes read."""

    variables: dict[str, ReadVariable]

    def version(self, project: str) -> str:
        """Return the project with the version, or the date, of the sources that were read."""
        return _version(self.source, project)


class Family(Fact, frozen=True):
    """Common mistake with all names or variables of one kind that have no text of their own."""

    pattern: str
    """Pattern for the whole name."""
    wrong: str
