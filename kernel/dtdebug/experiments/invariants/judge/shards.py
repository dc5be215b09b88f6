"""Checks ranks that hold parts of a model: settings, replicated tensors and parameters, the clipping norm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from dtdebug.experiments.invariants.judge.common import differ, odd, violation, who
from dtdebug.experiments.invariants.judge.replica_weights import unlike
from dtdebug.experiments.invariants.read_records import Rank
from dtdebug.experiments.invariants.record_types import (
    Clip,
    Forward,
    Model,
    ParameterSet,
    ReplicatedValues,
    Step,
    Value,
)
from dtdebug_taxonomy.model.training import Violation

_SMALL = 16
"""Maximum elements of a tensor that a program reduces for reporting."""
_SUMS = frozenset(("all_reduce", "all_reduce_coalesced", "broadcast", "reduce"))
_TWICE, _NEAR = 2, 1e-2


def settings(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report ranks of one sharded model that step with different settings."""
    rows: dict[tuple[tuple[int, ...], int, int], dict[int, tuple[Step, Rank]]] = {}
    for rank in ranks:
        groups = {m.m: tuple(m.group) for m in rank.of(Model) if m.kind != "ddp" and len(m.group) > 1}
        for step in rank.of(Step):
            for group in {groups[m] for m in step.models if m in groups}:
                rows.setdefault((group, step.o, step.s), {})[rank.rank] = (step, rank)
    for (_, _, number), found in sorted(rows.items(), key=lambda row: row[0][2]):
        hyper = {r: step.hyper for r, (step, _) in found.items()}
        if odd(hyper):
            step, rank = found[min(odd(hyper))]
            follows = "parts of one model are trained differently"
            yield unlike(hyper, number, rank.place(step.site), "the ranks of one sharded model", follows)
            return


