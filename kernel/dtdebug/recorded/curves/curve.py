"""Types of a curve, and what a column or printed name means: loss, gradient norm, learning rate, step time."""

from __future__ import annotations

import math
import re
from array import array
from functools import lru_cache
from typing import Literal, NamedTuple

Kind = Literal[
    "loss", "part", "grad_norm", "lr", "step_time", "throughput", "loss_scale", "batch_size", "skipped", "metric",
    "step", "epoch",
]  # fmt: skip
"""Kinds of values; `part` is a loss that need not fall, such as one term of a sum or that of a discriminator."""


class Name(NamedTuple):
    """Meaning of a name that was printed with a value."""

    kind: Kind
    name: str
    held_out: bool = False
    """True for values of an evaluation, not of the training."""
    factor: float = 1.0
    """Factor to the unit in which the kind is judged: seconds for times."""


_EVALUATION = frozenset({"eval", "evaluation", "val", "valid", "validation", "test", "dev", "heldout"})
_WHOLE_LOSS = frozenset(
    "loss lm train training total reduced avg average mean global running step epoch batch ce cross entropy nll mlm"
    " value tr smoothed local current last iter perplexity".split()
)
_STEPS = frozenset(
    "step|steps|iteration|iterations|iter|iters|it|itr|global step|num updates|update|updates|completed step|batch idx"
    "|step num|optimizer step|trainer global step|train global step|train step|iter num|batch|time batch"
    "|train time batch|samples count|train iteration|training step".split("|")
)
_EPOCHS = frozenset(("epoch", "epochs", "epoch num", "train epoch"))
_TIME_WORDS = frozenset(("time", "timing", "elapsed", "seconds", "duration", "latency", "dt"))
_STEP_WORDS = frozenset(("step", "iteration", "iter", "batch", "steps"))
_OTHER_TIMES = frozenset(
    "data remaining eta left total val eval wait fetch load io epoch forward backward optimizer loader checkpoint save"
    " wall runtime since start tokens samples per2 current end begin cumulative sample".split()
)
_EXACT_TIMES = frozenset(("time", "seconds", "dt", "sec", "time s", "batch time", "batch t", "iter time", "step time"))
_RATE = re.compile(
    r"(?:tokens?|toks?|samples?|images?|imgs?|seqs?|sequences?|words|frames|examples|items|steps?|batches|iter(?:ation)?s?)"
    r" (?:per )?(?:s|sec|second)\b"
)
_RATES = frozenset(("tps", "wps", "ups", "throughput", "speed", "samplessec", "it s"))
_QUALITY = frozenset("acc accuracy acc1 top1 f1 bleu map miou iou auc rouge wer ppl perplexity precision recall".split())
_SPLIT = re.compile(r"[^a-z0-9]+")
_MILLI = re.compile(r"\bms\b|milli|\(ms\)")


@lru_cache(maxsize=4096)
def meaning(text: str) -> Name | None:
    """Return what a printed name means; None if it is of no kind that is judged."""
    shown = " ".join(text.replace("\\t", " ").strip(" \t\"'[](){}<>,;|*-").split())
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
    if "scale" in found or "scaler" in found:
        return Name("loss_scale", shown) if found & {"loss", "grad", "scaler", "amp"} else None
    losses = [word for word in words if word.endswith("loss")]
    if losses:
        if found & {"best", "min", "max", "std", "lowest", "weight", "coef", "lambda", "avglossscale"}:
            return None
        whole = found - _EVALUATION <= _WHOLE_LOSS or (len(words) == 1 and words[0] in ("trainloss", "totalloss"))
        return Name("loss" if whole else "part", shown, held_out)
    if ("norm" in found and found & {"grad", "gradient", "gradients", "total"}) or plain in ("gnorm", "gradnorm", "norm"):
        return Name("grad_norm", shown)
    if plain in ("lr", "learning rate", "lrate", "train lr", "train learning rate", "lr abs") or re.fullmatch(
        r"(?:optimizer )?lr (?:adamw?|sgd|lamb)(?: pg1)?", plain
    ):
        return Name("lr", shown)
    if "skipped" in found and found & {"iterations", "steps"}:
        return Name("skipped", shown)
    if plain in ("global batch size", "batch size", "bsz"):
        return Name("batch_size", shown)
    if _RATE.search(plain) or plain in _RATES or found & {"throughput", "samplespersec", "currsamplespersec"}:
        if "flop" in plain or "flops" in plain or "avg" in plain or held_out or "runningavgsamplespersec" in found:
            return None
        return Name("throughput", shown)
    if (found & _TIME_WORDS and found & _STEP_WORDS and not found & _OTHER_TIMES) or plain in _EXACT_TIMES:
        return Name("step_time", shown, factor=1e-3 if _MILLI.search(low) else 1.0)
    if found & _QUALITY:
        return Name("metric", shown, held_out)
    return None


