"""Names what differs between the steps of all ranks and those of one process, and the factor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dtdebug.experiments.parity.record_types import Compared, Explained, Facts, Loss, Row, SeenCall
from dtdebug.experiments.parity.source import scaling_line
from dtdebug_taxonomy.model.rank_ranges import ranges, say, spell
from dtdebug_taxonomy.model.training import Violation

_NEAR = 2e-3
"""Relative distance within which a factor is that of a cause."""
_UNEVEN = 1.05
_SHARED = 0.5
_FRACTIONS = {0.5: "half", 1 / 3: "a third", 0.25: "a quarter"}
_SAME_WEIGHTS = 1e-6


class StepView:
    """What all ranks have noted of one step."""

    def __init__(self, step: int, rows: Sequence[Row], others: Sequence[Row]) -> None:
        self.step = step
        self.facts: dict[int, Facts] = {r.rank: r.facts for r in rows if r.facts is not None}
        self.result = next((r for r in rows if r.compared or r.missing), None)
        self.ended = {r.rank: r.weights for r in others if r.ended == step}
        self.hooks = sorted({r.hook for r in others if r.hook})
        self.wrapped = sorted({r.wrapped for r in others if r.wrapped})
        self.world = max((r.world for r in rows), default=0)

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks that took the step."""
        return tuple(sorted(self.facts))

    @property
    def lead(self) -> Facts:
        """Facts of the first rank."""
        return self.facts[min(self.facts)]

    @property
    def compared(self) -> list[Compared]:
        """Parameters with finite gradients."""
        return [c for c in self.result.compared if c.finite] if self.result is not None else []

    def call_past_wrapper(self) -> SeenCall | None:
        """Return a call that trained past a wrapper."""
        calls = [c for rank in self.ranks for c in self.facts[rank].calls if c.used]
        return next((c for c in calls if not c.wrapper), None)

    def loss(self) -> Loss:
        """Return the last backward pass of the first rank."""
        return self.lead.losses[-1] if self.lead.losses else Loss()


def judge(rows: Sequence[Row]) -> tuple[Violation, ...]:
    """Return what differs at the first step at which something does, the cause first."""
    for view in views(rows):
        found = list(_of_step(view))
        if found:
            return tuple(found)
    return ()


def views(rows: Sequence[Row]) -> list[StepView]:
    """Return the steps that were compared, in order."""
    steps = sorted({r.step for r in rows if r.facts is not None})
    return [StepView(s, [r for r in rows if r.step == s], [r for r in rows if not r.step]) for s in steps]


def _of_step(view: StepView) -> Iterator[Violation]:
    seen: set[str] = set()
    for look in _LOOKS:
        if seen and look in {_otherwise, _unexplained, _updates}:
            continue  # what was found explains it
        for found in look(view):
            if found.invariant not in seen:
                seen.add(found.invariant)
                yield found


def _violation(  # noqa: PLR0917
    view: StepView, name: str, cause: str, means: str, fix: str, place: tuple[str, int] = ("", 0),
    ranks: tuple[int, ...] = (), *, sure: bool = True, symptom: str = "D.2.4",
) -> Violation:  # fmt: skip
    return Violation(
        invariant=f"parity-{name}",
        ranks=ranks or view.ranks,
        step=view.step,
        file=place[0],
        line=place[1],
        symptom=symptom,
        means=means,
        cause=cause,
        fix=fix,
        sure=sure,
    )


def _absent(view: StepView) -> Iterator[Violation]:
    if view.result is None or not view.result.missing:
        return
    missing = tuple(r for r in view.result.missing if r not in view.facts)
    if missing:
        yield _violation(
            view, "step-not-taken",
            f"{say(missing, 'has')} not taken step {view.step} of the optimizer, which {spell(view.ranks, 4)} took.",
            "Its notes of the step did not come within a minute, so its weights part from the others' here.",
            "Let every rank call `optimizer.step()` equally often: no `continue`, `break` or condition of one rank.",
            ranks=missing,
        )  # fmt: skip


