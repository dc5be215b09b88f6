"""Differences of two plans in words, for the review of a change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from dtdebug.experiments.call_plan.formulas import Number
from dtdebug.experiments.call_plan.plan import OTHERS, Item, Loop, Plan, PlannedCall

_Row = tuple[tuple[Number, ...], PlannedCall]
"""Rounds of the loops around a call, and the call without its line."""


def changes(before: Plan, after: Plan) -> list[str]:
    """Return what ranks call otherwise, one sentence for each run of changed calls."""
    names = {name: None for plan in (before, after) for role in plan.role for name in role.ranks}
    found: dict[str, list[str]] = {}
    for name in sorted(names, key=lambda name: (name == OTHERS, name)):
        old, new = (_calls_of(plan, name) for plan in (before, after))
        for change in _compare(old, new):
            found.setdefault(change, []).append(name)
    return [_sentence(ranks, len(names), change) for change, ranks in found.items()]


def _calls_of(plan: Plan, name: str) -> Sequence[Item]:
    roles = {rank: role for role in plan.role for rank in role.ranks}
    role = roles.get(name) or roles.get(OTHERS)
    return role.calls if role is not None else ()


def _compare(before: Sequence[Item], after: Sequence[Item]) -> Iterator[str]:
    old, new = [list(_rows(items)) for items in (before, after)]
    matcher = SequenceMatcher(None, [row for row, _ in old], [row for row, _ in new], autojunk=False)
    for what, a, b, c, d in matcher.get_opcodes():
        if what == "equal":
            continue
        gone, come = ([f"{_say(row)} ({line})" for row, line in rows] for rows in (old[a:b], new[c:d]))
        if gone and come:
            yield f"begin {_list(come)} instead of {_list(gone)}."
        elif come:
            yield f"also begin {_list(come)}."
        else:
            yield f"no longer begin {_list(gone)}."


def _rows(items: Sequence[Item], rounds: tuple[Number, ...] = ()) -> Iterator[tuple[_Row, str]]:
    for item in items:
        if isinstance(item, Loop):
            yield from _rows(item.calls, (*rounds, item.repeat))
        else:
            yield (rounds, item.what()), item.line


def _say(row: _Row) -> str:
    rounds, call = row
    return f"{call}{''.join(f', {n} times' for n in rounds)}"


def _list(parts: Sequence[str]) -> str:
    return "; ".join(parts[:4]) + (f"; and {len(parts) - 4} more" if len(parts) > 4 else "")


def _sentence(ranks: Sequence[str], everyone: int, change: str) -> str:
    if len(ranks) == everyone:
        return f"All ranks {change}"
    if len(ranks) == 1 and ranks[0] != OTHERS:
        return f"Rank {ranks[0]} {change.replace('begin', 'begins', 1)}"
    text = ", ".join([f"rank {name}" for name in ranks if name != OTHERS] + ["the others"] * (OTHERS in ranks))
    return f"{text[:1].upper()}{text[1:]} {change}"
