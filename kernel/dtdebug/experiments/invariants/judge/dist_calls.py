"""Checks the program's own calls of torch.distributed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from dtdebug.experiments.invariants.judge.common import violation, who
from dtdebug.experiments.invariants.read_records import Rank
from dtdebug.experiments.invariants.record_types import (
    DroppedWork,
    EarlyRead,
    FirstStep,
    JoinCollective,
    MadeGroup,
    Mesh,
    OutsideCall,
    Step,
)
from dtdebug_taxonomy.model.training import Violation

_SAID: tuple[tuple[type[DroppedWork | EarlyRead | OutsideCall | JoinCollective], str, str], ...] = (
    (
        DroppedWork, "work-dropped",
        (
            "{who} began {call} and dropped its work without waiting: what it writes may be read before it is "
            "there. Keep the "
            "work and call wait() before the tensor is read."
        ),
    ),
    (
        EarlyRead, "read-before-wait",
        (
            "{who}: the optimizer read gradients while {call} was still writing them: nothing had waited for it. "
            "Call wait() "
            "before step()."
        ),
    ),
    (
        OutsideCall, "not-a-member",
        (
            "{who} called {call} of a group it is not a member of: nothing is exchanged there, and its tensor "
            "stays as it was."
        ),
    ),
    (
        JoinCollective, "collective-in-join",
        (
            "{who} called {call} within join(): ranks without data answer only the collectives of the wrapper, so "
            "that it meets "
            "one of those and its values are wrong."
        ),
    ),
)  # fmt: skip


def wrong_calls(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report calls that are wrong in themselves."""
    for kind, invariant, means in _SAID:
        found: dict[tuple[tuple[str, int], str], list[tuple[Rank, int]]] = {}
        for rank in ranks:
            for row in rank.of(kind):
                found.setdefault((rank.place(row.site), row.call), []).append((rank, row.s))
        for (place, call), rows in found.items():
            who_ = {rank.rank for rank, _ in rows}
            text = means.format(who=who(who_), call=call)
            yield violation(invariant, "D.2.4", who_, min(s for _, s in rows), place, text)


def meshes(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report ranks that disagree on a mesh, or that create different groups or create them in another order."""
    for a, b in combinations(ranks, 2):
        mine, theirs = ({tuple(sorted(m.ranks)): m for m in r.of(Mesh) if len(set(m.ranks)) > 1} for r in (a, b))
        count_a, count_b = len(a.of(Mesh)), len(b.of(Mesh))
        for members, mesh in mine.items():
            other = theirs.get(members)
            if other is None or count_a != count_b or a.rank not in members or b.rank not in members:
                continue
            layouts = ({(tuple(m.shape), tuple(m.names), tuple(m.ranks)) for m in r.of(Mesh)} for r in (a, b))
            if len({frozenset(layout) for layout in layouts}) > 1:
                odd_, place = _odd_mesh(ranks, members, mesh)
                yield violation(
                    "mesh-differs", "D.2.4", odd_, 1, place,
                    f"{who(odd_)} and the others lay out the same ranks in different meshes: their groups don't "
                    "match, and they "
                    "exchange values that don't belong together.",
                )  # fmt: skip
                return
        groups = [[tuple(g.ranks) if g.ranks is not None else () for g in r.of(MadeGroup)] for r in (a, b)]
        if len(groups[0]) == len(groups[1]) and groups[0] != groups[1] and sorted(groups[0]) != sorted(groups[1]):
            at = next(i for i, (x, y) in enumerate(zip(*groups, strict=True)) if x != y)
            if set(groups[0][at]) & set(groups[1][at]):
                row = b.of(MadeGroup)[at]
                yield violation(
                    "groups-differ", "D.2.4", {a.rank, b.rank}, 1, b.place(row.site),
                    f"Group {at + 1} that rank {a.rank} made is {list(groups[0][at])}, that of rank {b.rank} is "
                    f"{list(groups[1][at])}: all ranks must make the same groups in the same order.",
                )  # fmt: skip
                return


def _odd_mesh(ranks: Sequence[Rank], members: tuple[int, ...], mesh: Mesh) -> tuple[list[int], tuple[str, int]]:
    """Return the ranks with the rarest layout, and the place of the first of them."""
    by_layout: dict[tuple[object, ...], list[tuple[Rank, Mesh]]] = {}
    for rank in ranks:
        for m in rank.of(Mesh):
            if tuple(sorted(m.ranks)) == members:
                by_layout.setdefault((tuple(m.shape), tuple(m.names), tuple(m.ranks)), []).append((rank, m))
                break
    rows = sorted(by_layout.values(), key=len)
    chosen = rows[0] if len(rows) > 1 and len(rows[0]) < len(rows[-1]) else [one for row in rows for one in row]
    return sorted({rank.rank for rank, _ in chosen}), chosen[0][0].place(chosen[0][1].site)


def missing_group(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report ranks that a launcher started for one job and that create no process group."""
    alone = [r for r in ranks if r.world > 1 and r.of(Step) and r.of(Step)[-1].s >= 3]
    if len(alone) > 1 and all(not b.initialized and not b.other for r in alone for b in r.of(FirstStep)):
        first = alone[0]
        step = first.of(Step)[0]
        yield violation(
            "no-process-group", "D.2.2", [r.rank for r in alone], step.s, first.place(step.site),
            f"{len(alone)} processes of one job train, and none has made a process group: each trains alone on its "
            "own.",
        )  # fmt: skip


LOOKS: tuple[Callable[[Sequence[Rank]], Iterator[Violation]], ...] = (wrong_calls, meshes, missing_group)