def _weights(view: StepView) -> Iterator[Violation]:
    name, ranks = _unequal({r: f.weights for r, f in view.facts.items()})
    if name:
        yield _violation(
            view, "weights-part",
            f"The weights of {spell(ranks, 4)} are not those of rank {min(view.ranks)} before step {view.step}.",
            f"The first parameter that differs is {name}.",
            "Start from equal weights (wrap the model before training, or broadcast them), and update them alike.",
            ranks=ranks,
        )  # fmt: skip


def _unequal(sums: dict[int, dict[str, float | None]]) -> tuple[str, tuple[int, ...]]:
    """Return the first parameter whose sum differs, and the ranks that differ from the first one."""
    first = sums.get(min(sums, default=-1), {})
    for name, value in first.items():
        if value is None:
            continue
        apart = tuple(
            r for r, other in sorted(sums.items())
            if (now := other.get(name)) is not None and abs(now - value) > _SAME_WEIGHTS * max(1.0, abs(value))
        )  # fmt: skip
        if apart:
            return name, apart
    return "", ()


def _samples(view: StepView) -> Iterator[Violation]:
    for number, mine in enumerate(view.lead.rows):
        for rank in view.ranks[1:]:
            theirs = view.facts[rank].rows[number] if number < len(view.facts[rank].rows) else []
            both = len(set(mine) & set(theirs))
            if mine and theirs and both >= _SHARED * min(len(mine), len(theirs)) and both:
                alike = [r for r in view.ranks if _overlap(mine, view.facts[r].rows, number)]
                call = view.lead.calls[number]
                yield _violation(
                    view, "same-samples",
                    f"{spell(tuple(alike), 4).capitalize()} train on the same samples: each counts {_times(len(alike))}.",
                    f"{both} of the {len(mine)} samples of rank {min(view.ranks)} are also those of rank {rank}.",
                    "Give each rank its own part of the data: a `DistributedSampler` with its rank, or another seed.",
                    (call.file, call.line), tuple(alike),
                )  # fmt: skip
                return


def _overlap(mine: list[int], rows: list[list[int]], number: int) -> bool:
    theirs = rows[number] if number < len(rows) else []
    return bool(theirs) and len(set(mine) & set(theirs)) >= _SHARED * min(len(mine), len(theirs))


def _times(count: int) -> str:
    return {2: "twice", 3: "three times"}.get(count, f"{count} times")


def _modes(view: StepView) -> Iterator[Violation]:
    """Frozen parameters, or another mode, on some ranks only."""
    first = view.lead
    for rank in view.ranks[1:]:
        other = view.facts[rank]
        if apart := sorted(set(first.frozen) ^ set(other.frozen)):
            where = rank if apart[0] in other.frozen else min(view.ranks)
            yield _violation(
                view, "frozen-on-some-ranks",
                f"{_first(apart)} {'are' if len(apart) > 1 else 'is'} frozen on rank {where} only: its gradient lacks "
                "that rank's samples.",
                f"`requires_grad` differs between the ranks at step {view.step}.",
                "Freeze the same parameters on every rank, before the model is wrapped.", ranks=(where,),
            )  # fmt: skip
            return
        modes = [(a.training, b.training) for a, b in zip(first.calls, other.calls, strict=False) if a.kind == b.kind]
        if unlike := next((pair for pair in modes if pair[0] != pair[1]), None):
            where = rank if unlike[1] < unlike[0] else min(view.ranks)
            yield _violation(
                view, "mode-differs",
                f"Rank {where} trains with modules in evaluation mode that are in training mode elsewhere.",
                f"{min(unlike)} modules are in training mode there, {max(unlike)} on another rank.",
                "Call `model.train()` on every rank after an evaluation.", ranks=(where,),
            )  # fmt: skip
            return


