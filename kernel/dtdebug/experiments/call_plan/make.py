"""Makes a plan from rehearsals: ranks with equal calls are one role, repetitions are loops, sizes are formulas."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from dtdebug.experiments.call_plan.formulas import ANY, WORLD, Axis, Number, number_of
from dtdebug.experiments.call_plan.plan import OTHERS, Head, Item, Loop, Plan, PlannedCall, Role
from dtdebug.experiments.collectives.recording_format import Key

_WIDEST = 512
"""Maximum number of calls in a round of a loop."""
_OBJECTS = "uint8"
"""Type of the tensors in which objects are sent: their sizes depend on values."""
Calls = Mapping[int, Sequence[Key]]


class Varied(NamedTuple):
    """A rehearsal with another world size, or another value of one option."""

    name: str
    small: int
    """Value in the rehearsal that it is compared with."""
    large: int
    calls: Calls


def make_plan(calls: Calls, head: Head, varied: Sequence[Varied] = ()) -> tuple[Plan, list[str]]:
    """Return the plan of rehearsed ranks, and the names that no formula is found for.

    A rehearsal of a larger job, or with another value of an option, turns numbers into formulas where all agree.
    """
    world = head.world
    role = _roles(calls, world)
    fitting = [each for each in varied if _join_roles(role, [each], world) is not None]
    joined = _join_roles(role, fitting, world) if fitting else None
    if joined is None:
        return Plan(head, tuple(role)), [each.name for each in varied]
    return Plan(head, tuple(joined)), [each.name for each in varied if each not in fitting]


def _join_roles(role: Sequence[Role], varied: Sequence[Varied], world: int) -> list[Role] | None:
    """Return the roles with formulas; None if the rehearsals are not built alike."""
    others = [
        {r.ranks: r.calls for r in _roles(each.calls, each.large if each.name == WORLD else world)} for each in varied
    ]
    axes = [(each.name, each.small, each.large) for each in varied]
    found = []
    for each in role:
        calls = [other.get(each.ranks) for other in others]
        if None in calls:
            return None
        items = _join([each.calls, *(c for c in calls if c is not None)], axes)
        if items is None:
            return None
        found.append(Role(each.ranks, items))
    return found


def _roles(calls: Calls, world: int) -> list[Role]:
    alike: dict[tuple[Item, ...], list[int]] = defaultdict(list)
    for rank, theirs in calls.items():
        alike[fold([planned_call(key, rank, world) for key in theirs])].append(rank)
    most = max(alike, key=lambda items: (len(alike[items]), -min(alike[items])))
    named = [
        Role((OTHERS,) if items is most else tuple(_rank_name(r, world) for r in ranks), items)
        for items, ranks in alike.items()
    ]
    return sorted(named, key=lambda role: (OTHERS in role.ranks, role.ranks))


def _rank_name(rank: int, world: int) -> str:
    return str(rank) if rank < world / 2 else f"W-{world - rank}"


def planned_call(key: Key, rank: int, world: int) -> PlannedCall:
    """Return a call as each rank of its role would describe it, relative to its own place in the group."""
    group: tuple[Number, ...] = ()
    members: tuple[int, ...] = ()
    if key.group and len(key.group) != world:
        steps = {b - a for a, b in zip(key.group, key.group[1:], strict=False)}
        group, members = ((len(key.group), *steps), ()) if len(steps) == 1 else ((), key.group)
    place = key.group.index(key.peer) if key.peer in key.group else None
    mine = key.group.index(rank) if rank in key.group else 0
    message = key.op == "send" or key.op.startswith("recv")
    return PlannedCall(
        op=key.op,
        sizes=tuple(
            (ANY,) if d == _OBJECTS and len(s) == 1 else s for s, d in zip(key.shapes, key.dtypes, strict=True)
        ),
        dtypes=key.dtypes,
        group=group,
        members=members,
        ordinal=key.ordinal,
        root=None if message or place is None else -1 if place == len(key.group) - 1 > 0 else place,
        to=place - mine if message and place is not None else None,
        line=f"{file_name(key.file)}:{key.line}" if key.line else "",
    )


def file_name(file: str) -> str:
    """Return a path as plans name it: below the working directory, else the name alone."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else path.name


def fold(calls: Sequence[Item]) -> tuple[Item, ...]:
    """Return the calls with repetitions as loops, those of fewest calls first."""
    items = list(calls)
    width = 1
    while width <= min(_WIDEST, len(items) // 2):
        items = _fold_runs(items, width)
        width += 1
    return tuple(items)


def _fold_runs(items: Sequence[Item], width: int) -> list[Item]:
    found: list[Item] = []
    at = 0
    while at < len(items):
        body = items[at : at + width]
        end = at + width
        while items[end : end + width] == body and len(body) == width:
            end += width
        rounds = (end - at) // width
        if rounds > 1:
            found.append(Loop(rounds, tuple(body)))
            at = end
        else:
            found.append(items[at])
            at += 1
    return found


def _join(plans: Sequence[Sequence[Item]], axes: Sequence[Axis]) -> tuple[Item, ...] | None:
    """Return the calls of several rehearsals as one; None if they are not built alike."""
    if len({len(items) for items in plans}) != 1:
        return None
    found = [_join_items(items, axes) for items in zip(*plans, strict=True)]
    return tuple(item for item in found if item is not None) if None not in found else None


def _join_items(items: Sequence[Item], axes: Sequence[Axis]) -> Item | None:
    loops = [item for item in items if isinstance(item, Loop)]
    if len(loops) == len(items):
        inner = _join([loop.calls for loop in loops], axes)
        return None if inner is None else Loop(number_of([loop.repeat for loop in loops], axes), inner)
    calls = [item for item in items if isinstance(item, PlannedCall)]
    if loops or len({_form(call) for call in calls}) != 1:
        return None
    return msgspec.structs.replace(
        calls[0],
        group=tuple(number_of(values, axes) for values in zip(*(call.group for call in calls), strict=True)),
        sizes=tuple(
            tuple(number_of(values, axes) for values in zip(*sizes, strict=True))
            for sizes in zip(*(call.sizes for call in calls), strict=True)
        ),
    )


def _form(call: PlannedCall) -> tuple[object, ...]:
    form = tuple(len(size) for size in call.sizes)
    return call.op, form, call.dtypes, len(call.group), call.members, call.ordinal, call.root, call.to, call.line
