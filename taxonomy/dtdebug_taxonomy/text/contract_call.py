"""A call as a contract sees it, and the sentences of the contract filled with its names and values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from dtdebug_taxonomy.text.demands import DemandError, Plain, Scope, UnknownTermError, value_of
from dtdebug_taxonomy.text.pattern_matcher import plain

_LONG = 48
"""Maximum length of an expression that stands in a sentence."""
_SLOT = re.compile(r"\{(?P<value>=?)(?P<what>[^{}!]{1,80})(?P<bare>!?)\}")
_LITERAL = re.compile(r"-?\d[\d._]{0,20}|None|True|False|'[^'\\]{0,40}'|\"[^\"\\]{0,40}\"")
_FACTS = frozenset({"members", "world_size", "rank", "backend"})

Span = tuple[int, int]
"""First and last column of an expression in the user's line, the last one excluded."""


class UserCall(NamedTuple):
    """One call as the user wrote it, with what is known of its arguments."""

    name: str
    """Name of the API: `reduce_scatter`."""
    module: str
    """The user's name of the module or object before it: `dist`."""
    expressions: dict[str, tuple[str, Span]]
    """Parameter -> the user's expression and its place in the line."""
    texts: dict[str, str]
    """Parameter, fact or operand -> the text of its value."""
    scope: Scope

    def words(self, parameter: str) -> str:
        """Return the user's expression for a parameter, or the name of the parameter."""
        found = self.expressions.get(parameter)
        return found[0] if found is not None and len(found[0]) <= _LONG else parameter


class UnknownSlotError(Exception):
    """A sentence speaks of something that is not known of the call."""


def fill(template: str, call: UserCall, extra: Mapping[str, str] | None = None, *, strict: bool = True) -> str:
    """Return a sentence with its slots filled: names as the user wrote them, values as they were.

    Raises:
        UnknownSlotError: a value is not known, and the sentence is `strict`.

    """

    def slot(found: re.Match[str]) -> str:
        what = found["what"]
        if what == "api":
            return call.name
        if extra and what in extra:
            return extra[what]
        if found["bare"]:
            return call.words(what)
        if not found["value"] and what.isidentifier() and (what not in _FACTS or what in call.expressions):
            words = call.words(what)
            return f"`{what if _LITERAL.fullmatch(words) else words}`"  # "`num_workers` is -1", not "`-1` is -1"
        return _value(what, call, strict=strict)

    return plain(_SLOT.sub(slot, template), 600)


def _value(expression: str, call: UserCall, *, strict: bool) -> str:
    if expression in call.texts and not _is_plain(expression, call):
        return call.texts[expression]
    try:
        return show(value_of(expression, call.scope))
    except (UnknownTermError, DemandError):
        if strict:
            raise UnknownSlotError(expression) from None
        return f"`{expression}`"


def _is_plain(name: str, call: UserCall) -> bool:
    try:
        return value_of(name, call.scope) is not None
    except UnknownTermError:
        return False


def show(value: Plain) -> str:
    """Return a plain value as a sentence shows it: shapes as lists, whole numbers without a point."""
    if isinstance(value, tuple):
        return f"[{', '.join(show(part) for part in value)}]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def short_name(api: str) -> str:
    """Return the name by which users know an API: the class for its constructor and `forward`."""
    parts = api.split(".")
    if len(parts) > 1 and parts[-1] in {"__init__", "forward", "__call__", "__new__"}:
        return parts[-2]
    return parts[-1]
