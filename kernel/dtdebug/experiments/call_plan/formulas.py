"""Numbers of a plan: whole numbers, or formulas of the world size W and of options of the program.

`3*W`, `2*W-1`, `96/W-1` (rounded up), `2*layers+1`, `8*W*batch_size`, or `any`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

ANY = "any"
WORLD = "W"
Number = int | str
Axis = tuple[str, int, int]
"""A name, and its values in two rehearsals."""
_NAME = r"[A-Za-z_]\w{0,60}"
_FORMULA = re.compile(
    rf"(?:(?P<times>\d{{1,12}})\*)?(?P<name>{_NAME})(?:\*(?P<other>{_NAME}))?(?P<plus>[+-]\d{{1,12}})?"
    rf"|(?P<shared>\d{{1,15}})/(?P<by>{_NAME})(?P<more>[+-]\d{{1,3}})?"
)


def names(number: Number) -> set[str]:
    """Return the names in a formula.

    Raises:
        ValueError: it is not a formula.

    """
    if isinstance(number, int) or number == ANY:
        return set()
    found = _FORMULA.fullmatch(number)
    if found is None:
        raise ValueError(f"{number!r} is no number, no formula such as 2*W, 96/W or 2*layers, and not any")
    return {name for name in (found["name"], found["other"], found["by"]) if name}


def evaluate(number: Number, world: int) -> int | None:
    """Return a number for a world size; None for `any`, and where it depends on an option."""
    found = substitute(number, {WORLD: world})
    return found if isinstance(found, int) else None


def substitute(number: Number, values: Mapping[str, int]) -> Number:
    """Return a number in which names have their values; what has no value stays."""
    found = None if isinstance(number, int) else _FORMULA.fullmatch(number)
    if found is None or number == ANY:
        return number
    if found["shared"]:
        by = values.get(found["by"], 0)
        return max(0, -(-int(found["shared"]) // by) + int(found["more"] or 0)) if by > 0 else number
    product, left = int(found["times"] or 1), []
    for name in filter(None, (found["name"], found["other"])):
        if name in values:
            product *= values[name]
        else:
            left.append(name)
    plus = int(found["plus"] or 0)
    return _text(product, "*".join(left), plus) if left else product + plus


def number_of(values: Sequence[Number], axes: Sequence[Axis]) -> Number:
    """Return the number that has the first value at first, and one of the others as one axis has its second value."""
    base, *others = values
    changed = [(axis, value) for axis, value in zip(axes, others, strict=True) if value != base]
    if not changed:
        return base
    if len(changed) == 1:
        ((name, small, large), value) = changed[0]
        return formula((base, value), (small, large), name)
    if len(changed) > 2 or not all(isinstance(value, int) for value in values):
        return ANY
    whole = int(base)
    for (_, small, large), value in changed:
        if whole * large != int(value) * small:
            return ANY
    share = changed[0][0][1] * changed[1][0][1]
    return ANY if whole % share else _text(whole // share, "*".join(axis[0] for axis, _ in changed), 0)


def formula(pair: tuple[Number, Number], at: tuple[int, int], name: str = WORLD) -> Number:
    """Return the number that has these two values at these two values of a name, `any` if no formula has."""
    first, second = pair
    if first == second or not (isinstance(first, int) and isinstance(second, int)):
        return first if first == second else ANY
    small, large = at
    if first * large == second * small and first % small == 0:
        return _text(first // small, name, 0)
    for plus in (0, -1, 1):  # the first round, or the last, may differ from the others
        whole = max((first - plus) * small, (second - plus) * large)
        for shared in range(whole, max(whole - large, 0), -1):  # the largest that both shares are rounded up from
            if (-(-shared // small) + plus, -(-shared // large) + plus) == pair:
                return f"{shared}/{name}{f'{plus:+d}' if plus else ''}"
    times, rest = divmod(second - first, large - small)
    return _text(times, name, first - times * small) if not rest and times > 0 else ANY


def _text(times: int, name: str, plus: int) -> str:
    return f"{f'{times}*' if times != 1 else ''}{name}{f'{plus:+d}' if plus else ''}"
