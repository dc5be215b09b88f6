"""Comparisons that the user made: releases, an update, a change, a device, a condition."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, Reason, explanation_for
from dtdebug_taxonomy.inference.next_step import BISECT, Next
from dtdebug_taxonomy.text.comparisons import NEWER_CODE, Condition, Regression
from dtdebug_taxonomy.text.contrasts import UNNAMED, Contrast
from dtdebug_taxonomy.text.lazy_re import lazy_re

COMPARED = "what-makes-the-difference"
"""Cause of an explanation that knows only the condition under which it works."""
_COUNTED = "number-makes-the-difference"
"""The same for a number of devices, hosts or processes, of which the ordinary next step tells more."""
_RELEASES = "release-changed"
_NO_CRASH = lazy_re(r"(?i)\b(?:no|without|not an?) (?:\w{2,10} )?(?:error|exception|hang|crash)\w{0,2}")
SCALED = "value-follows-a-number"
"""Cause of an explanation that knows the number with which a value changes: it is the whole of what is stated."""
_SPLIT = "parallelism-makes-the-difference"
_VALUES = lazy_re(
    r"(?i)(?<![a-z])(?:nan|loss(?:es)?|grad\w{0,6}[ _]?norm|gradients?|accurac\w{1,3}|top[-@]?[15]|rewards?|scores?"
    r"|perplexity|converg\w{1,4}|results?|metrics?|mAP|F1)\b(?!\.backward|\()"
)
"""Words of what a training gives."""
_NAN = lazy_re(r"(?i)\bnan\b")
_CRASH = lazy_re(
    r"(?i)\b(?:hang|hung|hangs|stuck|crash\w{0,3}|error|exception|oom|out of memory|timeout|deadlock|killed)\b"
)
_AMOUNT = lazy_re(r"(?i)accum|\bacc\b|steps?$|batch|world|nproc|n_?gpu|num_(?:proc|gpu|dev|node|work)")
"""Names of options by which a sum of the training grows."""
_CUT = (
    ("context", "the sequence: each rank has a piece of it, and one may have only padding"),
    ("sequence", "the sequence: each rank has a piece of it, and one may have only padding"),
    ("tensor", "the weights of a layer: each rank has some heads and columns"),
    ("pipeline", "the layers: only the last stage has the loss"),
    ("expert", "the experts: each rank gets as many tokens as are routed to it, perhaps none"),
    ("data", "the samples: each rank has its own"),
)
"""Kind of parallelism -> what it cuts."""
_MEMORY = "D.1.2"
_SLOW = "D.2.3"
"""Symptom of which a number of devices is no factor, but the complaint."""
_RESUMES = lazy_re(r"(?i)\b(?:un)?interrupt|\bunbroken|\bresum|\brestart|\bre-?load")
"""Words of a condition that only says that the fault comes with resuming, which is measured as such."""
_UNITS = {"GPU": "GPUs", "node": "nodes", "process": "processes", "worker": "workers"}
_TWO = lazy_re(r"\d{1,5} and \d{1,5}")
_COMPARED = 0.5
"""Probability of what differs between two runs."""


def explain_releases(context: Context) -> Iterator[Explanation]:
    """Yield the release, update or change since which it fails, if the one before is known to work."""
    pair = context.incident.prose.regression
    if pair is not None and pair.good:
        yield _of_regression(pair, context.symptom)


def explain_stated_release(context: Context) -> Iterator[Explanation]:
    """Yield a pair of releases that neighbouring statements, a table or two lists of settings show to differ."""
    rows = context.incident.contrasts
    found = next((c for c in rows if c.kind == "release"), None)
    pair = context.incident.prose.regression
    if found is not None and (pair is None or not pair.good):
        second = next((c for c in rows if c.kind == "option" and (c.start, c.end) == (found.start, found.end)), None)
        yield _of_factor(found, context.symptom, second)


def explain_factor(context: Context) -> Iterator[Explanation]:
    """Yield the option, alternative or place in which a run that works differs from one that does not."""
    yield from _of_kinds(context, {"option", "choice", "place"})


def explain_part(context: Context) -> Iterator[Explanation]:
    """Yield the part with or without which it works; a cause that is stated says more of it."""
    yield from _of_kinds(context, {"part"})


def _of_kinds(context: Context, kinds: frozenset[str] | set[str]) -> Iterator[Explanation]:
    rows = [c for c in context.incident.contrasts if c.kind in kinds]
    if rows:
        second = rows[1] if len(rows) > 1 and rows[1].end > rows[0].start and rows[0].end > rows[1].start else None
        yield _of_factor(rows[0], context.symptom, second)


def explain_scaled(context: Context) -> Iterator[Explanation]:
    """Yield the number of devices, or of steps and the like, with which a value of the training changes."""
    for c in context.incident.contrasts:
        if c.kind in {"count", "option"} and (found := _of_scale(c, context)) is not None:
            yield found
            return


def explain_count(context: Context) -> Iterator[Explanation]:
    """Yield the number of devices, hosts or processes with which it works, if nothing else is known of it."""
    found = next((c for c in context.incident.contrasts if c.kind == "count" and c.good), None)
    if found is not None and context.symptom != _SLOW:
        yield _of_factor(found, context.symptom)


def is_comparison(found: Explanation) -> bool:
    """True if it is what the user's runs differ in, worded as such."""
    return found.title.startswith(_DIFFERS)


