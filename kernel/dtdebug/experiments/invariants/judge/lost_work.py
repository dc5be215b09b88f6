"""Finds lost work: overwritten or unloaded weights, and steps and gradients without effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dtdebug.experiments.invariants.judge.common import differ, violation, who
from dtdebug.experiments.invariants.read_records import Rank
from dtdebug.experiments.invariants.record_types import EmptyLoad, GatheredOutput, Model, ParameterSet, Step
from dtdebug_taxonomy.model.training import Violation

_TIMES = 3
_EXCHANGED = ("reduce", "gather", "all_to_all")
"""Parts of function names by which ranks may average gradients."""
_Row = dict[int, tuple[Rank, Step, ParameterSet]]


def _rows(ranks: Sequence[Rank]) -> Iterator[tuple[tuple[int, int], _Row]]:
    """Yield (optimizer, step) -> rank -> the parameters that it steps with outside of any wrapper."""
    found: dict[tuple[int, int], _Row] = {}
    for rank in ranks:
        for step in rank.of(Step):
            if len(step.sets) == 1 and step.sets[0].kind == "own":
                found.setdefault((step.o, step.s), {})[rank.rank] = (rank, step, step.sets[0])
    yield from sorted(found.items())


def discarded_steps(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report steps of ranks that the weights of one rank overwrite."""
    rows = dict(_rows(ranks))
    hits: list[tuple[int, _Row]] = []
    for (optimizer, number), row in rows.items():
        after = rows.get((optimizer, number + 1), {})
        if len(ranks) < 2 or not len(row) == len(after) == len(ranks):
            continue
        parts = [part for *_, part in row.values()]
        reduced = any(p.own or p.shaped or p.rooted for p in parts) or any(
            word in call for _, step, _ in after.values() for call in step.calls for word in _EXCHANGED
        )
        if reduced or any(not p.p1 or not step.backwards for _, step, p in row.values()):
            continue
        kept = {part.p0 for *_, part in after.values()}
        of = [rank for rank, (*_, part) in row.items() if kept == {part.p1}]
        if len(of) == 1 and all(differ((p.p1, p.p1s), (row[of[0]][2].p1, row[of[0]][2].p1s)) for r, (*_, p) in
                                row.items() if r != of[0]):  # fmt: skip
            hits.append((of[0], after))
    if len(hits) >= _TIMES:
        of_, after = hits[0]
        rank, step, _ = after[min(after)]
        yield violation(
            "steps-discarded", "D.2.5", set(after) - {of_}, step.s, rank.place(step.site),
            f"Before each step all ranks hold what rank {of_} had after the step before, and gradients are not "
            "exchanged: what the other ranks learn from their samples is thrown away.",
            fix="Average gradients before the "
            "step, not weights from one rank after it.",
        )  # fmt: skip


def one_sided_sums(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report ranks that step with a gradient whose sum only another rank receives."""
    hits: dict[int, list[tuple[Rank, Step]]] = {}
    for _, row in _rows(ranks):
        for number, (rank, step, part) in row.items():
            others = [p for r, (*_, p) in row.items() if r != number and (p.n, p.shapes) == (part.n, part.shapes)]
            apart = any(differ((part.p0, part.p0s), (p.p0, p.p0s)) for p in others)
            if part.rooted == part.of > 0 and apart:
                hits.setdefault(number, []).append((rank, step))
    hits = {number: seen for number, seen in hits.items() if len(seen) >= _TIMES}
    if hits:
        rank, step = hits[min(hits)][0]
        yield violation(
            "reduced-to-one-rank", "D.2.5", hits, step.s, rank.place(step.site),
            f"{who(hits)}: the gradients of this step were reduced to another rank, which alone got their sum, and the "
            "weights of the ranks diverge.",
            fix="Use all_reduce() in place of reduce().",
        )  # fmt: skip


def overwritten(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report loaded weights that wrapping replaces by those of a rank that loaded none."""
    by_model: dict[tuple[tuple[int, ...], int], dict[int, tuple[Rank, Model]]] = {}
    for rank in ranks:
        for model in rank.of(Model):
            if model.kind == "ddp" and model.p:
                by_model.setdefault((tuple(model.group), model.m), {})[rank.rank] = (rank, model)
    for (group, _), row in by_model.items():
        loaded = [r for r, (_, model) in row.items() if model.loaded]
        source = row.get(group[0])
        if source is None or not loaded or group[0] in loaded or len({m.p for _, m in row.values()}) > 1:
            continue
        rank, model = row[loaded[0]]
        yield violation(
            "loaded-weights-overwritten", "D.2.4", loaded, 1, rank.place(model.site),
            f"{who(loaded)} loaded weights before the model was wrapped, rank {group[0]} did not: "
            f"DistributedDataParallel gives all ranks those of rank {group[0]}, so that what was loaded is lost.",
        )  # fmt: skip


def empty_loads(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report non-strict loads that load nothing."""
    found = {r.rank: (row, r) for r in ranks for row in r.of(EmptyLoad)[:1]}
    if found:
        row, rank = found[min(found)]
        yield violation(
            "nothing-loaded", "D.2.4", found, row.s, rank.place(row.site),
            f"load_state_dict(strict=False) loaded nothing: none of the {row.given} names in it, such as {row.first}, "
            "is one of the model's, which keeps the weights it had.",
        )  # fmt: skip


def gathered_outputs(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report gathered tensors through which no gradient flows."""
    late = {(r.rank, row.site) for r in ranks for row in r.of(GatheredOutput) if not row.n}
    found = {r.rank: (row, r) for r in ranks for row in r.of(GatheredOutput) if (r.rank, row.site) not in late}
    if found:
        row, rank = found[min(found)]
        yield violation(
            "gathered-without-gradient", "D.2.5", found, row.s, rank.place(row.site),
            f"{row.call}() gathers outputs of {row.n} parameters that get no gradient in any step: what it gives has "
            "none to pass on.",
            fix="Put the rank's own part back in its place, or use torch.distributed.nn.functional.",
        )  # fmt: skip


LOOKS: tuple[Callable[[Sequence[Rank]], Iterator[Violation]], ...] = (
    discarded_steps, one_sided_sums, overwritten, empty_loads, gathered_outputs,
)  # fmt: skip
