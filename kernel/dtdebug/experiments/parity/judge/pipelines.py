"""Pipelines whose gradients are not those of whole batches on one process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dtdebug.experiments.parity.judge.view import NEAR, factor_words
from dtdebug.experiments.parity.record_types import Pipeline, Row
from dtdebug_taxonomy.model.rank_ranges import ranges
from dtdebug_taxonomy.model.training import Violation

_RIGHT = 2e-3


def of_pipelines(rows: Sequence[Row]) -> tuple[Violation, ...]:
    """Return what differs at the first step at which something does."""
    for step in sorted({row.step for row in rows if row.pipeline is not None}):
        held = {row.rank: row.pipeline for row in rows if row.step == step and row.pipeline is not None}
        found = tuple(_of_step(step, held))
        if found:
            return found
    return ()


def is_settled(held: Sequence[Pipeline]) -> bool:
    """True if no stage draws random numbers, which micro-batches draw otherwise than a whole batch."""
    return not any(one.drawn for one in held)


def _of_step(step: int, held: dict[int, Pipeline]) -> Iterator[Violation]:
    lead = held[min(held)]
    rows = [row for one in held.values() for row in one.gradients]
    if not rows or not is_settled(list(held.values())):
        return
    place = next(((one.file, one.line) for one in held.values() if one.file), ("", 0))
    kinds = {t.kind for one in held.values() for t in one.terms}
    scale = next((abs(t.scale) for one in held.values() for t in one.terms), 1.0)
    whole = [row for row in rows if row[2] <= _RIGHT]
    odd = [row[0] for row in rows if row[2] > _RIGHT]
    first = whole[0][1] if whole else []
    alike = all(abs(a - b) <= NEAR * max(1.0, abs(b)) for row in whole for a, b in zip(row[1], first, strict=True))
    if whole and not odd and alike and max(first) - min(first) <= NEAR * max(map(abs, first)):
        yield from _common_factor(step, held, first[0], scale, kinds, place)
    elif whole and not odd and alike:
        shares = ", ".join(f"pass {n + 1} counts {s / max(first):.3g} times" for n, s in enumerate(first))
        divides = " The schedule divides all gradients by the micro-batches in each pass." if lead.scales else ""
        yield _violation(
            "passes-weigh-differently", step, held, place,
            f"The {lead.passes} passes of the pipeline do not count alike: {shares}, as much as the last.",
            f"Solved for at step {step} from the gradients of whole batches.{divides}",
            "Accumulate with `scale_grads=False`, and divide the loss by the number of micro-batches of all passes.",
        )  # fmt: skip
    else:
        names = odd or [row[0] for row in whole if abs(row[1][0] - 1) > NEAR]
        if not names:
            return
        share = next((row[1][0] for row in whole if row[0] == names[0]), 0.0)
        of_passes = next((row[1] for row in whole if row[0] == names[0]), [])
        lost = [n + 1 for n, one in enumerate(of_passes) if abs(one) < NEAR]
        size = f"{factor_words(share)} that of the whole batch" if share else "not that of the whole batch"
        if lost:
            size = f"without that of pass {ranges(tuple(lost), 4)}"
        more = f", and {len(names) - 1} more differ" if len(names) > 1 else ""
        stage, _, name = names[0].partition(".")
        yield _violation(
            "stage-gradient-differs", step, held, place,
            f"The gradient of {name} in stage {stage} is {size}{more}.",
            f"Recomputed at step {step} with whole batches, stage after stage.",
            "Look at hooks and scaling of these parameters, and at losses that mean over uneven micro-batches.",
            sure=bool(share),
        )  # fmt: skip
    yield from _stage_factors(step, held, place)


def _common_factor(  # noqa: PLR0917
    step: int, held: dict[int, Pipeline], factor: float, scale: float, kinds: set[str], place: tuple[str, int]
) -> Iterator[Violation]:
    lead = held[min(held)]
    if abs(factor - 1) <= NEAR or (kinds == {"mean"} and abs(factor * scale * lead.passes - 1) <= NEAR):
        return
    if abs(factor - lead.micro) <= NEAR * lead.micro and kinds != {"sum"}:
        why = "the gradients of the micro-batches are summed, and the loss of each is a mean"
        fix = "Let the schedule divide them (`scale_grads=True`), or divide the loss by the number of micro-batches."
    elif abs(factor * lead.micro - 1) <= NEAR and kinds == {"sum"}:
        why = "the schedule divides them by the number of micro-batches, though the loss is a sum"
        fix = "Create the schedule with `scale_grads=False` if the loss is a sum."
    else:
        why, fix = "in all stages", "Look for what scales all gradients after the passes."
    yield _violation(
        "stage-scaled", step, held, place,
        f"Every gradient of the pipeline is {factor_words(factor)} that of the whole batch: {why}.",
        f"Recomputed at step {step} with whole batches; the schedule has {lead.micro} micro-batches.",
        fix,
    )  # fmt: skip


def _stage_factors(step: int, held: dict[int, Pipeline], place: tuple[str, int]) -> Iterator[Violation]:
    """Yield stages whose gradients are multiplied by numbers of their own between the passes and the step."""
    factors = {rank: one.between[0] for rank, one in held.items() if one.between}
    if len(factors) > 1 and max(factors.values()) - min(factors.values()) > NEAR * max(map(abs, factors.values())):
        words = ", ".join(f"rank {r} by {f:.4g}" for r, f in sorted(factors.items())[:4])
        yield _violation(
            "changed-after-reduction", step, held, place,
            f"Before the step each stage scales its gradients by another number: {words}.",
            "One process clips by the norm of all parameters together.",
            "Sum the squared norms over all stages before the gradients are clipped.",
        )  # fmt: skip


def _violation(  # noqa: PLR0917
    name: str, step: int, held: dict[int, Pipeline], place: tuple[str, int], cause: str, means: str, fix: str,
    *, sure: bool = True,
) -> Violation:  # fmt: skip
    return Violation(
        invariant=f"parity-{name}", ranks=tuple(sorted(held)), step=step, file=place[0], line=place[1],
        symptom="D.2.4", means=means, cause=cause, fix=fix, sure=sure,
    )  # fmt: skip


def note_of(rows: Sequence[Row], *, agrees: bool) -> str:
    """Return the sentence on what was compared, "" if no pipeline was."""
    held = [row for row in rows if row.pipeline is not None]
    known = [row.pipeline for row in held if row.pipeline is not None]
    if not known:
        return ""
    steps = sorted({row.step for row in held})
    text = f"parity: step{'s' * (len(steps) > 1)} {ranges(tuple(steps), 8)} of a pipeline of {known[0].of} stages"
    if not is_settled(known):
        return f"{text}: not compared, its modules draw random numbers, which micro-batches draw otherwise"
    compared = [row for one in known for row in one.gradients]
    if agrees and compared:
        worst = max(row[2] for row in compared)
        text += (
            f" {'are those' if len(steps) > 1 else 'is that'} of whole batches on one process: "
            f"{len({row[0] for row in compared})} gradients agree to {worst:.1e}"
        )
    return text
