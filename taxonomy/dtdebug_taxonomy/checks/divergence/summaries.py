"""Effects of a function on its callers, in terms of its parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from dtdebug_taxonomy.checks.divergence.origins import EQUAL, Callee, Origin, Value, mix
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.syntax import Function


class Decision(NamedTuple):
    """Condition, loop or call by which a rank alone may decide whether it comes to a meeting."""

    code: Code
    node: ast.AST
    value: Value


class Summary(NamedTuple):
    """Effects of a function on its callers, in terms of its parameters."""

    returns: Value = EQUAL
    exchanged: frozenset[str] = frozenset()
    """Parameters whose values are equal on all ranks afterwards."""
    kept: Value = EQUAL
    """Parameters that its object keeps in attributes."""
    decisions: tuple[Decision, ...] = ()


class Program(Protocol):
    """Functions of one program, as the interpretation of one of them needs the others: `interpreter.Interpreter`."""

    code: Code
    waits: set[ast.Call]

    def of(self, code: Code) -> Program: ...  # noqa: D102 - as there
    def summary(self, node: ast.AST) -> Summary: ...  # noqa: D102
    def global_value(self, name: str) -> Value: ...  # noqa: D102
    def prepare(self, home: ast.ClassDef) -> None: ...  # noqa: D102
    def method(self, home: ast.ClassDef, name: str) -> Function | None: ...  # noqa: D102
    def attribute(self, home: ast.ClassDef, name: str) -> Value: ...  # noqa: D102
    def meetings(self, node: ast.AST) -> tuple[str, ...]: ...  # noqa: D102
    def met(self, call: ast.Call, callee: Value | None = None) -> tuple[str, ...]: ...  # noqa: D102
    def note(self, call: ast.Call, names: tuple[str, ...]) -> None: ...  # noqa: D102
    def seeds_by_rank(self) -> bool: ...  # noqa: D102
    def is_unseeded(self) -> bool: ...  # noqa: D102
    def callees(self, call: ast.Call) -> Iterable[Callee | str]: ...  # noqa: D102


def replace_parameters(value: Value, given: dict[str, Value]) -> Value:
    """Return a function's value with the values of its arguments in the place of its parameters."""
    if not value.of_kind("parameter"):
        return value
    rest = Value(frozenset(o for o in value.origins if o.kind != "parameter"), value.callees)
    whole = mix(rest, *(_argument(o, given) for o in value.origins if o.kind == "parameter"))
    return whole._replace(parts=tuple(replace_parameters(p, given) for p in value.parts))


def _argument(origin: Origin, given: dict[str, Value]) -> Value:
    value = given.get(origin.name, EQUAL)
    return value.items if origin.item else value


def without_parameters(value: Value) -> Value:
    """Return a value without the parameters of the function that it comes from."""
    return replace_parameters(value, {})
