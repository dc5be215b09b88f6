"""Joins what the ranks have found: where the first value that is not finite arose, and on which of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from dtdebug.experiments.nonfinite.record_types import Found, Origin
from dtdebug.experiments.nonfinite.source import operation_line
from dtdebug_taxonomy.model.rank_ranges import ranges, spell
from dtdebug_taxonomy.model.training import Violation

ORIGIN = "first-not-finite"
"""Name of the finding."""
_KIND = {"nan": "NaN", "inf": "infinity"}
_WORDS = {
    "log": "a logarithm", "div": "a division", "sqrt": "a square root", "rsqrt": "an inverse root",
    "exp": "an exponential", "pow": "a power", "reciprocal": "a division", "softmax": "a softmax",
    "_softmax": "a softmax", "_log_softmax": "a log-softmax", "addmm": "a matrix product", "mm": "a matrix product",
    "bmm": "a matrix product", "native_layer_norm": "a layer norm", "linalg_vector_norm": "a norm",
    "norm": "a norm", "mean": "a mean", "convolution": "a convolution", "mul": "a product", "add": "a sum",
    "sub": "a difference", "cdist": "a distance", "linalgvectornorm": "a norm",
}  # fmt: skip
_FIXES = {
    "log": "Keep its argument above 0: `clamp_min(eps)`, or a function that takes logits.",
    "div": "Keep the divisor away from 0: add an eps, or leave such samples out.",
    "sqrt": "Add a small eps inside the root: its derivative at 0 is infinite.",
    "norm": "Add a small eps: the derivative of a norm at 0 is not defined.",
    "exp": "Subtract the maximum first, or clamp its argument.",
    "softmax": "Give each row at least one value that is not masked, or mask by a large finite number.",
    "loss backward": "Look in the loss for a root, norm, logarithm or division at 0, also behind `torch.where`.",
    "overflow": "Use bfloat16 or float32 there, or scale its inputs down.",
    "weight": "Lower the learning rate, warm up, or clip the gradients: the update before was too large.",
    "input": "Look at these samples: values that are not finite come from the data or its preparation.",
}


_DIVERGED = 1e8
"""Size of values from which the training has diverged before they become infinite."""


def judge(rows: Sequence[Found]) -> tuple[Violation, ...]:
    """Return the first value that is not finite: one finding, or none."""
    seen = [r for r in rows if r.trigger]
    if not seen:
        return ()
    step = min(r.step for r in seen)
    here = sorted((r for r in seen if r.step == step), key=lambda r: r.rank)
    own = [r for r in here if r.found is not None] or [r for r in here if r.trigger == "loss"]
    world = max(r.world for r in rows)
    if not own:
        return (_not_found(here, step, world),)
    first = own[0]
    ranks = tuple(r.rank for r in own)
    alone = len(ranks) == 1 and world > 1
    where = f" on rank {first.rank} alone" if alone else f" on all {world} ranks" if len(ranks) == world > 1 else (
        f" on {spell(ranks, 4)}" if world > 1 else ""
    )  # fmt: skip
    origin = first.found
    if origin is None:
        return (_not_found(here, step, world),)
    cause, fix, place = _of_origin(first, origin)
    means = " ".join(filter(None, (_samples(first, origin), _state(first, origin), _others(here, ranks, world))))
    return (
        Violation(
            invariant=ORIGIN,
            ranks=ranks,
            step=step,
            file=place[0],
            line=place[1],
            symptom="D.2.5",
            means=means,
            cause=f"{cause}{where}, step {step}.",
            fix=fix,
            sure=bool(origin.op or origin.what),
        ),
    )


def _of_origin(found: Found, origin: Origin) -> tuple[str, str, tuple[str, int]]:
    """Return the cause without ranks and step, its fix, and its place."""
    kind = _KIND.get(origin.kind, "value that is not finite")
    place = (origin.file, origin.line)
    if origin.op == "weight":
        norm, rate = found.before
        grown = f" (its gradient had norm {norm:.3g}, the rate was {rate:.3g})" if norm and rate else ""
        return f"The weight {origin.module} is not finite before the step: the update before made it so{grown}", (
            _FIXES["weight"]), place  # fmt: skip
    if origin.op == "input":
        return f"The input of the model has {_article(kind)}", _FIXES["input"], place
    inside = f" in `{origin.module}`" + (f" ({origin.owner})" if origin.owner else "") if origin.module else ""
    op = _WORDS.get(origin.op.rstrip("_"), f"`{origin.op}`" if origin.op else "an operation")
    if origin.where == "loss":
        line = operation_line(origin.file, origin.line, origin.op)
        place = (origin.file, line or origin.line)
        if origin.what:
            return f"The loss becomes not finite in {origin.what}, after the model", _fix(origin), place
        among = f" ({', '.join(origin.among[:4])})" if origin.among else ""
        return f"The model's output is finite, the loss is not: it arises in the loss{among}", _fix(origin), place
    if origin.where == "loss backward":
        text = "The loss is finite, its derivative is not: it arises in the loss's backward pass"
        return text, _FIXES["loss backward"], place
    if origin.where == "backward":
        text = f"The forward pass is finite, the derivative of {op}{inside} is not"
        return text, _fix(origin), place
    if origin.masked:
        return f"{op[0].upper()}{op[1:]}{inside} makes {_article(kind)} of a mask: a row has no value left", _fix(
            origin), place  # fmt: skip
    size = max(abs(origin.largest or 0.0), abs(origin.smallest or 0.0))
    if size > _DIVERGED and origin.dtype != "float16":
        return f"The values have grown to {size:.1e}, and {op}{inside} overflows", _FIXES["weight"], place
    return f"The first {kind} is the result of {op}{inside}", _fix(origin), place


def _article(kind: str) -> str:
    return kind if kind == "NaN" else f"a{'n' if kind[0] in 'aeiou' else ''} {kind}"


def _fix(origin: Origin) -> str:
    op = origin.op.strip("_")
    if op == "sqrt" and origin.where == "forward" and (origin.smallest or 0.0) < 0:
        return "Keep its argument at 0 or above, as with `clamp_min(0)`; find out why it becomes negative."
    if origin.kind == "inf" and (origin.dtype == "float16" or op in {"addmm", "mm", "bmm", "mul", "convolution"}):
        return _FIXES["overflow"]
    for name, text in _FIXES.items():
        if name in op or (name == "log" and op.startswith("log") and "softmax" not in op):
            return text
    return "Look at the range of its inputs, and at the precision in which it runs."


def _state(found: Found, origin: Origin) -> str:
    if origin.op == "input":
        return ""
    if not found.inputs:
        return "The model's input is not finite either."
    text = "The model's input is finite"
    if origin.where == "forward" and origin.dtype and origin.op != "weight":
        low, high = origin.smallest, origin.largest
        if low is not None and high is not None and isfinite(low) and isfinite(high):
            text += f"; what the operation takes is {low:.3g} to {high:.3g} ({origin.dtype})"
    return f"{text}."


def _samples(found: Found, origin: Origin) -> str:
    if not origin.rows:
        return ""
    text = f"It is in sample{'s' * (len(origin.rows) > 1)} {ranges(origin.rows, 8)} of the batch"
    if found.samples:
        text += f", number{'s' * (len(found.samples) > 1)} {', '.join(map(str, found.samples[:8]))} of the data set"
    return f"{text}."


def _others(here: Sequence[Found], ranks: tuple[int, ...], world: int) -> str:
    clean = [r.rank for r in here if r.rank not in ranks and r.found is None]
    if clean:
        device = next((r.device for r in here if r.rank == ranks[0] and r.device not in {"", "cpu"}), "")
        on = f" (on {device} of {here[0].host})" if device else ""
        return f"Own gradients of {spell(tuple(clean), 4)} are finite: it came to them with the reduction{on}."
    if len(ranks) == world > 1:
        return "All ranks have it, so it is not one rank's data or device."
    return ""


def _not_found(here: Sequence[Found], step: int, world: int) -> Violation:
    first = here[0]
    sharded = any(r.sharded for r in here)
    why = (
        "the model is sharded, and a sharded step can't be repeated on one rank"
        if sharded
        else "repeating the step on each rank gives finite values: it arises in the reduction, between backward pass "
        "and step, or not again"
    )
    return Violation(
        invariant=ORIGIN,
        ranks=tuple(r.rank for r in here),
        step=step,
        file=first.at[0] or first.called[0],
        line=first.at[1] or first.called[1],
        symptom="D.2.5",
        means=f"Where it arises is not known: {why}.",
        cause=f"The {first.trigger} of {spell(tuple(r.rank for r in here), 4)} is not finite in step {step}.",
        fix="Look at what changes gradients after the backward pass: scaling, clipping, a hook."
        if not sharded
        else "Run it with one rank, or unsharded on a smaller model, with the same option.",
        sure=False,
    )