def _effective(view: StepView, row: Compared) -> Explained:
    """Return the moment that counts: after the backward pass, or at the step where the program reduces by hand."""
    if row.after.state in {"mean", "factor", "weights", "passes"}:
        return row.after
    return row.step if row.step.state != "none" else row.after


def _bad(view: StepView) -> list[tuple[Compared, Explained]]:
    rows = [(row, _effective(view, row)) for row in view.compared]
    return [(row, how) for row, how in rows if how.state not in {"mean", "none", "not finite"}]


def _unreduced(view: StepView) -> Iterator[Violation]:
    own = [row for row, how in _bad(view) if how.state == "own"]
    if not own:
        return
    whole = len(own) == len(view.compared)
    names = [row.name for row in own]
    call = view.call_past_wrapper()
    place = (call.file, call.line) if call is not None else ("", 0)
    mean = "each rank's gradient is its own instead of the mean"
    if not view.wrapped and not view.lead.sharded and call is not None and whole:
        yield _violation(
            view, "no-reduction",
            f"No gradient is averaged: no wrapper was found, and each of {spell(view.ranks, 4)} trains its own model.",
            f"At step {view.step} {mean}, for all {len(own)} parameters.",
            "Wrap the model (`DistributedDataParallel(model)`) and call the wrapper, or average the gradients "
            "yourself.", place, symptom="D.2.5",
        )  # fmt: skip
    elif call is not None and whole:
        yield _violation(
            view, "past-the-wrapper",
            f"No gradient is averaged at step {view.step}: the model is called past its wrapper.",
            f"For all {len(own)} parameters {mean}.",
            "Call the wrapper itself, not the model inside it.", place, symptom="D.2.5",
        )  # fmt: skip
    elif call is not None:
        yield _violation(
            view, "outside-the-wrapper",
            f"{_first(names)} {'are' if len(names) > 1 else 'is'} not in the wrapper: not averaged, the other "
            f"{len(view.compared) - len(own)} parameters are.",
            f"At step {view.step} {mean} for {_first(names)}.",
            "Make it part of the module that is wrapped, or wrap it as well.", place, symptom="D.2.5",
        )  # fmt: skip
    else:
        loss = view.loss()
        yield _violation(
            view, "not-averaged",
            f"{'No gradient is' if whole else _first(names) + (' are' if len(names) > 1 else ' is') + ' not'} averaged "
            f"at step {view.step}, though the wrapper was called.",
            f"{mean[0].upper()}{mean[1:]}, for {len(own)} of {len(view.compared)} parameters.",
            "Let the last backward pass before each step run outside of `no_sync()`, with its forward pass.",
            (loss.file, loss.line), symptom="D.2.5",
        )  # fmt: skip


