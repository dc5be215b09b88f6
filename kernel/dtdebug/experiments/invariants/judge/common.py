"""Helpers shared by the comparisons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from dtdebug.experiments.invariants.read_records import Rank
from dtdebug.experiments.invariants.record_types import Model, Value
from dtdebug_taxonomy.model.rank_ranges import spell
from dtdebug_taxonomy.model.training import Violation

T = TypeVar("T")
_ROUNDING = 1e-5
"""Maximum relative difference between replicas that rounding explains."""


def violation(  # noqa: PLR0917 - one argument per part of the message
    invariant: str,
    symptom: str,
    ranks: Iterable[int],
    step: int,
    place: tuple[str, int],
    means: str,
    *,
    fix: str = "",
) -> Violation:
    """Return a violation at a place; `fix` is the remedy of what was seen, as a sentence."""
    return Violation(
        invariant=invariant,
        ranks=tuple(sorted(set(ranks))),
        step=max(1, step),
        file=place[0],
        line=place[1],
        symptom=symptom,
        means=means,
        fix=fix,
    )


def who(ranks: Iterable[int]) -> str:
    """Format ranks for the beginning of a sentence."""
    text = spell(tuple(sorted(set(ranks))), 8)
    return f"{text[:1].upper()}{text[1:]}"


def differ(a: tuple[str, Sequence[Value]], b: tuple[str, Sequence[Value]]) -> bool:
    """True if the values differ by more than rounding."""
    if a[0] == b[0]:
        return False
    if len(a[1]) != len(b[1]) or list(a[1]) == list(b[1]):
        return True
    for x, y in zip(a[1], b[1], strict=True):
        if isinstance(x, str) or isinstance(y, str):
            if x != y:
                return True
        elif abs(x - y) > _ROUNDING * max(abs(x), abs(y), 1e-12):
            return True
    return False


def odd(values: Mapping[int, T]) -> tuple[int, ...]:
    """Return the ranks whose value differs from most; all ranks if there is no majority."""
    counts = Counter(map(repr, values.values()))
    if len(counts) < 2:
        return ()
    (first, number), (_, second) = counts.most_common(2)
    if number == second:
        return tuple(sorted(values))
    return tuple(sorted(rank for rank, value in values.items() if repr(value) != first))


def groups(ranks: Sequence[Rank], lists: Mapping[int, Sequence[int]]) -> list[list[Rank]]:
    """Return the members of each group that name the same group; ranks without notes are left out."""
    found: dict[tuple[int, ...], list[Rank]] = {}
    for rank in ranks:
        named = tuple(lists.get(rank.rank, ()))
        if rank.rank in named:
            found.setdefault(named, []).append(rank)
    return [members for members in found.values() if len(members) > 1]


def model_place(rank: Rank) -> tuple[str, int] | None:
    """Return the place where the rank's first wrapped model was made."""
    model = next(iter(rank.of(Model)), None)
    return rank.place(model.site) if model is not None and model.site else None


def first(values: Iterable[Any], default: Any = None) -> Any:
    """Return the first value, or a default."""
    return next(iter(values), default)
