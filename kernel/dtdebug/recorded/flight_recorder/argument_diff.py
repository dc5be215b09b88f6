"""Formats the arguments of calls: in full, or only those that differ between two calls."""

from __future__ import annotations

from collections.abc import Sequence

from dtdebug.recorded.flight_recorder.rank_program import Symbol

_SHOWN = 120
"""Maximum number of characters of one shape."""


def full(s: Symbol) -> str:
    """Format all arguments of a call, truncated at the end."""
    sizes = f"{_sizes(s.inputs)} -> {_sizes(s.outputs)}"
    types = " -> ".join(dict.fromkeys(t for t in s.dtypes if t))
    return f"{sizes} {types}".strip()[: 2 * _SHOWN]


def arguments(one: Symbol, other: Symbol) -> tuple[str, str]:
    """Return the differing arguments of two calls, those of each call in full; empty if none differ."""
    if one.op != other.op:
        return _plain(one), _plain(other)
    if one.dtypes != other.dtypes:
        return _types(one), _types(other)
    for name, a, b in (("input", one.inputs, other.inputs), ("output", one.outputs, other.outputs)):
        if a == b:
            continue
        if len(a) != len(b):
            return f"{len(a)} {name}s", f"{len(b)} {name}s"
        index = next(i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)
        nth = f" {index + 1}" if len(a) > 1 else ""
        return f"{name}{nth} {_shape(a[index])}", f"{name}{nth} {_shape(b[index])}"
    return "", ""


def _plain(s: Symbol) -> str:
    sizes = s.inputs or s.outputs
    return " ".join(filter(None, (" x ".join(map(_shape, sizes[:2])), next((t for t in s.dtypes if t), ""))))


def _types(s: Symbol) -> str:
    one, other = (*s.dtypes, "", "")[:2]
    return f"type {one or 'none'}" + (f" to {other or 'none'}" if one != other else "")


def _sizes(sizes: Sequence[Sequence[int]]) -> str:
    shown = ", ".join(map(_shape, sizes[:4]))
    return f"{shown}, ... {len(sizes) - 4} more" if len(sizes) > 4 else shown or "nothing"


def _shape(size: Sequence[int]) -> str:
    return str(list(size))[:_SHOWN]