def next_after(found: Explanation) -> Next | None:
    """Return the step that narrows a difference down: the releases in between, or one change at a time."""
    if found.cause == _RELEASES:
        return Next(
            kind="measure",
            text="Try the releases in between, the middle one first: each run halves what is left.",
            minutes=BISECT.minutes,
            why="The first release that fails names the release notes to read, and belongs into a report.",
        )
    if found.cause in {SCALED, _SPLIT}:
        return Next(
            kind="measure",
            text="Print samples, tokens, accumulation steps and lr of each rank, in the first step of both runs."
            if found.cause == SCALED
            else "Print the size of each rank's part and how many tokens count there, in the first step of both runs.",
            minutes=BISECT.minutes,
            why="What is 0 on a rank, or has another sum over the ranks in the run that fails, is it.",
        )
    return BISECT if found.cause == COMPARED and found.symptom != _SLOW else None  # what takes the time is measured


_DIFFERS = "What differs: "


def _sentence(c: Contrast) -> str:
    """Return a contrast as words: which value works, and which does not."""
    if not c.good:
        if c.kind == "count":
            both = (f"{n} {c.factor if n == '1' else _UNITS[c.factor]}" for n in c.bad.split(" and "))
            return f"{' and '.join(both)} give different results"
        return f"it fails {c.bad}" if c.bad.startswith("only ") else f"{_name_value(c, c.bad)} give different results"
    if not c.bad:
        return f"it works {c.good}"
    if c.kind == "part":
        works, fails = ("without", "with") if c.good == "off" else ("with", "without")
        return f"{works} {c.factor} it works, {fails} it it does not"
    if c.kind == "place":
        return f"on {c.good} it works, on {c.bad} it does not"
    if c.kind == "count":
        one, many = (_UNITS[c.factor] if n != "1" else c.factor for n in (c.good, c.bad))
        return (
            f"{c.good} {one} works, {c.bad} {many} do not" if c.good == "1" else f"{c.good} {one} work, {c.bad} do not"
        )
    bad = _name_value(c, c.bad) if "=" in _name_value(c, c.bad) or c.bad.startswith(">") else c.bad
    return f"{_name_value(c, c.good)} works, {bad} does not"


def _name_value(c: Contrast, value: str) -> str:
    """Return a value with its factor; an alternative is a name itself."""
    if c.kind == "choice":
        return value
    if c.kind == "option" and c.factor.isidentifier() and (c.factor.isupper() or "_" in c.factor):
        return f"{c.factor} {value}" if value.startswith(">") else f"{c.factor}={value}"
    return f"release {value}" if c.factor == UNNAMED else f"{c.factor} {value}"


def _of_factor(c: Contrast, symptom: str, second: Contrast | None = None) -> Explanation:
    """Return what differs, the good side as the first fix."""
    good = _good_side(c)
    more = f"; {_sentence(second)}" if second is not None else ""
    release = c.kind == "release"
    other = f" or go on {_good_side(second)}" if release and second is not None else ""
    fix = f"Go on {good} for now. Then look at what it changes: its options, the code behind it, its release notes."
    if release:
        fix = (
            f"Go back to {_name_value(c, c.good)}{other} for now. Then read the release notes from there to {c.bad},"
            " and the issues with your message: a later release may have the fix."
        )
    elif not c.good:
        fix = "Take the one that gives the values of one device, for now. Then look at what the other does differently."
        if c.bad.startswith("only "):
            fix = "Avoid that for now. Then change one part of it at a time, until one alone decides."
    elif c.factor == "parallelism":
        return _of_split(c, symptom)
    elif c.kind == "count":
        fix = f"Go on {good} for now. Then look at what only several have: their exchange, and what each rank does."
        if symptom == _MEMORY and c.factor != "node":
            fix = (
                "Look at what a GPU holds only beside others: gradient buckets (DDP), whole blocks that are gathered"
                " (FSDP, ZeRO-3: a module that no wrap policy names is gathered at once), a copy of the model that each"
                " process loads, other ranks on the same GPU."
            )
    return explanation_for(
        symptom,
        f"{_DIFFERS}{_sentence(c)}{more}",
        "Two runs that differ in one thing, one of which works, tell where the fault is.",
        fix,
        _COMPARED,
        Reason(
            evidence=_RELEASES if release else _COUNTED if c.kind == "count" else COMPARED,
            means="You say with what it works and with what it does not.",
            source="said",
            weight=1.5,
            line=c.line,
            words=c.words,
        ),
        pattern="fix framework version" if release else "fix behavior logic",
        effort="reinstall" if release else "rerun",
        named=release,
    )


