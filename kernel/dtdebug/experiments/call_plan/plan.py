"""A plan of collectives: which calls each role of ranks begins, in order, as a TOML file that people review.

    version = 1
    command = ["train.py", "--steps", "3"]
    world = 4
    outside = ["train.py:40-44"]           # depends on values: not compared

    [[role]]
    ranks = ["others"]
    calls = [
      {op = "broadcast_", sizes = [[10, 64]], dtypes = ["float32"], root = 0, line = "train.py:12"},
      {repeat = "96/W", calls = [
        {op = "allreduce_", sizes = [["2*W"]], dtypes = ["float32"], line = "train.py:20"},
      ]},
    ]

Sizes and rounds are numbers, or formulas of the world size W and of the options that the head names (`formulas.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from dtdebug.errors import UsageError
from dtdebug.experiments.call_plan.formulas import ANY, WORLD, Number, names, substitute
from dtdebug.privacy.sanitize import clean
from dtdebug.storage import state_dir
from dtdebug_taxonomy.source.config.toml import read_toml

VERSION = 1
OTHERS = "others"
_BYTES = 1 << 20
_RANK = re.compile(r"\d{1,7}|W-\d{1,7}|others")


class PlannedCall(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Collective or message that is begun."""

    op: str
    """Operator of PyTorch: `allreduce_`."""
    sizes: tuple[tuple[Number, ...], ...] = ()
    dtypes: tuple[str, ...] = ()
    group: tuple[Number, ...] = ()
    """Number of ranks of the group and the distance between two of them; empty for all ranks."""
    members: tuple[int, ...] = ()
    """Ranks of a group that are not equally far apart."""
    ordinal: int = 0
    """Index among the groups with the same ranks."""
    root: int | None = None
    """Index in the group of the rank that sends to all or gets from all; -1 for the last."""
    to: int | None = None
    """Distance in the group to the rank that a message goes to or comes from."""
    line: str = ""
    """File and line of the program, which may move: not compared."""

    def what(self) -> PlannedCall:
        """Return the call without its line."""
        return msgspec.structs.replace(self, line="")

    def __str__(self) -> str:
        tensors = [f"{d}[{', '.join(map(str, s))}]" for s, d in zip(self.sizes, self.dtypes, strict=False)]
        some = ", ".join(tensors[:3]) + ", ..." * (len(tensors) > 3)
        parts = [self.op.strip("_"), *([f"of {some}"] if some else [])]
        if self.group or self.members:
            parts.append(f"in a group of {self.group[0] if self.group else len(self.members)}")
        if self.root is not None:
            parts.append(f"with root {self.root}" if self.root >= 0 else "with the last rank as root")
        if self.to is not None:
            parts.append(f"with the rank {self.to:+d}")
        return " ".join(parts)


class Loop(NamedTuple):
    """Calls that are begun again and again."""

    repeat: Number
    calls: tuple[Any, ...]
    """Calls and loops."""


Item = PlannedCall | Loop


class Role(NamedTuple):
    """Ranks that begin the same calls."""

    ranks: tuple[str, ...]
    """`0`, `W-1`, or `others`."""
    calls: tuple[Item, ...]