def _scaled(view: StepView) -> Iterator[Violation]:
    """One factor for the loss, the reduction, and what the program does to the gradients before the step."""
    if not view.compared or view.world < 2:
        return
    by_hand = all(row.after.state == "own" for row, _ in _bad(view))
    if by_hand and any(f.clipped for f in view.facts.values()):
        return  # reduced by hand, then clipped
    found = {round(how.factor, 4) for _, how in _bad(view) if how.state == "factor"}
    uniform = len(found) == 1 and all(how.state == "factor" for _, how in _bad(view)) and (
        len(_bad(view)) == len(view.compared)
    )  # fmt: skip
    reduced = next(iter(found)) if uniform else 1.0
    between, _ = _between(view)
    world = view.world
    by_loss = _loss_factor(view)
    passes = max(1, view.lead.backwards)
    total = reduced * between * by_loss
    if abs(total - 1) <= _NEAR and not (found and not uniform):
        return
    loss = view.loss()
    if found and not uniform:
        some = [row.name for row, how in _bad(view) if how.state == "factor"]
        factor = next(how.factor for _, how in _bad(view) if how.state == "factor")
        yield _violation(
            view, "some-scaled",
            f"The gradient of {_first(some)} is {_factor_words(factor)} the mean of the ranks' own; the other "
            f"{len(view.compared) - len(some)} parameters agree.",
            f"Seen at step {view.step}, right after the backward pass.",
            "Look for a hook, a second reduction or a scaling of these parameters only.", (loss.file, loss.line),
        )  # fmt: skip
    elif by_loss != 1.0:
        yield from _scaled_loss(view, by_loss, total, passes)
    else:
        stage = "after the backward pass" if uniform else "between the backward pass and the step"
        line = scaling_line(loss.file, loss.line, multiplied=total > 1, gradients=True) if between != 1.0 else 0
        hook = f" by the hook {view.hooks[0]}" if view.hooks and uniform else ""
        if abs(total - 1 / world) <= _NEAR * total:
            cause = f"Every gradient is {_factor_words(total)} that of one process: it is averaged twice{hook}."
            fix = "DDP has averaged the gradients already: do not divide by the number of ranks again."
        elif abs(total - world) <= _NEAR * total:
            cause = (
                f"Every gradient is {_factor_words(total)} that of one process: summed over the ranks, not averaged."
            )
            fix = "Divide the sum by the number of ranks, or reduce with an average."
        else:
            cause = f"Every gradient is {_factor_words(total)} that of one process{hook}."
            fix = "Look for what scales all gradients there."
        yield _violation(
            view, "gradients-scaled", cause, f"The factor {total:.6g} arises {stage} of step {view.step}.",
            fix, (loss.file, line or (loss.line if uniform or not line else line)),
        )  # fmt: skip


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
    return known[0], False


def _loss_factor(view: StepView) -> float:
    """Return the factor of the loss that may be the number of ranks, or one divided by it; else 1."""
    world = float(view.world)
    per_loss = []
    for loss in view.lead.losses:
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
    loss = view.loss()
    line = scaling_line(loss.file, loss.line, multiplied=by_loss > 1) if loss.file else 0
    if abs(passes * by_loss - 1) < 1e-9 and not line:
        return  # it is the number of accumulated passes
    how = "divided" if by_loss < 1 else "multiplied"
    less = abs(total - by_loss) <= _NEAR * total
    if line:
        cause = (
            f"Every gradient is {_factor_words(total)} that of one process: the loss is {how} by the number of ranks"
        )
        cause += ", and DDP divides again." if by_loss < 1 and less else "."
    else:
        cause = f"The loss is {how} by {view.world}, which is the number of ranks: if meant so, every gradient is "
        cause += f"{_factor_words(total)} that of one process."
    yield _violation(
        view, "loss-divided" if by_loss < 1 else "loss-multiplied", cause,
        f"At step {view.step} the loss has the factor {by_loss:.6g}, and the mean over the ranks comes on top.",
        f"Do not {'divide' if by_loss < 1 else 'multiply'} the loss by the number of ranks: the gradients are averaged "
        "already.", (loss.file, line or loss.line), sure=bool(line),
    )  # fmt: skip