def _of_scale(c: Contrast, context: Context) -> Explanation | None:
    """Return what grows or shrinks with a number, if a value of the training differs with it."""
    said = c.words if c.good else context.incident.prose.text
    crashed = _CRASH.search(_NO_CRASH.sub("", said))
    if not _VALUES.search(said) or crashed or (c.kind == "option" and not _AMOUNT.search(c.factor)):
        return None
    if c.kind == "option":
        fix = (
            f"Where it grows by the ratio of {c.factor}, it is summed instead of averaged: divide it by {c.factor}, or"
            " by the tokens of all parts, once."
        )
        if not (c.good or _TWO.fullmatch(c.bad)):
            return None
    elif c.good:
        fix = "Look at what is multiplied with or divided by the number of devices: batch, accumulation steps, lr."
        if _NAN.search(c.words):
            fix = (
                "Lower lr and warm it up longer, above all if it grows with the devices. If that is not it, look for a"
                " share of the batch or of the accumulation steps that is rounded down to 0: it gives 0/0."
            )
    else:
        usual, mine = (int(n) for n in c.bad.split(" and ")) if _TWO.fullmatch(c.bad) else (0, 0)
        if not (usual and mine) or max(usual, mine) % min(usual, mine):
            return None
        ratio = max(usual, mine) // min(usual, mine)
        size, change, rate = ("smaller", "multiply", "divide") if mine < usual else ("larger", "divide", "multiply")
        fix = (
            f"With the same batch per device, the global batch is {ratio} times {size} with {mine} than with {usual}:"
            f" {change} the batch per device (or the accumulation steps) by {ratio}, or {rate} lr by {ratio}."
        )
    return _explain_stated(c, context.symptom, _sentence(c), fix, SCALED)


def _of_split(c: Contrast, symptom: str) -> Explanation:
    """Return which kind of parallelism fails, and what it cuts."""
    bad = c.bad.lower()
    cut = next((f" {c.bad[:1].upper()}{c.bad[1:]} cuts {what}." for word, what in _CUT if bad.startswith(word)), "")
    fix = f"Look at what only {c.bad} does.{cut}"
    return _explain_stated(c, symptom, _sentence(c), fix, _SPLIT)


def _explain_stated(c: Contrast, symptom: str, title: str, fix: str, cause: str) -> Explanation:
    return explanation_for(
        symptom,
        f"{_DIFFERS}{title}",
        "Two runs that differ in one thing, one of which works, tell where the fault is.",
        fix,
        _COMPARED,
        Reason(
            evidence=cause,
            means="You say with what it works and with what it does not.",
            source="said",
            weight=1.5,
            line=c.line,
            words=c.words,
        ),
        effort="rerun",
        named=False,
    )


def _good_side(c: Contrast) -> str:
    """Return how it works: `with fp32`, `without compile`."""
    if c.kind == "part" and c.bad:
        return f"{'without' if c.good == 'off' else 'with'} {c.factor}"
    if c.kind == "count":
        return f"with {c.good} {c.factor if c.good == '1' else _UNITS[c.factor]}"
    if c.kind == "place":
        return f"on {c.good}"
    return c.good if not c.bad else f"with {_name_value(c, c.good)}"


def explain_newer_release(context: Context) -> Iterator[Explanation]:
    """Yield the release or change since which it fails, if no release that works is named."""
    pair = context.incident.prose.regression
    if pair is not None and not pair.good:
        yield _of_regression(pair, context.symptom)


def explain_device(context: Context) -> Iterator[Explanation]:
    """Yield the device without which it works."""
    if (device := context.incident.prose.device) is not None:
        yield _of_device(device, context.symptom)


