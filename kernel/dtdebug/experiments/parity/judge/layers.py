"""Layers that several ranks share, and that do otherwise than on one process which has them whole."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug.experiments.parity.judge.view import NEAR, StepView, called, factor_words, first_of, violation
from dtdebug.experiments.parity.record_types import Layers
from dtdebug.experiments.parity.source import scaling_line
from dtdebug_taxonomy.model.rank_ranges import spell
from dtdebug_taxonomy.model.training import Violation


def _shared(view: StepView) -> Layers:
    return view.result.layers if view.result is not None and view.result.layers is not None else Layers()


def _is_settled(view: StepView) -> bool:
    """True if two recomputations are alike, so that a difference to the ranks means something."""
    again = view.result.again if view.result is not None else None
    return again is not None and again.random is None and not _shared(view).drawn


def inputs(view: StepView) -> Iterator[Violation]:
    """Yield ranks that share a model and are given other samples than the first of them."""
    shared = _shared(view)
    if shared.inputs:
        yield violation(
            view,
            "inputs-of-a-group-differ",
            f"{spell(tuple(shared.group), 4).capitalize()} share one model, but {spell(tuple(shared.inputs), 4)} "
            f"{'is' if len(shared.inputs) == 1 else 'are'} given other samples than rank {shared.group[0]}.",
            f"Their inputs of the model differ at step {view.step}; each sharded layer mixes the samples of all.",
            "Give all ranks of a tensor-parallel group the same batch: let the sampler count groups "
            "(the data-parallel rank), not ranks.",
            called(view),
            tuple(shared.inputs),
        )


def outputs(view: StepView) -> Iterator[Violation]:
    """Yield the module whose output is not that of one process."""
    shared = _shared(view)
    if not shared.output or shared.inputs or not _is_settled(view):
        return
    times = len(shared.group)
    if shared.biases:
        several = len(shared.biases) > 1
        yield violation(
            view,
            "bias-on-each-rank",
            f"{first_of(shared.biases)} {'are' if several else 'is'} added {times} times: once on each of "
            f"{spell(tuple(shared.group), 4)}, before their outputs are summed.",
            f"At step {view.step} one process gets all outputs of the ranks only with "
            f"{'these biases' if several else 'this bias'} times {times}.",
            "Add the bias once, after the sum over the tensor-parallel group.",
            called(view),
        )
    elif not shared.summed:  # a model that communicates by hand may mean its parts otherwise
        yield violation(
            view,
            "output-differs",
            f"From `{shared.output[1] or 'the model'}` on, the outputs are not those of one process with the same "
            "weights.",
            f"Recomputed at step {view.step} with the whole weights and the same inputs.",
            "Look at how this module's inputs and outputs are laid out, and at values that depend on the rank.",
            called(view),
            sure=False,
        )


def group_sums(view: StepView) -> Iterator[Violation]:
    """Yield gradients of weights that each rank has whole, and that are not one process's."""
    shared = _shared(view)
    if shared.output or shared.inputs or not _is_settled(view):
        return
    group = spell(tuple(shared.group), 4)
    own = [name for name, state, _ in shared.apart if state == "own"]
    if own and shared.gradients:
        count = len(own) + len(shared.gradients) - 1
        yield violation(
            view,
            "not-summed-in-group",
            f"The gradient that reaches {own[-1]} is a part on each of {group}, and is not summed: {count} more "
            "gradients are wrong.",
            f"At step {view.step} the sum of the ranks' gradients of {own[-1]} is that of one process.",
            f"Sum the gradient of what the layer after `{own[-1].rpartition('.')[0]}` takes in "
            "(`to_local(grad_placements=[Partial()])`).",
            called(view),
        )
    elif own:
        yield violation(
            view,
            "not-summed-in-group",
            f"The gradient of {first_of(own)} is not summed over {group}, which share the model: each keeps its part.",
            f"At step {view.step} the sum of their gradients is one process's; the ranks' weights part from here.",
            "Sum this gradient over the tensor-parallel group before the step, or make the module part of the plan "
            "(`SequenceParallel`).",
            called(view),
        )
    scaled = [(name, factor) for name, state, factor in shared.apart if state == "factor"]
    if scaled:
        names, factor = [name for name, _ in scaled], scaled[0][1]
        averaged = abs(factor * len(shared.group) - 1) < NEAR
        yield violation(
            view,
            "averaged-in-group",
            f"The gradient of {first_of(names)} is {factor_words(factor)} that of one process: over {group}, which "
            f"share the model, it is {'averaged, not summed' if averaged else 'not summed once'}.",
            f"Recomputed at step {view.step} with the whole weights and the same inputs.",
            "Sum it over the tensor-parallel group: each rank has a part of the gradient, not a sample of it.",
            called(view),
        )