class Head(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Head of a plan: what it was made from."""

    version: int = VERSION
    command: tuple[str, ...] = ()
    world: int
    outside: tuple[str, ...] = ()
    """Lines that depend on values, as `FILE:FIRST-LAST`: their calls are not compared."""
    options: dict[str, int] = {}
    """Options of the program that formulas name, with the values of `command`."""


class Plan(NamedTuple):
    """All roles of a job."""

    head: Head
    role: tuple[Role, ...]

    def role_of(self, rank: int, world: int) -> Role | None:
        """Return the role of a rank in a job of that size."""
        named = {rank_number(name, world): role for role in self.role for name in role.ranks if name != OTHERS}
        return named.get(rank) or next((role for role in self.role if OTHERS in role.ranks), None)


def rank_number(name: str, world: int) -> int:
    """Return the rank that `0` or `W-1` names."""
    return world - int(name[2:]) if name.startswith("W-") else int(name)


def with_options(plan: Plan, values: Mapping[str, int]) -> Plan:
    """Return the plan of a job whose options have these values; formulas of other options become `any`."""

    def fixed(number: Number) -> Number:
        left = substitute(number, values)
        return left if names(left) <= {WORLD} else ANY

    def item(one: Item) -> Item:
        if isinstance(one, Loop):
            return Loop(fixed(one.repeat), tuple(map(item, one.calls)))
        sizes = tuple(tuple(map(fixed, size)) for size in one.sizes)
        return msgspec.structs.replace(one, group=tuple(map(fixed, one.group)), sizes=sizes)

    return Plan(plan.head, tuple(Role(role.ranks, tuple(map(item, role.calls))) for role in plan.role))


def read(path: Path) -> Plan:
    """Return the plan in a file.

    Raises:
        UsageError: the file can't be read, or is no plan.

    """
    try:
        table = read_toml(state_dir.read_start(path, _BYTES).decode())
    except OSError as error:
        raise UsageError(f"{path}: can't be read: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"{path}: no TOML: {error}") from None
    try:
        plan = _plan(table)
        _check(plan)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise UsageError(f"{path}: no plan of `dtdebug rehearse --save`: {clean(str(error))}") from None
    return plan


def _plan(table: dict[str, Any]) -> Plan:
    roles = tuple(Role(tuple(r["ranks"]), _items(r["calls"])) for r in table.pop("role", ()))
    return Plan(msgspec.convert(table, Head), roles)


def _items(rows: Sequence[dict[str, Any]]) -> tuple[Item, ...]:
    return tuple(
        Loop(row["repeat"], _items(row["calls"])) if "repeat" in row else msgspec.convert(row, PlannedCall)
        for row in rows
    )


def _check(plan: Plan) -> None:
    if plan.head.version != VERSION:
        raise ValueError(f"version {plan.head.version}, and {VERSION} is read here")
    if not plan.role:
        raise ValueError("it has no role")
    for name in (name for role in plan.role for name in role.ranks):
        if not _RANK.fullmatch(name):
            raise ValueError(f"ranks: {name!r} is not 0, W-1 or others")
    for number in _numbers(item for role in plan.role for item in role.calls):
        if unknown := names(number) - {WORLD, *plan.head.options}:
            raise ValueError(f"{number!r}: `options` has no {min(unknown)}")


def _numbers(items: Iterable[Item]) -> Iterator[Number]:
    for item in items:
        if isinstance(item, Loop):
            yield item.repeat
            yield from _numbers(item.calls)
        else:
            yield from item.group
            for size in item.sizes:
                yield from size


def write(plan: Plan) -> str:
    """Return the text of a plan's file."""
    lines = [
        "# The collectives that each rank begins, in order. `dtdebug run --contract` compares a job with it.",
        f"version = {plan.head.version}",
        f"command = {_value(plan.head.command)}",
        f"world = {plan.head.world}",
        f"outside = {_value(plan.head.outside)}  # lines that depend on values: not compared",
    ]
    if plan.head.options:
        lines.append(f"options = {{{', '.join(f'{name} = {value}' for name, value in plan.head.options.items())}}}")
    for role in plan.role:
        lines += ["", "[[role]]", f"ranks = {_value(role.ranks)}", "calls = [", *_lines(role.calls, "  "), "]"]
    return "\n".join(lines) + "\n"


def _lines(items: Iterable[Item], indent: str) -> Iterator[str]:
    for item in items:
        if isinstance(item, Loop):
            yield f"{indent}{{repeat = {_value(item.repeat)}, calls = ["
            yield from _lines(item.calls, indent + "  ")
            yield f"{indent}]}},"
        else:
            fields = msgspec.to_builtins(item)
            yield f"{indent}{{{', '.join(f'{name} = {_value(value)}' for name, value in fields.items())}}},"


def _value(value: Any) -> str:
    """Return a value of TOML, whose strings, numbers and arrays are those of JSON."""
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