def _summed_loss(view: StepView) -> Iterator[Violation]:
    """A loss that is a sum over a rank's values: undivided, or divided by the number of values of all ranks."""
    terms = {r: [t for loss in f.losses for t in loss.terms] for r, f in view.facts.items()}
    kinds = {t.kind for rows in terms.values() for t in rows}
    if kinds != {"sum"} or view.world < 2 or not view.compared:
        return
    total = sum(t.count for rows in terms.values() for t in rows)
    scale = abs(next(iter(terms.values()))[0].scale)
    reduced = [how.factor if how.state == "factor" else 1.0 for _, how in map(lambda r: (r, _effective(view, r)), view.compared)]
    if any(abs(f - 1) > _NEAR for f in reduced):
        return  # what the reduction does may be meant for this loss
    between, _ = _between(view)
    loss = view.loss()
    if total and abs(scale * total * between - 1) < _NEAR:
        yield _violation(
            view, "loss-divided",
            f"Every gradient is {_factor_words(1 / view.world)} that of one process: the loss is divided by the number "
            "of values of all ranks, and averaged over the ranks again.",
            f"At step {view.step} the sum is divided by {1 / scale:.0f}, which all {view.world} ranks have together.",
            "Multiply the loss by the number of ranks, or divide by the mean number of values of a rank.",
            (loss.file, loss.line),
        )  # fmt: skip
    elif all(not t.factors for rows in terms.values() for t in rows) and abs(between - 1) < _NEAR:
        yield _violation(
            view, "loss-is-a-sum",
            f"Every gradient is {_factor_words(1 / view.world)} that of one process: the loss is a sum over each rank's "
            "values, and is averaged over the ranks.",
            f"At step {view.step} nothing divides the sum" + (f" of {total:.0f} values" if total else "")
            + ", so its size depends on the batch and on the number of ranks.",
            "Divide the loss by the number of values (of all ranks, times the number of ranks), or use a mean.",
            (loss.file, loss.line), sure=False,
        )  # fmt: skip


def _cleared_between(view: StepView) -> Iterator[Violation]:
    """Passes whose gradient was cleared before the next pass of the same step."""
    lost = sorted({number for c in view.compared for number in c.cleared})
    if not lost:
        return
    loss, passes = view.loss(), view.lead.backwards
    share = next((abs(t.scale) for t in loss.terms), 1.0)
    accumulates = abs(share * passes - 1) < 1e-6
    yield _violation(
        view, "passes-weigh-differently",
        f"Of {passes} accumulated backward passes only the last counts: the gradients are cleared in between."
        if len(lost) == passes - 1 else f"The gradient of backward pass {ranges([n + 1 for n in lost], 4)} is cleared "
        "before the step.",
        f"At step {view.step} the gradient was there after pass {lost[0] + 1} and gone before pass {lost[0] + 2}"
        + (f", though the loss is divided by {passes} for accumulation." if accumulates else "."),
        "Clear the gradients once for each step, not in each micro step.", (loss.file, loss.line), sure=accumulates,
    )  # fmt: skip


def _shares(view: StepView) -> Iterator[Violation]:
    """Ranks, or passes, that count more or less than others in the reduced gradient."""
    for row, how in _bad(view):
        loss = view.loss()
        if how.state == "weights":
            shares = next(iter(how.weights.values()))
            times = {r: w * view.world for r, w in zip(view.ranks, shares, strict=False)}
            odd = _odd(times)
            others = [row2.name for row2, h in _bad(view) if h.state == "weights"]
            which = "every gradient" if len(others) == len(view.compared) else f"the gradient of {_first(others)}"
            words = ", ".join(f"rank {r} {_share(times[r])}" for r in odd[:4])
            clip = next((f.clipped for f in view.facts.values() if f.clipped), "")
            if clip and row.after.state == "own":
                yield _violation(
                    view, "clipped-before-reduction",
                    "Each rank clips its own gradient before they are averaged, by its own norm: " + words + ".",
                    f"Solved for at step {view.step} from the ranks' own gradients; one process clips the mean once.",
                    f"Reduce first, then call `{clip}` on every rank.", (loss.file, loss.line), tuple(odd),
                )  # fmt: skip
                return
            yield _violation(
                view, "ranks-weigh-differently", f"In {which} the ranks do not count alike: {words}.",
                f"Solved for at step {view.step} from the ranks' own gradients; 1 each is the mean.",
                "Look for what these ranks do between their backward pass and the reduction.", (loss.file, loss.line),
                tuple(odd),
            )  # fmt: skip
            return
        if how.state == "passes":
            lost = sorted({number + 1 for _, number, share in how.passes if abs(share) < _NEAR})
            words = f"backward pass {ranges(lost, 4)} of the step is lost" if lost else "the passes do not count alike"
            yield _violation(
                view, "passes-weigh-differently", f"In accumulation {words}: its samples do not count.",
                "Solved for from the ranks' gradients of each pass: "
                + ", ".join(f"rank {r} pass {n + 1}: {w * view.world:.3g}" for r, n, w in how.passes[:6]) + ".",
                "Clear the gradients once for each step, and accumulate inside of `no_sync()`.", (loss.file, loss.line),
            )  # fmt: skip
            return


