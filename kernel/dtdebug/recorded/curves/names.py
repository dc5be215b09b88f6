"""Meanings of printed names, columns and tags: loss, gradient norm, learning rate, throughput, time of a step."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple

Kind = Literal[
    "loss", "part", "grad_norm", "lr", "step_time", "throughput", "loss_scale", "batch_size", "skipped", "metric",
    "memory", "step", "epoch", "count", "zero",
]  # fmt: skip
"""Kinds of values; `part` is a loss that need not fall, such as one term of a sum or that of a discriminator, `count` a
total of what was read so far, and `zero` one of an unknown name, which is 0."""


class Name(NamedTuple):
    """Meaning of a name that was printed with a value."""

    kind: Kind
    name: str
    held_out: bool = False
    """True for values of an evaluation, not of the training."""
    factor: float = 1.0
    """Factor to the unit in which the kind is judged: seconds for times."""
    unit: str = ""
    """Unit as it is shown; "" for a kind whose unit is known, and where none is printed."""


_EVALUATION = frozenset({"eval", "evaluation", "val", "valid", "validation", "test", "dev", "heldout"})
_WHOLE_LOSS = frozenset(
    [
        "loss",
        "lm",
        "train",
        "training",
        "total",
        "reduced",
        "avg",
        "average",
        "mean",
        "global",
        "running",
        "step",
        "epoch",
        "batch",
        "ce",
        "cross",
        "entropy",
        "nll",
        "mlm",
        "value",
        "tr",
        "smoothed",
        "local",
        "current",
        "last",
        "iter",
        "perplexity",
    ]
)
_STEPS = frozenset(
    [
        "step",
        "steps",
        "iteration",
        "iterations",
        "iter",
        "iters",
        "it",
        "itr",
        "global step",
        "num updates",
        "update",
        "updates",
        "completed step",
        "batch idx",
        "step num",
        "optimizer step",
        "trainer global step",
        "train global step",
        "train step",
        "iter num",
        "batch",
        "time batch",
        "train time batch",
        "samples count",
        "train iteration",
        "training step",
    ]
)
_EPOCHS = frozenset(("epoch", "epochs", "epoch num", "train epoch"))
_TIME_WORDS = frozenset(("time", "timing", "elapsed", "seconds", "duration", "latency", "dt"))
_STEP_WORDS = frozenset(("step", "iteration", "iter", "batch", "steps"))
_OTHER_TIMES = frozenset(
    [
        "data",
        "remaining",
        "eta",
        "left",
        "total",
        "val",
        "eval",
        "wait",
        "fetch",
        "load",
        "io",
        "epoch",
        "forward",
        "backward",
        "optimizer",
        "loader",
        "checkpoint",
        "save",
        "wall",
        "runtime",
        "since",
        "start",
        "tokens",
        "samples",
        "per2",
        "current",
        "end",
        "begin",
        "cumulative",
        "sample",
    ]
)
_EXACT_TIMES = frozenset(("time", "seconds", "dt", "sec", "time s", "batch time", "batch t", "iter time", "step time"))
_RATE = re.compile(
    r"(?:tokens?|toks?|samples?|images?|imgs?|seqs?|sequences?|words|frames|examples|items|steps?|batches|iter(?:ation)?s?)"
    r" (?:per )?(?:s|sec|second)\b"
)
_RATES = frozenset(("tps", "wps", "ups", "throughput", "speed", "samplessec", "it s"))
_QUALITY = frozenset(
    [
        "acc",
        "accuracy",
        "acc1",
        "top1",
        "f1",
        "bleu",
        "map",
        "miou",
        "iou",
        "auc",
        "rouge",
        "wer",
        "ppl",
        "perplexity",
        "precision",
        "recall",
    ]
)
_MEMORY = frozenset(("rss", "uss", "pss", "mem", "memory", "vram", "ram"))
_NO_MEMORY = frozenset(
    [
        "free",
        "available",
        "avail",
        "total",
        "limit",
        "capacity",
        "percent",
        "pct",
        "util",
        "utilization",
        "fraction",
        "cap",
        "bandwidth",
        "size",
        "fragmentation",
        "saved",
        "requested",
        "efficiency",
        "ratio",
        "loss",
    ]
)
"""Words of what falls while memory is taken, of what does not change, and of shares."""
_COUNTED = frozenset(("samples", "tokens", "sequences", "examples"))
_SO_FAR = frozenset(("consumed", "seen", "processed", "trained", "cumulative", "num", "global", "total", "train", "n"))
_SPLIT = re.compile(r"[^a-z0-9]+")
_NO_LOSS = frozenset(("best", "min", "max", "std", "lowest", "weight", "coef", "lambda", "avglossscale"))
_NORMS = frozenset(("gnorm", "gradnorm", "norm"))
_NO_RATE = frozenset(("min", "max", "base", "init", "initial", "peak", "final", "end", "warmup", "decay", "gap"))
"""Words of a learning rate that is a setting, not that of a step."""
_MILLI = re.compile(r"\bms\b|milli|\(ms\)")


@lru_cache(maxsize=4096)
def meaning(text: str) -> Name | None:
    """Return what a printed name means; None if it is of no kind that is judged."""
    shown = " ".join(text.replace("\\t", " ").strip(" \t\"'[](){}<>,;|*-").split())
    shown += ")" * (shown.count("(") - shown.count(")"))  # that of a unit: `elapsed time per iteration (ms)`
    # `trainLoss` is two words, `LR` one
    low = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", shown).lower()
    words = [word for word in _SPLIT.split(low) if word]
    if not words or len(words) > 8 or len(shown) > 60:
        return None
    plain, found = " ".join(words), frozenset(words)
    held_out = bool(found & _EVALUATION)
    if plain in _STEPS:
        return Name("step", shown)
    if plain in _EPOCHS:
        return Name("epoch", shown)
    rates = {word.rstrip("0123456789") for word in words}
    if (rates & {"lr", "lrate"} or rates >= {"learning", "rate"}) and not rates & _NO_RATE:
        return Name("lr", shown)
    if "scale" in found or "scaler" in found:
        return Name("loss_scale", shown) if found & {"loss", "grad", "scaler", "amp"} else None
    if any(word.endswith("loss") for word in words):
        if found & _NO_LOSS:
            return None
        whole = found - _EVALUATION <= _WHOLE_LOSS or plain in ("trainloss", "totalloss")
        return Name("loss" if whole else "part", shown, held_out)
    if found & _MEMORY:
        return None if found & _NO_MEMORY else Name("memory", shown)
    if found & _COUNTED and found <= _COUNTED | _SO_FAR:
        return Name("count", shown)
    kind = _of_optimizer(plain, found)
    return Name(kind, shown) if kind is not None else _of_pace(low, plain, found, shown)


def _of_optimizer(plain: str, found: frozenset[str]) -> Kind | None:
    if ("norm" in found and found & {"grad", "gradient", "gradients", "total"}) or plain in _NORMS:
        return "grad_norm"
    if "skipped" in found and found & {"iterations", "steps"}:
        return "skipped"
    return "batch_size" if plain in ("global batch size", "batch size", "bsz") else None


def _of_pace(low: str, plain: str, found: frozenset[str], shown: str) -> Name | None:
    """Return the meaning of a time, a throughput or a measure of quality."""
    held_out = bool(found & _EVALUATION)
    if _RATE.search(plain) or plain in _RATES or found & {"throughput", "samplespersec", "currsamplespersec"}:
        if "flop" in plain or "flops" in plain or "avg" in plain or held_out or "runningavgsamplespersec" in found:
            return None
        return Name("throughput", shown)
    if (found & _TIME_WORDS and found & _STEP_WORDS and not found & _OTHER_TIMES) or plain in _EXACT_TIMES:
        return Name("step_time", shown, factor=1e-3 if _MILLI.search(low) else 1.0)
    if found & _QUALITY:
        return Name("metric", shown, held_out)
    return None
