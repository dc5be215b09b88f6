"""Factors common to all gradients, and losses that ranks scale or average differently."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from dtdebug.experiments.parity.judge.view import (
    NEAR,
    StepView,
    differing,
    effective,
    factor_words,
    first_of,
    telling,
    violation,
)
from dtdebug.experiments.parity.record_types import Loss, Made, Term
from dtdebug.experiments.parity.source import names_ranks, scaling_line, without_scaling
from dtdebug_taxonomy.model.training import Violation

_UNEVEN = 1.05


def scaled(view: StepView) -> Iterator[Violation]:
    """One factor for the loss, the reduction, and what the program does to the gradients before the step."""
    if not view.compared or view.world < 2:
        return
    by_hand = any(row.after.state == "own" for row, _ in differing(view))
    if by_hand and any(f.clipped for f in view.facts.values()):
        return  # reduced by hand, then clipped
    found = {round(how.factor, 4) for _, how in differing(view) if how.state == "factor"}
    uniform = (
        len(found) == 1
        and all(how.state == "factor" for _, how in differing(view))
        and len(differing(view)) == len(telling(view))
    )
    reduced = next(iter(found)) if uniform else 1.0
    between, _ = _between(view)
    world = view.world
    passes = max(1, view.lead.backwards)
    by_loss = _loss_factor(view, passes)
    total = reduced * between * by_loss
    if abs(total - 1) <= NEAR and not (found and not uniform):
        return
    loss = view.loss()
    if found and not uniform:
        some = [row.name for row, how in differing(view) if how.state == "factor"]
        factor = next(how.factor for _, how in differing(view) if how.state == "factor")
        yield violation(
            view,
            "some-scaled",
            f"The gradient of {first_of(some)} is {factor_words(factor)} the mean of the ranks' own; the other "
            f"{len(view.compared) - len(some)} parameters agree.",
            f"Seen at step {view.step}, right after the backward pass.",
            "Look for a hook, a second reduction or a scaling of these parameters only.",
            (loss.file, loss.line),
        )
    elif by_loss != 1.0:
        yield from _scaled_loss(view, by_loss, total, passes)
    else:
        stage = "after the backward pass" if uniform else "between the backward pass and the step"
        line = scaling_line(loss.file, loss.line, multiplied=total > 1, gradients=True) if between != 1.0 else 0
        hook = f" by the hook {view.hooks[0]}" if view.hooks and uniform else ""
        if abs(total - 1 / world) <= NEAR * total:
            cause = f"Every gradient is {factor_words(total)} that of one process: it is averaged twice{hook}."
            fix = "DDP has averaged the gradients already: do not divide by the number of ranks again."
        elif abs(total - world) <= NEAR * total:
            cause = f"Every gradient is {factor_words(total)} that of one process: summed over the ranks, not averaged."
            fix = "Divide the sum by the number of ranks, or reduce with an average."
        else:
            cause = f"Every gradient is {factor_words(total)} that of one process{hook}."
            fix = "Look for what scales all gradients there."
        yield violation(
            view,
            "gradients-scaled",
            cause,
            f"The factor {total:.6g} arises {stage} of step {view.step}.",
            fix,
            (loss.file, line or loss.line),
            diff=without_scaling(loss.file, line, gradients=True)
            if line and reduced == by_loss == 1.0 and abs(total - 1 / world) <= NEAR * total
            else "",
        )


def _between(view: StepView) -> tuple[float, bool]:
    """Return the common factor of all gradients between backward pass and step, where no clipping explains it."""
    if any(f.clipped for f in view.facts.values()) or any(row.after.state == "own" for row in view.compared):
        return 1.0, True
    factors = [f for row in view.compared for f in row.factor]
    if not factors or any(f is None for f in factors):
        return 1.0, False
    known = [f for f in factors if f is not None]
    if max(known) - min(known) > 1e-4 * max(1e-9, abs(known[0])) or not known[0]:
        return 1.0, False
    if not any(abs(known[0] - power) <= NEAR * power for power in _powers(view.world)):
        return 1.0, True  # clipped by hand, or the like: one process would do the same
    return known[0], False


def _powers(world: int) -> tuple[float, ...]:
    return (world**-2, 1 / world, float(world), float(world**2))


def _loss_factor(view: StepView, passes: int) -> float:
    """Return the factor of all ranks' losses that may be the number of ranks, or one divided by it; else 1."""
    found = [_loss_factor_of(f.losses, float(view.world)) for f in view.facts.values()]
    if any(abs(f - found[0]) > 1e-9 for f in found):
        return 1.0  # a rank scales its loss otherwise
    twice = passes == view.world and abs(found[0] * passes**2 - 1) < 1e-9  # once for the accumulated passes
    return found[0] * passes if twice else found[0]