def _odd(times: dict[int, float]) -> list[int]:
    usual = min(times.values(), key=lambda v: sum(abs(v - w) for w in times.values()))
    odd = [r for r, v in times.items() if abs(v - 1) > _NEAR]
    apart = [r for r, v in times.items() if abs(v - usual) > _NEAR]
    return odd or apart or sorted(times)


def _share(value: float) -> str:
    return "does not count" if abs(value) < _NEAR else f"counts {value:.4g} times"


def _unexplained(view: StepView) -> Iterator[Violation]:
    rows = [(row, how) for row, how in _bad(view) if how.state == "other"]
    if not rows:
        return
    row, how = rows[0]
    names = [r.name for r, _ in rows]
    off = how.off / row.size if row.size else 0.0
    which = "Every gradient is" if len(rows) == len(view.compared) else f"{_first(names)}: the gradient is"
    if view.hooks:
        yield _violation(
            view, "hook",
            f"{which} {off:.2%} off the mean of the ranks' own: the communication hook {view.hooks[0]} changes it.",
            f"First seen at step {view.step} in {row.name}; the tolerance is {row.tolerance:.1e}.",
            "A hook that compresses does so by design; train once without it to see whether that matters.", sure=False,
        )  # fmt: skip
    else:
        yield _violation(
            view, "gradients-differ",
            f"{which} {off:.2%} off the mean of the ranks' own, by no common factor.",
            f"First seen at step {view.step} in {row.name}; the tolerance is {row.tolerance:.1e}.",
            "Look for what changes these gradients between the backward pass and the step.",
            (view.loss().file, view.loss().line), sure=False,
        )  # fmt: skip


def _rank_loss(view: StepView) -> Iterator[Violation]:
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
            for (a, kind, count, _), (b, _, other, _) in zip(mine, theirs, strict=True):
                if a and b and abs(a - b) > 1e-6 * abs(a):
                    yield _rank_scale(view, loss, rank, a, b, kind)
                    return
                if kind == "mean" and count and other and max(count, other) > _UNEVEN * min(count, other):
                    yield _uneven(view, loss, {first: count, rank: other})
                    return


def _rank_scale(view: StepView, loss: Loss, rank: int, a: float, b: float, kind: str) -> Violation:
    if kind == "sum":
        return _uneven(view, loss, {min(view.ranks): 1 / abs(a), rank: 1 / abs(b)})
    scales = {r: f.losses[-1].terms[0].scale for r, f in view.facts.items() if f.losses and f.losses[-1].terms}
    usual = min(scales.values(), key=lambda v: sum(abs(v - w) for w in scales.values())) if len(scales) > 2 else a
    odd = tuple(r for r, v in scales.items() if abs(v - usual) > 1e-6 * abs(usual)) or (rank,)
    ratio = scales.get(odd[0], b) / usual
    off = abs(ratio - 1) / view.world
    return _violation(
        view, "loss-scaled-on-a-rank",
        f"The loss of rank {odd[0]} is {ratio:.4g} times that of the others, so the mean is up to {off:.2%} off.",
        f"Its factor is {scales.get(odd[0], b):.6g} at step {view.step}, that of the others {usual:.6g}.",
        "Scale the loss alike on every rank.", (loss.file, loss.line), odd,
    )  # fmt: skip


