"""Takes a rank through its plan: which calls may come next, and whether the one that came is one of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from dtdebug.experiments.call_plan.formulas import ANY, evaluate
from dtdebug.experiments.call_plan.plan import Item, Loop, PlannedCall

_MOST = 64
"""Maximum places at which a rank may be at the same time, where loops have any number of rounds."""
Place = tuple[tuple[int, int], ...]
"""Index and round of each loop around a call, and the index of the call; () is the end."""


class Follower:
    """Places of one rank in its plan."""

    def __init__(self, items: Sequence[Item], world: int, *, free_loops: bool = False) -> None:
        """Begin before the first call; with `free_loops` the outermost loops have any number of rounds."""
        self._items, self._world, self._free = items, world, free_loops
        self._places = set(self._entries((), 0))

    def next_calls(self) -> list[PlannedCall]:
        """Return the calls that may come next."""
        return [self._call(place) for place in sorted(self._places) if place]

    def rounds(self) -> str:
        """Return the round of the innermost loop, such as `round 3 of 6`; empty outside of one."""
        place = max(self._places, default=())
        if len(place) < 2:
            return ""
        count = self._count(place[:-1])
        return f"round {place[-2][1] + 1} of {count}" if count is not None else ""

    def can_end(self) -> bool:
        """True if no call is missing."""
        return () in self._places

    def take(self, call: PlannedCall) -> bool:
        """Go on behind a call; return False, and stay, if it is not expected."""
        after = {
            place
            for here in self._places
            if here and fits(self._call(here), call, self._world)
            for place in self._entries(here[:-1], here[-1][0] + 1)
        }
        if not after:
            return False
        self._places = set(sorted(after)[:_MOST])
        return True

    def _body(self, loops: Place) -> Sequence[Item]:
        items = self._items
        for index, _ in loops:
            items = cast("Loop", items[index]).calls
        return items

    def _call(self, place: Place) -> PlannedCall:
        return cast("PlannedCall", self._body(place[:-1])[place[-1][0]])

    def _count(self, loops: Place) -> int | None:
        loop = cast("Loop", self._body(loops[:-1])[loops[-1][0]])
        return None if self._free and len(loops) == 1 else evaluate(loop.repeat, self._world)

    def _entries(self, loops: Place, index: int) -> Iterator[Place]:
        """Yield the places of the calls that come next, at an index of a loop's body."""
        items = self._body(loops)
        if index < len(items):
            item = items[index]
            if isinstance(item, PlannedCall):
                yield (*loops, (index, 0))
                return
            inside = (*loops, (index, 0))
            if self._count(inside) in (None, 0):
                yield from self._entries(loops, index + 1)
            if self._count(inside) != 0 and item.calls:
                yield from self._entries(inside, 0)
        elif not loops:
            yield ()
        else:
            at, number = loops[-1]
            count = self._count(loops)
            if count is None or number + 1 < count:
                again = number if count is None else number + 1  # rounds that nobody counts are all alike
                yield from self._entries((*loops[:-1], (at, again)), 0)
            if count is None or number + 1 >= count:
                yield from self._entries(loops[:-1], at + 1)


def fits(planned: PlannedCall, call: PlannedCall, world: int) -> bool:
    """True if a call is the planned one, whatever line it stands in."""
    same = (planned.op, planned.dtypes, planned.members, planned.ordinal, planned.root, planned.to) == (
        call.op, call.dtypes, call.members, call.ordinal, call.root, call.to,
    )  # fmt: skip
    pairs = [(planned.group, call.group), *zip(planned.sizes, call.sizes, strict=False)]
    return (
        same
        and len(planned.sizes) == len(call.sizes)
        and all(
            len(a) == len(b) and all(ANY in (x, y) or evaluate(x, world) == y for x, y in zip(a, b, strict=True))
            for a, b in pairs
        )
    )