def _loss_factor_of(losses: Sequence[Loss], world: float) -> float:
    per_loss = []
    for loss in losses:
        products = []
        for term in loss.terms:
            worlds = [
                1 / v if how == "div" else v
                for how, v in term.factors
                if v and (abs(v - world) < 1e-9 or abs(v * world - 1) < 1e-9)
            ]
            product = 1.0
            for one in worlds:
                product *= one
            multiplied_sum = product > 1 and term.kind != "mean"
            products.append(1.0 if multiplied_sum else product)
        if products and all(abs(p - products[0]) < 1e-9 for p in products):
            per_loss.append(products[0])
        else:
            per_loss.append(1.0)
    return per_loss[0] if per_loss and all(abs(p - per_loss[0]) < 1e-9 for p in per_loss) else 1.0


def _scaled_loss(view: StepView, by_loss: float, total: float, passes: int) -> Iterator[Violation]:
    loss, multiplied = view.loss(), by_loss > 1
    by_ranks = _by_ranks(view)
    named = (m for m in by_ranks if m.line and scaling_line(m.file, m.line, multiplied=multiplied) == m.line)
    at = next(named, by_ranks[0] if by_ranks else Made())  # accumulation may have the same number
    file, line = at.file or loss.file, at.line or loss.line
    own = scaling_line(file, line, multiplied=multiplied) if file else 0
    library = next((m for m in by_ranks if m.own_file != m.file and names_ranks(m.text)), None) if not own else None
    if abs(passes * by_loss - 1) < 1e-9 and not own and library is None:
        return  # it is the number of accumulated passes
    how = "multiplied" if multiplied else "divided"
    less = abs(total - by_loss) <= NEAR * total
    if own or library is not None:
        cause = f"Every gradient is {factor_words(total)} that of one process: the loss is {how} by the number of ranks"
        cause += ", and DDP divides again." if by_loss < 1 and less else "."
    else:
        cause = f"The loss is {how} by {view.world}, which is the number of ranks: if meant so, every gradient is "
        cause += f"{factor_words(total)} that of one process."
    exchanged = view.lead.sums or view.lead.exchanged  # what is divided may be the sum of all ranks' losses
    once = (
        less and own == line and not exchanged and abs(by_loss - (view.world if multiplied else 1 / view.world)) < 1e-9
    )
    yield violation(
        view,
        "loss-multiplied" if multiplied else "loss-divided",
        cause,
        f"At step {view.step} the loss has the factor {by_loss:.6g}, and the mean over the ranks comes on top.",
        f"{PurePath(library.own_file).name}:{library.own_line} does it, called from here: give it a loss for which "
        "that is meant, such as a sum divided by the number of values of all ranks, or switch it off."
        if library is not None
        else f"Do not {'multiply' if multiplied else 'divide'} the loss by the number of ranks: the gradients are "
        "averaged already.",
        (library.file, library.line) if library is not None else (file, own or line),
        sure=bool(own) or library is not None,
        diff=without_scaling(file, own, multiplied=multiplied) if once else "",
    )


