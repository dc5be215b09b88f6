"""Gradients that are not the mean of the ranks' own: not reduced, lost, or made up otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dtdebug.experiments.parity.judge.view import NEAR, StepView, differing, first_of, violation
from dtdebug_taxonomy.model.rank_ranges import ranges, spell
from dtdebug_taxonomy.model.training import Violation


def unreduced(view: StepView) -> Iterator[Violation]:
    """Yield gradients that each rank keeps for itself, and why."""
    own = [row for row, how in differing(view) if how.state == "own"]
    if not own:
        return
    whole = len(own) == len(view.compared)
    names = [row.name for row in own]
    are = "are" if len(names) > 1 else "is"
    wraps = bool(view.wrapped) or view.lead.sharded
    call = view.call_past_wrapper()
    place = (call.file, call.line) if call is not None else ("", 0)
    mean = "each rank's gradient is its own instead of the mean"
    if not view.wrapped and not view.lead.sharded and call is not None and whole:
        yield violation(
            view,
            "no-reduction",
            f"No gradient is averaged: no wrapper was found, and each of {_trainers(view)} trains its own model.",
            f"At step {view.step} {mean}, for all {len(own)} parameters.",
            "Wrap the model (`DistributedDataParallel(model)`) and call the wrapper, or average the gradients "
            "yourself.",
            place,
            symptom="D.2.5",
        )
    elif call is not None and whole:
        yield violation(
            view,
            "past-the-wrapper",
            f"No gradient is averaged at step {view.step}: the model is called past its wrapper.",
            f"For all {len(own)} parameters {mean}.",
            "Call the wrapper itself, not the model inside it.",
            place,
            symptom="D.2.5",
        )
    elif call is not None:
        yield violation(
            view,
            "outside-the-wrapper",
            f"{first_of(names)} {are} not {'in the wrapper: not averaged' if wraps else 'averaged'}, the other "
            f"{len(view.compared) - len(own)} parameters are.",
            f"At step {view.step} {mean} for {first_of(names)}.",
            "Make it part of the module that is wrapped, or wrap it as well."
            if wraps
            else "Reduce it like the others.",
            place,
            symptom="D.2.5",
        )
    else:
        loss = view.loss()
        yield violation(
            view,
            "not-averaged",
            f"{'No gradient is' if whole else f'{first_of(names)} {are} not'} averaged "
            f"at step {view.step}, though the wrapper was called.",
            f"{mean[0].upper()}{mean[1:]}, for {len(own)} of {len(view.compared)} parameters.",
            "Let the last backward pass before each step run outside of `no_sync()`, with its forward pass.",
            (loss.file, loss.line),
            symptom="D.2.5",
        )


def _trainers(view: StepView) -> str:
    size = len(view.lead.group)
    return f"{view.world} groups of {size} ranks" if size else spell(view.ranks, 4)


def loose(view: StepView) -> Iterator[Violation]:
    """Yield parameters outside of all modules that ranks update with gradients of their own."""
    rows = [f.loose for f in view.facts.values()]
    if not view.compared or any([p.shape for p in row] != [p.shape for p in rows[0]] for row in rows[1:]):
        return
    apart = [
        one
        for one, *others in zip(*rows, strict=True)
        if any(abs(p.norm - one.norm) > NEAR * max(p.norm, one.norm) for p in others)
    ]
    if apart:
        names = [p.name or f"a parameter of shape {p.shape}" for p in apart]
        loss = view.loss()
        yield violation(
            view,
            "outside-the-wrapper",
            f"{first_of(names)} {'are' if len(names) > 1 else 'is'} in no module that is wrapped: not averaged.",
            f"At step {view.step} its gradient has another norm on each rank: "
            + ", ".join(f"{f.loose[rows[0].index(apart[0])].norm:.3g} on {r}" for r, f in list(view.facts.items())[:4])
            + ".",
            "Make it a parameter of the wrapped module, or average its gradient by hand before the step.",
            (loss.file, loss.line),
            symptom="D.2.5",
        )


def lost(view: StepView) -> Iterator[Violation]:
    """Yield gradients that are gone at the step."""
    lost = [c.name for c in view.compared if c.step.state == "none" and c.size]
    if lost:
        which = "No gradient is" if len(lost) == len(view.compared) else f"The gradient of {first_of(lost)} is not"
        yield violation(
            view,
            "cleared-before-step",
            f"{which} there at step {view.step}: it was cleared after the backward pass.",
            "The backward pass had computed it.",
            "Clear the gradients before the backward pass, not before the step.",
            (view.loss().file, view.loss().line),
            symptom="D.2.5",
        )


def cleared_between(view: StepView) -> Iterator[Violation]:
    """Passes whose gradient was cleared before the next pass of the same step."""
    lost = sorted({number for c in view.compared for number in c.cleared})
    if not lost:
        return
    loss, passes = view.loss(), view.lead.backwards
    share = next((abs(t.scale) for t in loss.terms), 1.0)
    accumulates = abs(share * passes - 1) < 1e-6
    yield violation(
        view,
        "passes-weigh-differently",
        f"Of {passes} accumulated backward passes only the last counts: the gradients are cleared in between."
        if len(lost) == passes - 1
        else f"The gradient of backward pass {ranges([n + 1 for n in lost], 4)} is cleared before the step.",
        f"At step {view.step} the gradient was there after pass {lost[0] + 1} and gone before pass {lost[0] + 2}"
        + (f", though the loss is divided by {passes} for accumulation." if accumulates else "."),
        "Clear the gradients once for each step, not in each micro step.",
        (loss.file, loss.line),
        sure=accumulates,
    )


def shares(view: StepView) -> Iterator[Violation]:
    """Ranks, or passes, that count more or less than others in the reduced gradient."""
    for row, how in differing(view):
        loss = view.loss()
        if how.state == "weights":
            shares = next(iter(how.weights.values()))
            times = {r: w * view.world for r, w in zip(view.ranks, shares, strict=False)}
            odd = _odd(times)
            others = [row2.name for row2, h in differing(view) if h.state == "weights"]
            which = "every gradient" if len(others) == len(view.compared) else f"the gradient of {first_of(others)}"
            words = ", ".join(f"rank {r} {_share(times[r])}" for r in odd[:4])
            clip = next((f.clipped for f in view.facts.values() if f.clipped), "")
            if clip and row.after.state == "own":
                yield violation(
                    view,
                    "clipped-before-reduction",
                    "Each rank clips its own gradient before they are averaged, by its own norm: " + words + ".",
                    f"Solved for at step {view.step} from the ranks' own gradients; one process clips the mean once.",
                    f"Reduce first, then call `{clip}` on every rank.",
                    (loss.file, loss.line),
                    tuple(odd),
                )
                return
            yield violation(
                view,
                "ranks-weigh-differently",
                f"In {which} the ranks do not count alike: {words}.",
                f"Solved for at step {view.step} from the ranks' own gradients; 1 each is the mean.",
                "Look for what these ranks do between their backward pass and the reduction.",
                (loss.file, loss.line),
                tuple(odd),
            )
            return
        if how.state == "passes":
            words, fix = _uneven_passes(how.passes)
            yield violation(
                view,
                "passes-weigh-differently",
                f"In accumulation {words}.",
                "Solved for from the ranks' gradients of each pass: "
                + ", ".join(f"rank {r} pass {n + 1}: {w * view.world:.3g}" for r, n, w in how.passes[:6])
                + ".",
                fix,
                (loss.file, loss.line),
            )
            return


def _uneven_passes(passes: Sequence[tuple[int, int, float]]) -> tuple[str, str]:
    """Return what is wrong with the passes of a step, given (rank, pass, share) of each, and its remedy."""
    counting: dict[int, set[int]] = {number: set() for _, number, _ in passes}
    for rank, number, share in passes:
        if abs(share) >= NEAR:
            counting[number].add(rank)
    lost = sorted(number + 1 for number, ranks in counting.items() if not ranks)
    own = sorted(number + 1 for number, ranks in counting.items() if len(ranks) == 1)
    if lost:
        clear = "Clear the gradients once for each step, and accumulate inside of `no_sync()`."
        return f"backward pass {ranges(lost, 4)} of the step is lost: its samples do not count", clear
    if own and len({rank for rank, _, _ in passes}) > 1:
        return (
            f"backward pass {ranges(own, 4)} of the step is not averaged: each rank keeps its own gradient of it",
            "Leave `no_sync()` for the last pass of each step: it is the one that averages what was accumulated.",
        )
    return "the passes of a step do not count alike", "Divide the loss of each pass by the number of passes."


def _odd(times: dict[int, float]) -> list[int]:
    usual = min(times.values(), key=lambda v: sum(abs(v - w) for w in times.values()))
    odd = [r for r, v in times.items() if abs(v - 1) > NEAR]
    apart = [r for r, v in times.items() if abs(v - usual) > NEAR]
    return odd or apart or sorted(times)


def _share(value: float) -> str:
    return "does not count" if abs(value) < NEAR else f"counts {value:.4g} times"


def between_ranks(view: StepView) -> Iterator[Violation]:
    """Gradients that are scaled differently on the ranks between backward pass and step."""
    clip = next((f.clipped for f in view.facts.values() if f.clipped), "")
    for row in view.compared:
        known = [f for f in row.factor if f is not None]
        if row.after.state == "mean" and len(known) > 1 and max(known) - min(known) > 1e-4 * max(map(abs, known)):
            words = ", ".join(f"rank {r} by {f:.4g}" for r, f in zip(view.ranks, known, strict=False))
            yield violation(
                view,
                "changed-after-reduction",
                f"After they were averaged, the ranks scale the gradients differently: {words}.",
                f"First seen at step {view.step} in {row.name}" + (f", which {clip} has clipped." if clip else "."),
                "Clip and scale after the reduction, by values that all ranks share.",
                (view.loss().file, view.loss().line),
            )
            return


def unexplained(view: StepView) -> Iterator[Violation]:
    """Yield gradients that no combination of the ranks' own explains."""
    rows = [(row, how) for row, how in differing(view) if how.state == "other"]
    if not rows:
        return
    row, how = rows[0]
    names = [r.name for r, _ in rows]
    off = how.off / row.size if row.size else 0.0
    which = "Every gradient is" if len(rows) == len(view.compared) else f"{first_of(names)}: the gradient is"
    if view.hooks:
        yield violation(
            view,
            "hook",
            f"{which} {off:.2%} off the mean of the ranks' own: the communication hook {view.hooks[0]} changes it.",
            f"First seen at step {view.step} in {row.name}; the tolerance is {row.tolerance:.1e}.",
            "A hook that compresses does so by design; train once without it to see whether that matters.",
            sure=False,
        )
    else:
        yield violation(
            view,
            "gradients-differ",
            f"{which} {off:.2%} off the mean of the ranks' own, by no common factor.",
            f"First seen at step {view.step} in {row.name}; the tolerance is {row.tolerance:.1e}.",
            "Look for what changes these gradients between the backward pass and the step.",
            (view.loss().file, view.loss().line),
            sure=False,
        )
