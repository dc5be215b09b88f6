"""Finds ranks that train copies of one model independently: nothing, or nothing useful, is exchanged."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import prod

from dtdebug.experiments.invariants.judge.common import differ, model_place, violation, who
from dtdebug.experiments.invariants.read_records import Rank
from dtdebug.experiments.invariants.record_types import FirstStep, Hook, Mesh, Model, ParameterSet, Step
from dtdebug_taxonomy.model.training import Violation

_TIMES = 3
_PARTS = frozenset(("send", "recv", "isend", "irecv", "all_to_all", "all_to_all_single"))
"""Calls of programs whose ranks hold parts of one model rather than copies."""
_DATA = re.compile(r"^(d?dp|data|replica)", re.IGNORECASE)
"""Names of a mesh's data-parallel dimension."""


def alone(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report ranks that train copies of one model and do not exchange gradients or weights with all others."""
    if len(ranks) < 2 or any(b.other for r in ranks for b in r.of(FirstStep)):
        return
    if any(m.kind != "ddp" for r in ranks for m in r.of(Model)) or any(h for r in ranks for h in r.of(Hook)):
        return
    firsts = {r.rank: r.of(Step)[0] for r in ranks if r.of(Step) and r.of(Step)[0].sets}
    lasts = {
        r.rank: [s for s in r.of(Step) if s.o == firsts[r.rank].o][-1] for r in ranks if r.rank in firsts
    }  # fmt: skip
    if len(firsts) < len(ranks) or any(step.s < 3 or _PARTS.intersection(step.calls) for step in lasts.values()):
        return
    if any(part.kind == "plan" for step in firsts.values() for part in step.sets):
        return  # they exchange within the parts that a plan shards
    parts = {rank: step.sets[0] for rank, step in firsts.items()}
    ends = {rank: step.sets[0] for rank, step in lasts.items() if step.sets}
    if len({(p.shapes, p.n, p.kind) for p in parts.values()}) > 1 or len(ends) < len(parts):
        return
    together = {rank: tuple(p.group) for rank, p in ends.items()}
    if len(set(together.values())) == 1 and len(next(iter(together.values()))) > 1:
        return
    for part in ends.values():
        exchanged = part.largest if not part.group else (0 if part.own else part.largest)
        if exchanged > max(16, part.n // 100) or (not part.group and part.own):
            yield from _unused_sums(ranks, firsts)
            return
    one = ends[min(ends)]
    if not any(differ((one.p0, one.p0s), (p.p0, p.p0s)) for p in ends.values()):
        return
    step = firsts[min(firsts)]
    rank = next(r for r in ranks if r.rank == min(firsts))
    if any(together.values()):
        named = sorted({g for g in together.values() if g})
        texts = "; ".join(str(list(g)) for g in named[:8])
        equal = not any(differ((parts[min(parts)].p0, parts[min(parts)].p0s), (p.p0, p.p0s)) for p in parts.values())
        if not equal:
            return
        yield violation(
            "groups-train-apart", "D.2.5", firsts, step.s, model_place(rank) or rank.place(step.site),
            f"All ranks began with one model, and gradients are averaged only within groups ({texts}): each group "
            "trains "
            "a model of its own.",
        )  # fmt: skip
    elif all(b.initialized for r in ranks for b in r.of(FirstStep)):
        yield violation(
            "never-reduced", "D.2.5", firsts, step.s, rank.place(step.site),
            f"{who(firsts)} train the same model and never exchanged its gradients or weights: each trains its own "
            "copy.",
        )  # fmt: skip


def _unused_sums(ranks: Sequence[Rank], firsts: Mapping[int, Step]) -> Iterator[Violation]:
    """Report ranks that sum tensors of the sizes of all gradients before each step, yet whose weights stay unequal."""
    rows: dict[int, dict[int, ParameterSet]] = {}
    for rank in ranks:
        for step in rank.of(Step):
            if step.o == 0 and step.sets:
                rows.setdefault(step.s, {})[rank.rank] = step.sets[0]
    looks = [row for _, row in sorted(rows.items()) if len(row) == len(ranks)]
    apart = [any(differ((p.p0, p.p0s), (q.p0, q.p0s)) for p, q in pairwise(row.values())) for row in looks]
    shaped = [all(p.shaped for p in row.values()) for row in looks]
    begun = apart.index(True) if any(apart) else 0  # the first steps of some optimizers only take the signs
    if not begun or not all(apart[begun:]) or sum(shaped[begun:]) < _TIMES:
        return
    rank = next(r for r in ranks if r.rank == min(firsts))
    step = rank.of(Step)[0]
    yield violation(
        "never-reduced", "D.2.5", firsts, step.s, rank.place(step.site),
        f"{who(firsts)} reduce tensors as large as the gradients, and the weights, which began equal, are never equal "
        "again: what was reduced is not what the optimizer steps with (a copy, or gradients after the step).",
    )  # fmt: skip


def outside_replicas(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report parameters outside of the replicas while others are replicated, in the same or a separate optimizer."""
    for row in _outside(ranks):
        yield from _outside_replicas(ranks, row)


def own_beginnings(ranks: Sequence[Rank]) -> tuple[str, ...]:
    """Return notes on parameters outside of the replicas that begin different: ranks may be meant to have their own."""
    found = []
    for row in _outside(ranks):
        (first, part), *others = (steps[0] for steps in row.values())
        if any(differ((part.p0, part.p0s), (p.p0, p.p0s)) for _, p in others):
            at = next(r for r in ranks if r.rank == min(row)).place(first.site)
            found.append(
                f"not judged: the optimizer{f' at {at[0]}:{at[1]}' if at[1] else ''} trains {part.n} parameter values"
                " outside of DistributedDataParallel that begin different on the ranks, and nothing averages them. If"
                " they are of one model, wrap them with it; `dtdebug run --parity` compares them."
            )
    return tuple(found)


def _outside(ranks: Sequence[Rank]) -> Iterator[dict[int, list[tuple[Step, ParameterSet]]]]:
    """Yield the steps of each optimizer on parameters outside of the replicas, by rank; all ranks have such."""
    rows: dict[int, dict[int, list[tuple[Step, ParameterSet]]]] = {}
    for rank in ranks:
        wrapped = any(part.kind == "ddp" and len(part.group) > 1 for step in rank.of(Step) for part in step.sets)
        for step in rank.of(Step):
            for part in step.sets:
                alone_ = wrapped and part.kind == "own" and not part.group
                if (part.kind == "beside" or alone_) and part.of and not part.own:
                    rows.setdefault(step.o, {}).setdefault(rank.rank, []).append((step, part))
    for row in rows.values():
        if len(row) == len(ranks) > 1 and all(len(found) > 1 for found in row.values()):
            yield row


def _outside_replicas(
    ranks: Sequence[Rank], rows: Mapping[int, Sequence[tuple[Step, ParameterSet]]]
) -> Iterator[Violation]:
    starts, ends = {r: f[0] for r, f in rows.items()}, {r: f[-1] for r, f in rows.items()}
    a, z = starts[min(starts)], ends[min(ends)]
    alike = not any(differ((a[1].p0, a[1].p0s), (p.p0, p.p0s)) for _, p in starts.values())
    apart = any(differ((z[1].p0, z[1].p0s), (p.p0, p.p0s)) for _, p in ends.values())
    drawn = any(a[1].p0s)  # zeros may be specific to a rank, such as codes of its samples
    if alike and apart and drawn and z[1].largest <= max(16, z[1].n // 100):
        rank = next(r for r in ranks if r.rank == min(starts))
        also = "also " * (a[1].kind == "beside")
        yield violation(
            "parameters-outside-ddp", "D.2.5", rows, a[0].s, rank.place(a[0].site),
            f"The optimizer {also}trains {a[1].n} parameter values outside of DistributedDataParallel: they began "
            "equal on all ranks, and nothing averages their gradients.",
        )  # fmt: skip


def along_mesh(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report ranks along the data-parallel dimension of a mesh, such as copies of a pipeline, that exchange nothing.

    Stages may begin equal by one seed, so that only the mesh shows which of them are copies.
    """
    by_number = {r.rank: r for r in ranks}
    for group in _copies(ranks):
        rows = {n: [s for s in by_number[n].of(Step) if s.sets] for n in group if n in by_number}
        if len(rows) < len(group) or any(len(found) < _TIMES for found in rows.values()):
            continue
        ends = [(found[0].sets[0], found[-1].sets[0]) for found in rows.values()]
        if any(not _PARTS.issuperset(found[-1].calls) for found in rows.values()) or any(
            part.kind != "own" or part.own for pair in ends for part in pair
        ):
            continue
        (first, last), *others = ends
        if not any(differ((first.p0, first.p0s), (p.p0, p.p0s)) for p, _ in others) and any(
            differ((last.p0, last.p0s), (p.p0, p.p0s)) for _, p in others
        ):
            rank, step = by_number[group[0]], rows[group[0]][0]
            yield violation(
                "never-reduced", "D.2.5", group, step.s, rank.place(step.site),
                f"{who(group)} are copies along the data-parallel dimension of the mesh and began equal; no gradient "
                "is ever exchanged between them, so that each copy trains a model of its own.",
            )  # fmt: skip
            return


def _copies(ranks: Sequence[Rank]) -> Iterator[tuple[int, ...]]:
    """Yield ranks that differ only in the data-parallel coordinate of a mesh."""
    for mesh in [mesh for rank in ranks[:1] for mesh in rank.of(Mesh)]:
        for at, name in enumerate(mesh.names[: len(mesh.shape)]):
            stride, size = prod(mesh.shape[at + 1 :]), mesh.shape[at]
            if _DATA.search(name) and size > 1 and prod(mesh.shape) == len(mesh.ranks):
                for i in range(len(mesh.ranks)):
                    if i // stride % size == 0:
                        yield tuple(mesh.ranks[i + k * stride] for k in range(size))


LOOKS: tuple[Callable[[Sequence[Rank]], Iterator[Violation]], ...] = (alone, outside_replicas, along_mesh)