def _by_ranks(view: StepView) -> list[Made]:
    """Return where the losses of the first rank are scaled by the number of ranks."""
    return [
        made
        for loss in view.lead.losses
        for term in loss.terms
        for (_, value), made in zip(term.factors, term.made, strict=False)
        if abs(value - view.world) < 1e-9 or abs(value * view.world - 1) < 1e-9
    ]


def summed_loss(view: StepView) -> Iterator[Violation]:
    """A loss that is a sum over a rank's values: undivided, or divided by the number of values of all ranks."""
    terms = {r: [t for loss in f.losses for t in loss.terms] for r, f in view.facts.items()}
    kinds = {t.kind for rows in terms.values() for t in rows}
    if kinds != {"sum"} or view.world < 2 or not view.compared:
        return
    total = sum(t.count for rows in terms.values() for t in rows)
    samples = sum(max(map(len, f.rows), default=0) for f in view.facts.values())
    if 0 < total < samples:
        return  # terms are added up, not the values of samples
    first = next(iter(terms.values()))[0]
    scale = abs(first.scale)
    reduced = [how.factor if how.state == "factor" else 1.0 for how in (effective(view, row) for row in view.compared)]
    if any(abs(f - 1) > NEAR for f in reduced):
        return  # what the reduction does may be meant for this loss
    between, _ = _between(view)
    loss = view.loss()
    if total and abs(scale * total * between - 1) < NEAR:
        yield violation(
            view,
            "loss-divided",
            f"Every gradient is {factor_words(1 / view.world)} that of one process: the loss is divided by the number "
            "of values of all ranks, and averaged over the ranks again.",
            f"At step {view.step} the sum is divided by {1 / scale:.0f}, which all {view.world} ranks have together.",
            "Multiply the loss by the number of ranks, or divide by the mean number of values of a rank.",
            _place(loss, *first.made, first.at),
        )
    elif all(not t.factors for rows in terms.values() for t in rows) and abs(between - 1) < NEAR:
        yield violation(
            view,
            "loss-is-a-sum",
            f"Every gradient is {factor_words(1 / view.world)} that of one process: the loss is a sum over each rank's "
            "values, and is averaged over the ranks.",
            f"At step {view.step} nothing divides the sum"
            + (f" of {total:.0f} values" if total else "")
            + ", so its size depends on the batch and on the number of ranks.",
            "Divide the loss by the number of values (of all ranks, times the number of ranks), or use a mean.",
            _place(loss, first.at),
            sure=False,
        )


def sums(view: StepView) -> Iterator[Violation]:
    """Yield a sum over the ranks that the loss depends on, and that passes no gradient to the other ranks.

    Ranks with equal samples share one model, and then this is what they are to do. A loss that is scaled by the number
    of ranks makes up for it.
    """
    rows = [f.rows for f in view.facts.values()]
    worlds = [
        value for f in view.facts.values() for loss in f.losses for t in loss.terms for how, value in t.factors
        if abs((value if how == "mul" else 1 / (value or 1)) - view.world) < 1e-9
    ]  # fmt: skip
    if not view.compared or differing(view) or worlds or not rows[0] or any(r == rows[0] for r in rows[1:]):
        return
    for number, one in enumerate(view.lead.sums):
        alike = [f.sums[number] for f in view.facts.values() if number < len(f.sums)]
        if len(alike) < view.world or any((s.file, s.line) != (one.file, one.line) for s in alike):
            return
        if one.scaled or min(s.norm for s in alike) <= 0:
            continue
        equal = max(s.norm for s in alike) <= (1 + NEAR) * min(s.norm for s in alike)
        share = f"{factor_words(1 / view.world)} the gradient" if equal else "only its own rank's part of the gradient"
        yield violation(
            view,
            "sum-without-gradient",
            f"`all_reduce()` passes no gradient to the other ranks: what the loss has through this sum gets {share} of "
            "one process.",
            f"At step {view.step} the loss of each rank depends on the sum, and the gradients are averaged on top.",
            "Use `torch.distributed.nn.functional.all_reduce()`, which adds the ranks' gradients up.",
            (one.file, one.line),
        )
        return


