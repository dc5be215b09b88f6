"""Checks replicas of one model: equal weights, gradients, settings and steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from dtdebug.experiments.invariants.judge.common import differ, first, model_place, odd, violation, who
from dtdebug.experiments.invariants.read_records import Rank
from dtdebug.experiments.invariants.record_types import Forward, Join, Model, ParameterSet, Step, Value
from dtdebug_taxonomy.model.training import Violation

_KEEPS_EQUAL = ("allreduce", "compress", "powersgd", "wrapper", "quantization")
"""Parts of the names of communication hooks after which all ranks hold the same gradients."""


_TIMES, _SMALL = 3, 16


class StepPart(NamedTuple):
    """Step of one rank, and its part to compare."""

    rank: Rank
    step: Step
    part: ParameterSet


Hyper = list[dict[str, list[Value]]]
"""Settings of an optimizer's groups."""
Table = dict[tuple[int, tuple[int, int]], dict[int, StepPart]]
"""(optimizer, clock) -> rank -> step.

The clock counts forward passes of a replicated model, else steps, and the steps since the first one after that pass.
"""


def tables(ranks: Sequence[Rank]) -> Iterator[tuple[tuple[int, ...], Table, bool]]:
    """Yield the steps of each group of ranks with replicas, by DDP or by the program's own reductions."""
    found: dict[tuple[int, ...], tuple[Table, bool]] = {}
    shared = _until_joined(ranks)
    for rank in ranks:
        begun: dict[tuple[int, int, int], int] = {}
        for step in rank.of(Step):
            for part in step.sets:
                wrapped = part.kind == "ddp"
                if not wrapped and not (part.kind == "own" and part.own and part.own == part.of):
                    continue
                if rank.rank not in part.group or not _stays_equal(part.hook):
                    continue
                clock = step.f.get(str(part.m), step.s) if wrapped else step.s
                if wrapped and clock > shared.get(str(part.m), clock):
                    continue
                # Without any pass the steps tie the ranks to nothing, and each notes others of them: numbers count.
                since = begun.setdefault((step.o, part.m, clock), step.s if clock else 0)
                table, _ = found.setdefault((*part.group, -1 - part.m), ({}, wrapped))
                row = table.setdefault((step.o, (clock, step.s - since)), {})
                row.setdefault(rank.rank, StepPart(rank, step, part))
    for key, (table, wrapped) in found.items():
        yield key[:-1], dict(sorted(table.items(), key=lambda row: row[0][1])), wrapped


def _until_joined(ranks: Sequence[Rank]) -> dict[str, int]:
    """Return model -> last comparable forward pass: with uneven inputs, before the first rank joins."""
    seconds = [row.f for rank in ranks for row in rank.of(Join)[1:2]]
    counts = {m: [f[m] for f in seconds if m in f] for f in seconds for m in f}
    return {m: min(found) for m, found in counts.items() if len(set(found)) > 1}


def _stays_equal(hook: str) -> bool:
    return not hook or ("local" not in hook.lower() and any(part in hook.lower() for part in _KEEPS_EQUAL))


