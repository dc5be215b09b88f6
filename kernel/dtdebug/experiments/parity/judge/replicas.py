"""Ranks that do not train the same model alike: other weights, modes, samples, steps or updates."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug.experiments.parity.judge.view import (
    StepView,
    called,
    differing,
    factor_words,
    first_of,
    unequal,
    violation,
)
from dtdebug_taxonomy.model.rank_ranges import say, spell
from dtdebug_taxonomy.model.training import Violation

_SHARED = 0.5


def absent(view: StepView) -> Iterator[Violation]:
    """Yield ranks that did not take the step: they never came, or came with the passes of two steps."""
    first = view.lead.backwards
    late = {r: f.backwards for r, f in view.members.items() if f.backwards > first > 0}
    gone = set(view.result.missing if view.result is not None else ()) - view.members.keys()
    if not late and not gone:
        return
    ranks = tuple(sorted({*late, *gone}))
    if late:
        means = (
            f"{spell(tuple(sorted(late)), 4).capitalize()}: {max(late.values())} backward passes since the last step, "
        )
        means += f"rank {min(view.ranks)}: {first}."
    else:
        means = "Its notes of the step did not come in time, so its weights part from the others' here."
    yield violation(
        view,
        "step-not-taken",
        f"{say(ranks, 'skip').capitalize()} step {view.step} of the optimizer.",
        means,
        "Let every rank call `optimizer.step()` equally often: no `continue`, `break` or condition of one rank.",
        called(view),
        ranks,
    )


def weights(view: StepView) -> Iterator[Violation]:
    """Yield ranks whose weights differ before the step."""
    name, ranks = unequal({r: f.weights for r, f in view.members.items()})
    if not name:  # parts of sharded layers are compared with the same part of another model
        place = {r: f.group.index(r) if r in f.group else 0 for r, f in view.members.items()}
        for at in sorted(set(place.values())):
            name, ranks = unequal({r: f.placed for r, f in view.members.items() if place[r] == at})
            if name:
                break
    if name:
        yield violation(
            view,
            "weights-part",
            f"The weights of {spell(ranks, 4)} are not those of rank {min(view.ranks)} before step {view.step}.",
            f"The first parameter that differs is {name}.",
            "Start from equal weights (wrap the model before training, or broadcast them), and update them alike.",
            ranks=ranks,
        )


def modes(view: StepView) -> Iterator[Violation]:
    """Frozen parameters, or another mode, on some ranks only."""
    first = view.lead
    for rank in view.ranks[1:]:
        other = view.facts[rank]
        if apart := sorted(set(first.frozen) ^ set(other.frozen)):
            where = rank if apart[0] in other.frozen else min(view.ranks)
            yield violation(
                view,
                "frozen-on-some-ranks",
                f"{first_of(apart)} {'are' if len(apart) > 1 else 'is'} frozen on rank {where} only: its gradient "
                "is without that rank's samples.",
                f"`requires_grad` differs between the ranks at step {view.step}.",
                "Freeze the same parameters on every rank, before the model is wrapped.",
                called(view),
                (where,),
            )
            return
        modes = [(a.training, b.training) for a, b in zip(first.calls, other.calls, strict=False) if a.kind == b.kind]
        if unlike := next((pair for pair in modes if pair[0] != pair[1]), None):
            where = rank if unlike[1] < unlike[0] else min(view.ranks)
            yield violation(
                view,
                "mode-differs",
                f"Rank {where} trains with modules in evaluation mode that are in training mode elsewhere.",
                f"{min(unlike)} modules are in training mode there, {max(unlike)} on another rank.",
                "Call `model.train()` on every rank after an evaluation.",
                called(view),
                (where,),
            )
            return


def samples(view: StepView) -> Iterator[Violation]:
    """Yield ranks that were given the same samples."""
    for number, mine in enumerate(view.lead.rows):
        for rank in view.ranks[1:]:
            theirs = view.facts[rank].rows[number] if number < len(view.facts[rank].rows) else []
            both = len(set(mine) & set(theirs))
            if mine and theirs and both >= _SHARED * min(len(mine), len(theirs)) and both:
                alike = [r for r in view.ranks if _overlap(mine, view.facts[r].rows, number)]
                call = view.lead.calls[number]
                yield violation(
                    view,
                    "same-samples",
                    f"{spell(tuple(alike), 4).capitalize()} train on the same samples: each counts "
                    f"{_times(len(alike))}.",
                    f"{both} of the {len(mine)} samples of rank {min(view.ranks)} are also those of rank {rank}.",
                    "Give each rank its own part of the data: a `DistributedSampler` with its rank, or another seed.",
                    (call.file, call.line),
                    tuple(alike),
                )
                return


def _overlap(mine: list[int], rows: list[list[int]], number: int) -> bool:
    theirs = rows[number] if number < len(rows) else []
    return bool(theirs) and len(set(mine) & set(theirs)) >= _SHARED * min(len(mine), len(theirs))


def _times(count: int) -> str:
    return {2: "twice", 3: "three times"}.get(count, f"{count} times")


def otherwise(view: StepView) -> Iterator[Violation]:
    """A rank that computes another gradient than one process does from the same weights and inputs."""
    again = view.result.again if view.result is not None else None
    if again is None or again.random is not None:
        return
    first = str(min(view.ranks))
    here = {row[0] for row in again.matches.get(first, [])}
    for rank, rows in again.matches.items():
        apart = [row for row in rows if row[0] not in here]
        if rank == first or not apart:
            continue
        name, how, factor, off = apart[0]
        module = again.differs.get(rank, [])
        if how in {"here", "there"}:
            size = "missing, and one process has one" if how == "here" else "there, and one process has none"
        elif how == "factor":
            size = f"{factor_words(factor)} what one process gets from its inputs"
        else:
            size = f"{off:.2%} off what one process gets from its inputs"
        inner = f"; the first output that differs is that of `{module[0] or 'the model'}`" if module else ""
        yield violation(
            view,
            "rank-computes-otherwise",
            f"Rank {rank} computes something else: its gradient of {name} is {size}.",
            f"Recomputed at step {view.step} from the same weights, inputs and random state{inner}.",
            "Look for a branch on the rank, a setting or a value that only this rank has.",
            called(view),
            (int(rank),),
        )
        return


def updates(view: StepView) -> Iterator[Violation]:
    """Weights that part in a step though their gradients agree."""
    if differing(view) or not view.compared or len(view.ended) < 2:
        return
    name, ranks = unequal(view.ended)
    before, _ = unequal({r: f.weights for r, f in view.members.items()})
    if name and not before:
        yield violation(
            view,
            "update-differs",
            f"The gradients agree, but step {view.step} leaves other weights on {spell(ranks, 4)}.",
            f"The first parameter that differs is {name}.",
            "Compare learning rate, settings and state of the optimizer between the ranks.",
            ranks=ranks,
        )