def explain_condition(context: Context) -> Iterator[Explanation]:
    """Yield the condition under which it works; a number of devices is read as such."""
    counted = any(c.kind == "count" for c in context.incident.contrasts)
    condition = context.incident.prose.condition
    if not counted and condition is not None and not _RESUMES.search(condition.words):
        yield _of_contrast(condition, context.symptom)


def _stated_reason(evidence: str, means: str, pair: Regression | Condition) -> Reason:
    return Reason(evidence=evidence, means=means, source="said", weight=1.5, line=pair.line, words=pair.words)


def _of_regression(pair: Regression, symptom: str) -> Explanation:
    """Return the advice to go back and see what changed: a release, an update, a commit."""
    if not pair.package:  # a commit or pull request, or an update
        if pair.bad == NEWER_CODE:
            return _of_newer_code(pair, symptom)
        return _of_update(pair, symptom) if pair.good else _of_change(pair, symptom)
    works = f"{pair.package} {pair.good}" if pair.good else f"the {pair.package} from before"
    return explanation_for(
        symptom,
        f"{_DIFFERS}{works} works, {pair.bad} does not",
        "Nothing else differs between the two runs, as far as is told: a defect of the newer release, or something in"
        " it that wants another setting.",
        f"Go back to {works}, so that you can go on. Then read its release notes from there to {pair.bad}, and its"
        " issues for your message: a later release may have the fix.",
        _COMPARED,
        _stated_reason("release-changed", "The user names a release that works and one that does not.", pair),
        pattern="fix framework version",
        effort="reinstall",
        named=bool(pair.good),
    )


def _of_update(pair: Regression, symptom: str) -> Explanation:
    return explanation_for(
        symptom,
        f"What changed with {pair.bad} does it: before, it worked",
        "Nothing else differs between the two runs, as far as is told.",
        f"Put {pair.good} back, to be sure and so that you can go on. Of a driver, an image or a library look then"
        " which releases of NCCL, its plugins, CUDA and the framework are supported with it, and take such a set.",
        _COMPARED,
        _stated_reason("changed-by-update", "The user names an update since which it fails.", pair),
        pattern="fix dependency version",
        effort="reinstall",
    )


def _of_newer_code(pair: Regression, symptom: str) -> Explanation:
    return explanation_for(
        symptom,
        f"{_DIFFERS}{pair.good} works, {pair.bad} does not",
        "Nothing else differs between the two runs, as far as is told.",
        f"Go back to {pair.good}, so that you can go on. Then see whether a newer commit corrects it; else `git bisect`"
        " between the two names the commit, for a report.",
        _COMPARED,
        _stated_reason("changed-by-update", "The user names an update since which it fails.", pair),
        pattern="fix framework version",
        effort="reinstall",
    )


def _of_change(pair: Regression, symptom: str) -> Explanation:
    return explanation_for(
        symptom,
        f"What {pair.bad} changed does it: before it, it works",
        "Nothing else differs between the two runs, as far as is told.",
        f"Go back to the commit before it, so that you can go on. Then read what {pair.bad} changes for your settings,"
        " and tell its author with both results.",
        _COMPARED,
        _stated_reason("change-named", "The user names a change since which it fails.", pair),
    )


def _of_device(pair: Condition, symptom: str) -> Explanation:
    """Return the advice on one bad device."""
    return explanation_for(
        symptom,
        f"{pair.words} makes the difference: this device, its slot or its link",
        "What fails with one certain device among equal ones is no matter of the program.",
        "Leave it out, so that you can go on (CUDA_VISIBLE_DEVICES). `dmesg | grep -i xid`, `nvidia-smi -q` and"
        " `nvidia-smi topo -m` show its errors and its link; swap two cards, and see whether the fault goes with the"
        " card or stays with the slot.",
        _COMPARED,
        _stated_reason("one-device-makes-the-difference", "The user names the device without which it works.", pair),
        pattern="fix device assignment",
        effort="rerun",
    )


def _of_contrast(pair: Condition, symptom: str) -> Explanation:
    """Return the advice to keep the working condition and see what it changes."""
    return explanation_for(
        symptom,
        f"{_DIFFERS}it works {pair.words}",
        "Two runs that differ in one thing, one of which works, tell where the fault is.",
        f"Go on like that for now ({pair.words}). Then look at what exactly that changes: release notes, options,"
        " the code behind it. `dtdebug isolate` can try such changes; the pair of runs belongs into a report.",
        _COMPARED,
        _stated_reason(COMPARED, "The user says with what it works.", pair),
        effort="rerun",
        named=False,
    )
