"""Checks gradients: averaged once, by the wrapper, its hook or the program; cleared; and used by the step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import msgspec

from dtdebug.experiments.invariants.judge.common import violation
from dtdebug.experiments.invariants.judge.replica_weights import StepPart, tables
from dtdebug.experiments.invariants.read_records import Rank
from dtdebug.experiments.invariants.record_types import Backward, HookedValues, Model, ParameterSet, Step, Value
from dtdebug_taxonomy.model.training import Violation

_TIMES = 3
_NO_MEAN = frozenset(("MAX", "MIN", "PRODUCT", "BAND", "BOR", "BXOR"))
_SAME, _COARSE = 1e-4, 0.05
"""Relative errors of a factor, and of gradients sent in half precision."""


def scaling(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report gradients that are averaged twice between the backward pass and the step."""
    for group, table, wrapped in tables(ranks):
        world = len(group)
        for what, said in _SCALED.items():
            seen = [s for row in table.values() for s in row.values()] if world > 1 else []
            rows = [s for s in seen if _is_scaled(what, s, world, wrapped=wrapped)]
            if len({(s.step.o, s.step.s) for s in rows}) < 2:
                continue
            one = rows[0]
            yield violation(
                what,
                "D.2.4",
                {s.rank.rank for s in rows},
                one.step.s,
                one.rank.place(one.step.site),
                said.format(world=world),
            )


_SCALED = {
    "averaged-twice": "The gradients are divided by {world} once more after they have been averaged: steps "
    "are {world} times "
    "too small.",
    "reduced-twice": "The program reduces gradients that DistributedDataParallel has averaged already: a sum makes "
    "them as many "
    "times too large as there are ranks, and the time for it is lost.",
}