def group_factors(view: StepView) -> Iterator[Violation]:
    """Yield gradients that ranks which share a model scale by numbers of their own."""
    shared = _shared(view)
    if not shared.scaled:
        return
    name, factors = shared.scaled[0]
    words = ", ".join(f"rank {r} by {f:.4g}" for r, f in zip(shared.group[:4], factors, strict=False))
    clip = next((f.clipped for f in view.members.values() if f.clipped), "")
    yield violation(
        view,
        "changed-after-reduction",
        f"Ranks that share one model scale its gradients differently before the step: {words}.",
        f"First seen at step {view.step} in {name}, whose gradients agree after the backward pass"
        + (f"; {clip} has clipped it." if clip else "."),
        "Clip by the norm over all parts: sum the squares of sharded gradients over the tensor-parallel group.",
        (view.loss().file, view.loss().line),
    )


def loss_share(view: StepView) -> Iterator[Violation]:
    """Yield a loss that is divided by the number of all ranks, though several of them share a model."""
    loss, ranks = view.loss(), len(view.everyone)
    shared = _shared(view)
    if not shared.group or ranks == view.world or not loss.terms:
        return
    by_ranks = all(any(how == "div" and abs(v - ranks) < NEAR for how, v in t.factors) for t in loss.terms)
    line = scaling_line(loss.file, loss.line) if by_ranks and loss.file else 0
    if line:
        yield violation(
            view,
            "loss-divided",
            f"Every gradient is {factor_words(1 / ranks)} that of one process: the loss is divided by {ranks}, the "
            "number of ranks.",
            f"{spell(tuple(shared.group), 4).capitalize()} share one model and one batch, so nothing of it is summed "
            "over them.",
            "Do not divide the loss by the number of ranks.",
            (loss.file, line),
        )


def otherwise(view: StepView) -> Iterator[Violation]:
    """Yield the last gradient, in the order of the forward pass, that is not that of one process."""
    shared = _shared(view)
    if shared.output or shared.inputs or not _is_settled(view):
        return
    odd = [(name, "other", 1.0, 0.0) for name, state, _ in shared.apart if state == "other"]
    rows = shared.gradients or odd
    if not rows:
        return
    name, _, factor, off = rows[-1]
    if all(row[1] == "factor" and abs(row[2] - factor) <= NEAR * abs(factor) for row in rows):
        cause = f"The gradient of {first_of([row[0] for row in rows])} is {factor_words(factor)} that of one process."
        fix = "Look for a sum over the group that is one too few or too many, or a value divided on each rank."
    else:
        size = f"{off:.2%} off that of one process" if off else "not that of one process"
        cause = f"The gradient of {name} is {size}{f', and {len(rows) - 1} before it are too' if rows[1:] else ''}."
        fix = f"Look at what the gradient passes before `{name.rpartition('.')[0]}`: a sum too few, or one too many."
    yield violation(
        view,
        "layer-gradient-differs",
        cause,
        f"Recomputed at step {view.step} with the whole weights and inputs; the outputs agree.",
        fix,
        called(view),
    )