def rank_loss(view: StepView) -> Iterator[Violation]:
    """A loss that one rank scales, or means over different numbers of values."""
    if len(view.ranks) < 2:
        return
    first = min(view.ranks)
    for number, loss in enumerate(view.lead.losses):
        mine = [(t.scale, t.kind, t.count, t.op) for t in loss.terms]
        for rank in view.ranks[1:]:
            losses = view.facts[rank].losses
            theirs = [(t.scale, t.kind, t.count, t.op) for t in losses[number].terms] if number < len(losses) else []
            if len(mine) != len(theirs) or [t[3] for t in mine] != [t[3] for t in theirs]:
                continue
            for number_of, ((a, kind, count, _), (b, _, other, _)) in enumerate(zip(mine, theirs, strict=True)):
                pair = loss.terms[number_of], losses[number].terms[number_of]
                if a and b and abs(a - b) > 1e-6 * abs(a):
                    yield _rank_scale(view, loss, rank, pair)
                    return
                if kind == "mean" and count and other and max(count, other) > _UNEVEN * min(count, other):
                    yield _uneven(view, {first: count, rank: other}, _place(loss, pair[0].at))
                    return


def _place(loss: Loss, *made: Made) -> tuple[str, int]:
    """Return the first known of some lines of operations, else that of the backward pass."""
    return next(((m.file, m.line) for m in made if m.line), (loss.file, loss.line))


def _factor_apart(one: Term, other: Term) -> Made:
    """Return where the first factor of a term was applied that the other term does not have."""
    left = list(other.factors)
    for factor, made in zip(one.factors, one.made, strict=False):
        if factor not in left:
            return made
        left.remove(factor)
    return Made()


def _rank_scale(view: StepView, loss: Loss, rank: int, pair: tuple[Term, Term]) -> Violation:
    mine, theirs = pair
    a, b = mine.scale, theirs.scale
    if mine.kind == "sum":
        place = _place(loss, _factor_apart(mine, theirs), mine.at)
        return _uneven(view, {min(view.ranks): 1 / abs(a), rank: 1 / abs(b)}, place)
    scales = {r: f.losses[-1].terms[0].scale for r, f in view.facts.items() if f.losses and f.losses[-1].terms}
    usual = min(scales.values(), key=lambda v: (sum(abs(v - w) for w in scales.values()), abs(v - 1)))
    odd = tuple(r for r, v in scales.items() if abs(v - usual) > 1e-6 * abs(usual)) or (rank,)
    ratio = scales.get(odd[0], b) / usual
    off = abs(ratio - 1) / view.world
    return violation(
        view,
        "loss-scaled-on-a-rank",
        f"The loss of rank {odd[0]} is {ratio:.4g} times that of the others, so the mean is up to {off:.2%} off.",
        f"Its factor is {scales.get(odd[0], b):.6g} at step {view.step}, that of the others {usual:.6g}.",
        "Scale the loss alike on every rank.",
        _place(loss, *(_factor_apart(*each) for each in ((theirs, mine), (mine, theirs))[:: 1 if rank in odd else -1])),
        odd,
    )


def _uneven(view: StepView, counts: dict[int, float], place: tuple[str, int]) -> Violation:
    words = " and ".join(f"rank {r}'s over {c:.0f}" for r, c in counts.items())
    most, least = max(counts.values()), min(counts.values())
    return violation(
        view,
        "uneven-means",
        f"Samples do not weigh alike: the loss is a mean over each rank's own values, {words}.",
        f"At step {view.step} a value of the smaller part counts {most / least:.3g} times; one process would take one "
        "mean over all.",
        "Sum the loss, divide it by the mean over the ranks of the number of values (`all_reduce` it), and average.",
        place,
    )