def _uneven(view: StepView, loss: Loss, counts: dict[int, float]) -> Violation:
    words = " and ".join(f"rank {r}'s over {c:.0f}" for r, c in counts.items())
    most, least = max(counts.values()), min(counts.values())
    return _violation(
        view, "uneven-means",
        f"Samples do not weigh alike: the loss is a mean over each rank's own values, {words}.",
        f"At step {view.step} a value of the smaller part counts {most / least:.3g} times; one process would take one "
        "mean over all.",
        "Sum the loss, divide it by the mean over the ranks of the number of values (`all_reduce` it), and average.",
        (loss.file, loss.line),
    )  # fmt: skip


def _otherwise(view: StepView) -> Iterator[Violation]:
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
            size = f"{_factor_words(factor)} what one process gets from its inputs"
        else:
            size = f"{off:.2%} off what one process gets from its inputs"
        inner = f"; the first output that differs is that of `{module[0] or 'the model'}`" if module else ""
        yield _violation(
            view, "rank-computes-otherwise",
            f"Rank {rank} computes something else: its gradient of {name} is {size}.",
            f"Recomputed at step {view.step} from the same weights, inputs and random state{inner}.",
            "Look for a branch on the rank, a setting or a value that only this rank has.", ranks=(int(rank),),
        )  # fmt: skip
        return


def _between_ranks(view: StepView) -> Iterator[Violation]:
    """Gradients that are scaled differently on the ranks between backward pass and step."""
    clip = next((f.clipped for f in view.facts.values() if f.clipped), "")
    for row in view.compared:
        known = [f for f in row.factor if f is not None]
        if row.after.state == "mean" and len(known) > 1 and max(known) - min(known) > 1e-4 * max(map(abs, known)):
            words = ", ".join(f"rank {r} by {f:.4g}" for r, f in zip(view.ranks, known, strict=False))
            yield _violation(
                view, "changed-after-reduction",
                f"After they were averaged, the ranks scale the gradients differently: {words}.",
                f"First seen at step {view.step} in {row.name}" + (f", which {clip} has clipped." if clip else "."),
                "Clip and scale after the reduction, by values that all ranks share.",
                (view.loss().file, view.loss().line),
            )  # fmt: skip
            return


def _lost(view: StepView) -> Iterator[Violation]:
    lost = [c.name for c in view.compared if c.step.state == "none" and c.size]
    if lost:
        which = "No gradient is" if len(lost) == len(view.compared) else f"The gradient of {_first(lost)} is not"
        yield _violation(
            view, "cleared-before-step", f"{which} there at step {view.step}: it was cleared after the backward pass.",
            "The backward pass had computed it.", "Clear the gradients before the backward pass, not before the step.",
            (view.loss().file, view.loss().line), symptom="D.2.5",
        )  # fmt: skip


def _updates(view: StepView) -> Iterator[Violation]:
    """Weights that part in a step though their gradients agree."""
    if _bad(view) or not view.compared or len(view.ended) < 2:
        return
    name, ranks = _unequal(view.ended)
    before, _ = _unequal({r: f.weights for r, f in view.facts.items()})
    if name and not before:
        yield _violation(
            view, "update-differs",
            f"The gradients agree, but step {view.step} leaves other weights on {spell(ranks, 4)}.",
            f"The first parameter that differs is {name}.",
            "Compare learning rate, settings and state of the optimizer between the ranks.", ranks=ranks,
        )  # fmt: skip


def _first(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _factor_words(factor: float) -> str:
    for value, words in _FRACTIONS.items():
        if abs(factor - value) <= _NEAR * value:
            return words
    if abs(factor - round(factor)) <= _NEAR * factor and round(factor) > 1:
        return f"{round(factor)} times"
    return f"{factor:.4g} times"


_LOOKS: tuple[Callable[[StepView], Iterator[Violation]], ...] = (
    _absent, _weights, _modes, _unreduced, _lost, _cleared_between,
    _summed_loss, _scaled, _shares, _between_ranks, _rank_loss, _samples, _otherwise,
    _unexplained, _updates,
)  # fmt: skip
"""The more specific first: the first finding is the answer, the others are shown with it."""