def unsynced_passes(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report sharded models of which no backward pass before a step is reduced."""
    found: dict[int, tuple[Step, Forward, Rank]] = {}
    for rank in ranks:
        rows = {m.m: [f for f in rank.of(Forward) if f.m == m.m] for m in rank.of(Model) if m.kind == "fully_shard"}
        idle = []
        for step in rank.of(Step):
            passes = [f for m in step.models for f in rows.get(m, ()) if f.s == step.s]
            if step.backwards and not step.grads and passes and not any(f.synced for f in passes):
                idle.append((step, passes[0]))
        if len(idle) >= _TWICE:
            found[rank.rank] = *idle[0], rank
    if found:
        step, forward, rank = found[min(found)]
        yield violation(
            "not-reduced", "D.2.5", found, step.s, rank.place(forward.site),
            f"{who(found)}: all backward passes before a step were without gradient sync, from this step on or in "
            "several: set_requires_gradient_sync(True) is missing. No gradient was reduced, and such a step changes "
            "nothing.",
        )  # fmt: skip


_LEFT = {
    "plan": (
        "parameters-outside-plan",
        (
            "The optimizer also trains {n} parameter values that no plan shards, beside sharded ones: they began equal "
            "on these ranks and are no longer, for each rank gives them gradients of its own. Take their modules into "
            "the plan."
        ),
    ),
    "rest": (
        "partly-reduced",
        (
            "The program reduces the gradients of some parameters; {n} other parameter values began equal on all "
            "ranks, and nothing averages their gradients."
        ),
    ),
}


def left_out_parameters(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report parameters left out of a plan or reduction, which do not stay equal."""
    for kind, (invariant, means) in _LEFT.items():
        rows: dict[int, list[tuple[Step, ParameterSet]]] = {
            r.rank: [(s, p) for s in r.of(Step) for p in s.sets if p.kind == kind and p.of] for r in ranks
        }
        if len(ranks) < 2 or any(len(found) < _TWICE for found in rows.values()):
            continue
        if kind == "rest" and any(
            not _SUMS.issuperset(s.calls) or p.other > _SMALL for f in rows.values() for s, p in f
        ):
            continue  # parts of one model, by hand
        if any("all_to_all" in call for found in rows.values() for s, _ in found for call in s.calls):
            continue  # experts specific to each rank
        starts, ends = ({r: found[at][1] for r, found in rows.items()} for at in (0, -1))
        step = rows[min(rows)][0][0]
        if not _values_differ(starts) and _values_differ(ends):
            rank = next(r for r in ranks if r.rank == min(rows))
            text = means.format(n=starts[min(rows)].n)
            yield violation(invariant, "D.2.5", rows, step.s, rank.place(step.site), text)


def last(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report sharded models whose last backward pass before a step is not reduced."""
    found: dict[int, tuple[Step, Rank]] = {}
    for rank in ranks:
        rows = [
            s for s in rank.of(Step) for p in s.sets
            if p.kind == "shards" and s.backwards > 1 and p.since.get("synced") and not p.since.get("last", 1)
        ]  # fmt: skip
        if len(rows) >= _TWICE:
            found[rank.rank] = rows[0], rank
    if found:
        step, rank = found[min(found)]
        yield violation(
            "not-reduced", "D.2.5", found, step.s, rank.place(step.site),
            f"{who(found)}: the last backward pass before the step was without gradient sync, and an earlier one was "
            "not: what the later ones gave is not in this step, and is added to the next.",
        )  # fmt: skip


def _values_differ(parts: dict[int, ParameterSet]) -> bool:
    one = parts[min(parts)]
    return any(differ((one.p0, one.p0s), (p.p0, p.p0s)) for p in parts.values())


def replicated_tensors(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report tensors that are declared replicated and differ within their group."""
    rows: dict[tuple[tuple[int, ...], int], dict[int, tuple[ReplicatedValues, Rank]]] = {}
    for rank in ranks:
        for row in rank.of(ReplicatedValues):
            rows.setdefault((tuple(row.group), row.n), {})[rank.rank] = (row, rank)
    hits: dict[tuple[tuple[int, ...], tuple[int, ...]], list[tuple[ReplicatedValues, Rank]]] = {}
    all_: Counter[tuple[tuple[int, ...], tuple[int, ...]]] = Counter()
    for (group, _), found in sorted(rows.items(), key=lambda item: item[0][1]):
        one, rank = found[min(found)]
        key = group, tuple(one.shape)
        all_[key] += 1
        if len(found) == len(group) and any(_far(one, other) for other, _ in found.values()):
            hits.setdefault(key, []).append((one, rank))
    for (group, shape), seen in hits.items():
        if len(seen) >= _TWICE and len(seen) * 2 >= all_[group, shape]:
            row, rank = seen[0]
            yield violation(
                "replicated-differs", "D.2.4", group, row.s, rank.place(row.site),
                f"{who(group)} are given other values for a tensor that their plan takes to be the same on all of "
                "them, as an input of tensor parallelism: what they compute together belongs to no sample. Give the "
                "ranks of one group the same batch.",
            )  # fmt: skip


def _far(one: ReplicatedValues, other: ReplicatedValues) -> bool:
    """True if most elements differ by more than rounding."""
    if one.shape != other.shape or not one.values:
        return False
    far = sum(_unlike(a, b) for a, b in zip(one.values, other.values, strict=False))
    return far * 2 > len(one.values)


def _unlike(a: Value, b: Value) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return a != b
    return abs(a - b) > _NEAR * max(abs(a), abs(b))


_CLIPPED = {
    "scaled": (
        "clipped-while-scaled",
        (
            "{who} clipped gradients that were still multiplied by the scale of GradScaler: after the division nearly "
            "nothing is left of them."
        ),
        "Call scaler.unscale_(optimizer) before {call}().",
    ),
    "own": (
        "clipped-by-own-norm",
        (
            "{who} clipped the shards of an FSDP model by the norm of each rank's own part: the ranks scale parts of "
            "one gradient differently."
        ),
        "Call clip_grad_norm_() of the wrapped model.",
    ),
    "early": (
        "clipped-before-reduced",
        (
            "{who} clipped gradients and reduced them after that: each rank's are scaled by its own norm, so that "
            "ranks with large gradients count less."
        ),
        "Clip after the gradients are averaged.",
    ),
    "late": (
        "clipped-after-step",
        (
            "{who} clipped gradients after the step that used them, and before the next backward pass: {call}() limits "
            "nothing."
        ),
        "Call it between backward() and step().",
    ),
}
"""When or how gradients were clipped -> invariant, what was seen, and its remedy."""


def clips(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report gradients that are clipped by a partial norm, while scaled, or at the wrong time."""
    for how, (invariant, means, fix) in _CLIPPED.items():
        found = {r.rank: (row, r) for r in ranks for row in r.of(Clip) if row.how == how}
        if found:
            row, rank = found[min(found)]
            text, remedy = (words.format(who=who(found), call=row.call) for words in (means, fix))
            yield violation(invariant, "D.2.4", found, row.s, rank.place(row.site), text, fix=remedy)


LOOKS: tuple[Callable[[Sequence[Rank]], Iterator[Violation]], ...] = (
    settings, unsynced_passes, last, left_out_parameters, replicated_tensors, clips,
)  # fmt: skip
