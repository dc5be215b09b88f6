"""Makes a plan from rehearsals: ranks with equal calls are one role, repetitions are loops, sizes are formulas."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from dtdebug.experiments.call_plan.plan import ANY, OTHERS, Head, Item, Loop, Number, Plan, PlannedCall, Role
from dtdebug.experiments.collectives.recording_format import Key

_WIDEST = 512
"""Maximum number of calls in a round of a loop."""
_OBJECTS = "uint8"
"""Type of the tensors in which objects are sent: their sizes depend on values."""
Calls = Mapping[int, Sequence[Key]]


def make_plan(calls: Calls, head: Head, larger: tuple[Calls, int] | None) -> Plan:
    """Return the plan of rehearsed ranks; a rehearsal of a larger job turns sizes into formulas where both agree."""
    world = head.world
    role = _roles(calls, world)
    if larger is not None:
        other = {r.ranks: r for r in _roles(*larger)}
        joined = [
            Role(r.ranks, _join(r.calls, other[r.ranks].calls, (world, larger[1])) or ())
            for r in role
            if r.ranks in other
        ]
        if len(joined) == len(role) and all(j.calls or not r.calls for j, r in zip(joined, role, strict=True)):
            role = joined
    return Plan(head, tuple(role))


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


def _join(one: Sequence[Item], other: Sequence[Item], worlds: tuple[int, int]) -> tuple[Item, ...] | None:
    """Return the calls of two world sizes as one; None if they are not built alike."""
    if len(one) != len(other):
        return None
    found = [_join_items(a, b, worlds) for a, b in zip(one, other, strict=True)]
    return tuple(item for item in found if item is not None) if None not in found else None


def _join_items(one: Item, other: Item, worlds: tuple[int, int]) -> Item | None:
    if isinstance(one, Loop) and isinstance(other, Loop):
        inner = _join(one.calls, other.calls, worlds)
        return None if inner is None else Loop(formula((one.repeat, other.repeat), worlds), inner)
    if isinstance(one, Loop) or isinstance(other, Loop) or _form(one) != _form(other):
        return None
    return msgspec.structs.replace(
        one,
        group=tuple(formula(pair, worlds) for pair in zip(one.group, other.group, strict=True)),
        sizes=tuple(
            tuple(formula(pair, worlds) for pair in zip(a, b, strict=True))
            for a, b in zip(one.sizes, other.sizes, strict=True)
        ),
    )


def _form(call: PlannedCall) -> tuple[object, ...]:
    form = tuple(len(size) for size in call.sizes)
    return call.op, form, call.dtypes, len(call.group), call.members, call.ordinal, call.root, call.to, call.line


def formula(pair: tuple[Number, Number], worlds: tuple[int, int]) -> Number:
    """Return the number that has these two values at these two world sizes, `any` if no formula has."""
    first, second = pair
    if first == second or not (isinstance(first, int) and isinstance(second, int)):
        return first if first == second else ANY
    small, large = worlds
    if first * large == second * small and first % small == 0:
        return f"{first // small}*W" if first > small else "W"
    for plus in (0, -1, 1):  # the first round, or the last, may differ from the others
        whole = max((first - plus) * small, (second - plus) * large)
        for shared in range(whole, max(whole - large, 0), -1):  # the largest that both shares are rounded up from
            if (-(-shared // small) + plus, -(-shared // large) + plus) == pair:
                return f"{shared}/W{f'{plus:+d}' if plus else ''}"
    times, rest = divmod(second - first, large - small)
    if not rest and times > 0:
        plus = first - times * small
        return f"{f'{times}*' if times > 1 else ''}W{plus:+d}"
    return ANY