def by_mean(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report gradients that are reduced by something other than a sum or a mean."""
    found: dict[int, tuple[Step, Rank]] = {}
    op = ""
    for rank in ranks:
        rows = [(s, p.op) for s in rank.of(Step) for p in s.sets if p.own and p.op in _NO_MEAN]
        if len(rows) > 1:
            found[rank.rank], op = (rows[0][0], rank), rows[0][1]
    if found:
        step, rank = found[min(found)]
        yield violation(
            "not-averaged", "D.2.4", found, step.s, rank.place(step.site),
            f"The program reduces gradients by {op}: what it steps with is not a mean over the ranks.",
        )  # fmt: skip


def weights(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report weights that the program sums between two steps without dividing them."""
    rows: dict[tuple[int, int], dict[int, tuple[ParameterSet, Rank, Step]]] = {}
    for rank in ranks:
        for step in rank.of(Step):
            for part in step.sets[:1]:
                rows.setdefault((step.o, step.s), {})[rank.rank] = (part, rank, step)
    for (optimizer, number), row in sorted(rows.items()):
        after = rows.get((optimizer, number + 1), {})
        if len(row) == len(after) == len(ranks) > 1 and _is_sum(
            [part.p1s for part, *_ in row.values()], [part.p0s for part, *_ in after.values()]
        ):
            _, rank, step = after[min(after)]
            yield violation(
                "weights-summed", "D.2.4", after, step.s, rank.place(step.site),
                f"Before this step the weights are the sum of those that {len(ranks)} ranks had after the step before, "
                "as where they are averaged and not divided.",
            )  # fmt: skip
            return


def _is_sum(before: Sequence[Sequence[Value]], after: Sequence[Sequence[Value]]) -> bool:
    """True if on each rank the values are the sum of all ranks' values, several of which are not 0."""
    sums = [sum(v for v in row if isinstance(v, float)) for row in zip(*before, strict=False)]
    if sum(bool(v) for v in sums) < _TIMES or any(len(values) != len(sums) for values in (*before, *after)):
        return False
    return all(
        isinstance(v, float) and abs(v - total) <= _SAME * abs(total)
        for values in after
        for v, total in zip(values, sums, strict=True)
    )


def divided_shards(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report sharded gradients, which are averaged, that are divided by the number of ranks again."""
    found: dict[int, tuple[Step, Rank]] = {}
    world = 0
    for rank in ranks:
        rows = [
            (s, p) for s in rank.of(Step) for p in s.sets
            if p.kind == "shards" and not p.hook and s.backwards == 1 and p.ratio is not None and len(p.group) > 1
            and abs(p.ratio * len(p.group) - 1) < _SAME
        ]  # fmt: skip
        if len(rows) > 1:
            found[rank.rank], world = (rows[0][0], rank), len(rows[0][1].group)
    if found:
        step, rank = found[min(found)]
        text = _SCALED["averaged-twice"].format(world=world)
        yield violation("averaged-twice", "D.2.4", found, step.s, rank.place(step.site), text)


def _is_scaled(what: str, s: StepPart, world: int, *, wrapped: bool) -> bool:
    if what == "averaged-twice":
        if s.part.ratio is None or s.step.backwards != 1:  # several passes are divided by their number
            return False
        averaged = wrapped or s.part.op == "AVG"
        return (averaged or s.part.op == "SUM") and abs(s.part.ratio * world ** (1 if averaged else 2) - 1) < _SAME
    return wrapped and s.part.twice


_CLEARING: tuple[tuple[str, Callable[[Step], bool], str], ...] = (
    (
        "gradients-not-cleared",
        lambda s: not s.cleared and s.backwards > 0,
        "The gradients of the step before were still there when those of this step were added: zero_grad() is missing.",
    ),
    (
        "step-without-gradients",
        lambda s: not s.grads and s.backwards > 0 and s.trainable > 0,
        "No parameter of this optimizer got a gradient from the backward pass, so its steps change nothing.",
    ),
)
_FOREIGN = (
    "The optimizer holds other parameters than the model that is trained",
    (
        "Make the optimizer after the last change of the model (a replaced layer, a wrapper that copies the weights), "
        "or give it the parameters that the loss is computed with."
    ),
)
"""Cause and remedy of steps without gradients."""


def clearing(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report gradients that are not cleared between two steps, and steps without gradients."""
    for invariant, bad, means in _CLEARING:
        hits: dict[int, tuple[Step, Rank]] = {}
        for rank in ranks:
            by_optimizer: dict[int, list[Step]] = {}
            for step in rank.of(Step):
                by_optimizer.setdefault(step.o, []).append(step)
            for steps in by_optimizer.values():
                for a, b in pairwise(steps):
                    if bad(a) and bad(b) and a.s + 1 == b.s:
                        hits.setdefault(rank.rank, (a, rank))
                        break
        if hits:
            step, rank = min(hits.values(), key=lambda h: h[0].s)
            seen = violation(invariant, "D.2.5", hits, step.s, rank.place(step.site), means)
            if invariant == "step-without-gradients":
                alone = all(len({s.o for s in row.of(Step)}) == 1 for _, row in hits.values())
                seen = msgspec.structs.replace(seen, cause=_FOREIGN[0], fix=_FOREIGN[1], sure=alone)
            yield seen


def hook_results(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report communication hooks and manual reductions whose result is not the mean."""
    models = {(r.rank, m.m): m for r in ranks for m in r.of(Model)}
    rows: dict[tuple[tuple[int, ...], int, int], dict[int, HookedValues]] = {}
    for rank in ranks:
        for row in rank.of(HookedValues):
            model = models.get((rank.rank, row.m))
            members = tuple(model.group if model is not None else row.group)
            rows.setdefault((members, row.m, row.n), {})[rank.rank] = row
    hits: dict[tuple[str, tuple[int, ...], int], list[HookedValues]] = {}
    for (group, m, _), found in sorted(rows.items(), key=lambda item: item[0][2]):
        what = _made_of(list(found.values()), len(group)) if len(found) == len(group) > 1 else ""
        if what:
            hits.setdefault((what, group, m), []).append(found[min(found)])
    for (what, group, m), seen in hits.items():
        one = next(r for r in ranks if r.rank == group[0])
        by_hand = m < 0
        if len(seen) < _TIMES or (by_hand and (what != "summed" or not any(b.mean for b in one.of(Backward)[:8]))):
            continue  # losses may be sums, and gradients divided by the number of their backward passes
        site = one.of(Step)[0].site if by_hand else models[one.rank, m].site
        means = _BY_HAND if by_hand else _OF_HOOK[what]
        yield violation(what, "D.2.4", group, seen[0].s, one.place(site), means.format(world=len(group)))


_BY_HAND = (
    "The gradients of {world} ranks are summed and not divided, though each loss is a mean: the step is {world} times "
    "as large as on one device."
)
_OF_HOOK = {
    "summed": "The communication hook gives the sum of the gradients of {world} ranks, and DistributedDataParallel "
    "divides nothing where a hook is registered: steps are {world} times as large. Divide in the hook.",
    "averaged-twice": "The communication hook gives the mean of the gradients of {world} ranks divided by {world} once "
    "more: steps are {world} times too small.",
}


def _made_of(found: Sequence[HookedValues], world: int) -> str:
    """Return the invariant that the hook's results violate, within rounding, or "" if they are the mean."""
    rows = zip(*(row.given for row in found), strict=False)
    means = [sum(v for v in row if isinstance(v, float)) / world for row in rows]
    pairs = [(mean, a) for mean, a in zip(means, found[0].after, strict=False) if isinstance(a, float)]
    most = max((abs(mean) for mean, _ in pairs), default=0.0)
    pairs = [(mean, a) for mean, a in pairs if abs(mean) > most / 100]
    if len(pairs) < _TIMES:
        return ""
    for what, times in (("summed", float(world)), ("averaged-twice", 1 / world)):
        if all(abs(a - times * mean) <= _COARSE * abs(times * mean) for mean, a in pairs):
            return what
    return ""


LOOKS: tuple[Callable[[Sequence[Rank]], Iterator[Violation]], ...] = (
    scaling, by_mean, weights, divided_shards, hook_results, clearing,
)  # fmt: skip