def replicas(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report replicas whose weights diverge before or after a step, with the earliest cause."""
    for group, table, wrapped in tables(ranks):
        if len(group) > 1:
            before: dict[int, StepPart] = {}
            for row in table.values():
                if len(row) < 2:
                    continue
                what = _find_divergence(row, before, wrapped=wrapped)
                if what is not None:
                    yield what
                    break
                if not before and _weights_differ(row):
                    break  # they were never equal, so that the rest means nothing
                before = row
            yield from _skipped_steps(group, table, ranks)


def _weights_differ(row: dict[int, StepPart]) -> bool:
    one, *others = (s.part for s in row.values())
    return any(differ((one.p0, one.p0s), (part.p0, part.p0s)) for part in others)


def _find_divergence(row: dict[int, StepPart], before: dict[int, StepPart], *, wrapped: bool) -> Violation | None:
    seen = list(row.values())
    one = seen[0]
    step, place = min(s.step.s for s in seen), one.rank.place(one.step.site)
    apart = {r: (s.part.p0, s.part.p0s) for r, s in row.items()}
    if any(differ(apart[one.rank.rank], value) for value in apart.values()):
        who_ = odd({r: value[0] for r, value in apart.items()})
        if before:
            return _between(row, before, step, place)
        if wrapped:
            return _since_wrapped(row, step, place)
        if len({(s.part.n, s.part.shapes) for s in seen}) > 1 or any(s.part.other > _SMALL for s in seen):
            return None  # each rank steps with a part of the weights, and other gradients are reduced too
        starts = {s.rank.rank: first(s.rank.of(Step)[0].sets) for s in seen}
        if all(p is not None and p.p0 == starts[one.rank.rank].p0 != apart[one.rank.rank][0] for p in starts.values()):
            return violation(
                "gradients-differ", "D.2.5", who_, step, place,
                f"The weights of {who(row).lower()} were equal at the first step and are not now, though the program "
                "reduces the gradients: not all that is stepped with is averaged, as where they are reduced before the "
                "backward pass.",
            )  # fmt: skip
        return violation(
            "initial-weights-differ", "D.2.5", who_, step, place,
            f"{who(row)} begin with different weights and average their gradients: each trains another model.",
            fix="Broadcast the weights of rank 0 before the first step, or wrap the model in DistributedDataParallel.",
        )  # fmt: skip
    hyper = {r: s.step.hyper for r, s in row.items()}
    if odd(hyper):
        return unlike(hyper, step, place, "replicas", "after this step their weights are no longer equal")
    grads = {r: (s.part.g, s.part.gs) for r, s in row.items()}
    if any(differ(grads[one.rank.rank], value) for value in grads.values()) and all(s.part.finite for s in seen):
        return _gradient_divergence(row, step, place)
    after = {r: (s.part.p1, s.part.p1s) for r, s in row.items() if s.part.p1}
    if len(after) > 1:
        base = next(iter(after.values()))
        if any(differ(base, value) for value in after.values()) and all(s.part.finite for s in seen):
            return violation(
                "optimizer-state-differs", "D.2.4", odd({r: v[0] for r, v in after.items()}), step, place,
                f"{who(row)} took this step from equal weights with equal gradients and settings, and hold different "
                "weights after it: the state of their optimizers differs, as after a resume on some ranks only.",
            )  # fmt: skip
    return None


def unlike(hyper: Mapping[int, Hyper], step: int, place: tuple[str, int], whose: str, follows: str) -> Violation:
    """Return the violation for ranks whose optimizers have different settings."""
    names = sorted({
        name for settings in hyper.values() for group in settings for name in group
        if len({repr([g.get(name) for g in other]) for other in hyper.values()}) > 1
    })  # fmt: skip
    values = "; ".join(f"rank {r}: {h[0].get(names[0])}" for r, h in list(hyper.items())[:4] if h and names)
    return violation(
        "hyperparameters-differ", "D.2.4", odd(hyper), step, place,
        f"{', '.join(names) or 'The settings'} of the optimizer differ{'s' * (len(names) == 1)} "
        f"between {whose} ({values}): {follows}.",
    )  # fmt: skip


def _between(row: dict[int, StepPart], before: dict[int, StepPart], step: int, place: tuple[str, int]) -> Violation:
    """Return the violation for weights that changed after a step that left them equal."""
    changed = [
        r for r, s in row.items()
        if r in before and before[r].step.s + 1 == s.step.s and before[r].part.p1 and before[r].part.p1 != s.part.p0
    ]  # fmt: skip
    if changed and len(changed) < len(row):
        return violation(
            "weights-changed-on-some-ranks", "D.2.4", changed, step, place,
            f"{who(changed)} changed the weights between two steps, the others did not: the replicas are no longer "
            "equal.",
            fix="Load or change weights on all ranks alike.",
        )  # fmt: skip
    return violation(
        "replicas-differ", "D.2.4", odd({r: s.part.p0 for r, s in row.items()}), step, place,
        f"The weights of {who(row).lower()} were equal after an earlier step and are not now.",
    )  # fmt: skip


def _since_wrapped(row: dict[int, StepPart], step: int, place: tuple[str, int]) -> Violation | None:
    """Return the violation for weights that some ranks changed between wrapping and the first step."""
    begun = {r: next((m for m in s.rank.of(Model) if m.m == s.part.m and m.p), None) for r, s in row.items()}
    known = {r: model for r, model in begun.items() if model is not None}
    one = next(iter(known.values()), None)
    if one is None or len(known) < len(row) or any(differ((one.p, one.ps), (m.p, m.ps)) for m in known.values()):
        return None  # the wrapper was told not to make them equal
    changed = [r for r, s in row.items() if s.part.p0 != known[r].p]
    if len(changed) == len(row):  # or the optimizer holds only some of the parameters
        return violation(
            "replicas-differ", "D.2.4", odd({r: s.part.p0 for r, s in row.items()}), step, place,
            f"The weights of {who(row).lower()} were equal when the model was wrapped and are not at the first step: "
            "they were changed between.",
        )  # fmt: skip
    return violation(
        "weights-changed-on-some-ranks", "D.2.4", changed, step, place,
        f"{who(changed)} changed the weights between wrapping the model, which made them equal, and the first step, so "
        "that the replicas differ.",
        fix="Load weights on all ranks alike, or before the model is wrapped.",
    )  # fmt: skip


def _gradient_divergence(row: dict[int, StepPart], step: int, place: tuple[str, int]) -> Violation | None:
    seen = list(row.values())
    n = max(s.part.n for s in seen)
    if any(s.part.largest * 2 >= n and s.part.kind == "ddp" and not s.part.own for s in seen):
        return None  # the program exchanges weights itself, as in local SGD
    inner = [r for r, s in row.items() if s.part.kind == "ddp" and not s.part.since.get("forward") and s.step.backwards]
    quiet = [
        r for r, s in row.items()
        if s.part.kind == "ddp" and s.part.since.get("forward") and not s.part.since.get("synced")
    ]  # fmt: skip
    if inner:
        why = (
            "the inner module was called, and no forward pass went through DistributedDataParallel: no gradient was "
            "averaged in the backward pass"
        )
        return violation(
            "not-reduced", "D.2.5", inner, step, _forward_place(row, place), f"{who(inner)}: {why}.",
            fix="Call the wrapper itself in training: let its forward() compute the loss.",
        )  # fmt: skip
    if quiet:
        why = "all backward passes before this step were in no_sync(): no gradient was averaged"
        return violation(
            "not-reduced", "D.2.5", quiet, step, _forward_place(row, place), f"{who(quiet)}: {why}.",
            fix="Leave no_sync() for the last backward pass before each step.",
        )  # fmt: skip
    if any(s.part.unknown for s in seen):
        return violation(
            "parameters-unknown-to-ddp", "D.2.5", row, step, place,
            f"{max(s.part.unknown for s in seen)} parameters got gradients that DistributedDataParallel does not know: "
            "they were added or unfrozen after the model was wrapped, and their gradients are not averaged.",
        )  # fmt: skip
    return violation(
        "gradients-differ", "D.2.5", odd({r: s.part.g for r, s in row.items()}), step, place,
        f"The gradients that {who(row).lower()} step with differ: they were not averaged, or changed after that.",
    )  # fmt: skip


def _forward_place(row: dict[int, StepPart], place: tuple[str, int]) -> tuple[str, int]:
    for s in row.values():
        for forward in s.rank.of(Forward):
            if forward.m == s.part.m and not forward.synced:
                return s.rank.place(forward.site)
    return place


def buffers(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report buffers that wrapping made equal and that diverge without broadcasts."""
    for group, table, wrapped in tables(ranks):
        rows = [row for row in table.values() if wrapped and len(row) == len(group) > 1]
        far = [
            any(differ((s.part.b, s.part.bs), (one.part.b, one.part.bs)) for s in row.values())
            for row in rows for one in [next(iter(row.values()))]
        ]  # fmt: skip
        if len(far) < _TIMES or not all(far):
            continue
        one = next(iter(rows[0].values()))
        yield violation(
            "buffers-differ", "D.2.4", group, one.step.s, model_place(one.rank) or one.rank.place(one.step.site),
            f"Buffers of the model (no statistics of normalization) differ on {who(group).lower()}, "
            "though wrapping made them equal: each rank changes its own, and broadcast_buffers is off. Reduce "
            "what they are changed by.",
        )  # fmt: skip


def _skipped_steps(group: Sequence[int], table: Table, ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report replicas with fewer steps than others at the same forward pass."""
    last: dict[int, dict[int, int]] = {}
    for (optimizer, clock), row in table.items():
        counts = {r: s.step.s for r, s in row.items()}
        if len(row) > 1 and len(set(counts.values())) > 1 and optimizer not in last:
            last[optimizer] = counts
            fewest = min(counts.values())
            late = [r for r, n in counts.items() if n == fewest]
            missing = next(
                (max(s.step.s for s in other.values()) for (o, c), other in table.items()
                 if o == optimizer and c < clock and set(late).isdisjoint(other) and other),
                max(counts.values()) - 1,
            )  # fmt: skip
            one = next(s for r, s in row.items() if r in late)
            yield violation(
                "steps-differ", "D.2.4", late, missing, one.rank.place(one.step.site),
                f"{who(late)} left out a step of the optimizer that the other replicas made: their weights are no "
                "longer "
                "equal.",
            )  # fmt: skip


LOOKS: tuple[Callable[[Sequence[Rank]], Iterator[Violation]], ...] = (replicas, buffers)