class Owner(NamedTuple):
    """Where a curve comes from."""

    file: str
    rank: int | None = None
    run: str = ""
    """Name of the run, where a file holds several."""


class Curve:
    """Values of one name over the steps of one process or run."""

    __slots__ = ("attempts", "epochs", "exact", "lines", "mixed", "name", "owner", "steps", "total", "unit", "values")

    def __init__(self, owner: Owner, name: Name, unit: str = "step") -> None:
        self.owner, self.name, self.unit = owner, name, unit
        self.steps, self.values, self.epochs = array("d"), array("d"), array("d")
        self.lines = array("q")
        self.attempts: list[int] = [0]
        """Places at which the counter was set back: a restart or a resumed attempt begins there."""
        self.mixed = False
        """True if several counters run through each other: the values are not of one training."""
        self.total = 0.0
        """Steps of an epoch or of the whole, where the counter names them."""
        self.exact = True
        """False if a zero may be a rounded number."""

    def __len__(self) -> int:
        return len(self.values)

    @property
    def kind(self) -> Kind:
        """Kind of the values."""
        return self.name.kind

    def label(self, place: int) -> str:
        """Return the step of a value in words."""
        step = self.steps[place]
        number = f"{step:,.0f}" if step == int(step) else f"{step:g}"
        epoch = self.epochs[place] if self.epochs else -1.0
        if self.unit == "epoch":
            return f"epoch {step:g}"
        words = f"{self.unit} {number}"
        return f"epoch {epoch:g} {words}" if epoch >= 0 else words

    def finite(self, begin: int = 0, end: int | None = None) -> tuple[list[int], list[float]]:
        """Return the places and values that are finite."""
        stop = len(self.values) if end is None else end
        places = [i for i in range(begin, stop) if math.isfinite(self.values[i])]
        return places, [self.values[i] for i in places]

    def thinned(self, most: int) -> Curve:
        """Return the curve with each n-th value, if it has more than `most`."""
        every = -(-len(self.values) // most)
        if every <= 1:
            return self
        thin = Curve(self.owner, self.name, self.unit)
        thin.steps, thin.values, thin.lines = self.steps[::every], self.values[::every], self.lines[::every]
        thin.epochs, thin.total, thin.mixed, thin.exact = self.epochs[::every], self.total, self.mixed, self.exact
        thin.attempts = sorted({-(-begin // every) for begin in self.attempts if -(-begin // every) < len(thin)})
        return thin

    def spans(self) -> list[tuple[int, int]]:
        """Return begin and end of each attempt."""
        return list(zip(self.attempts, [*self.attempts[1:], len(self.values)], strict=True))


class Curves(NamedTuple):
    """Curves of some files, and what could not be read."""

    curves: list[Curve]
    notes: list[str]


def spell(value: float) -> str:
    """Return a value with four digits."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    return f"{value:.4g}" if abs(value) < 1e5 or abs(value) >= 1e15 else f"{value:,.0f}"
