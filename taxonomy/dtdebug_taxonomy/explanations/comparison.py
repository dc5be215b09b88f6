"""Comparisons that the user made: releases, an update, a change, a device, a condition."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, Reason, explanation_for
from dtdebug_taxonomy.inference.next_step import BISECT, Next
from dtdebug_taxonomy.text.comparisons import Condition, Regression
from dtdebug_taxonomy.text.contrasts import UNNAMED, Contrast

COMPARED = "what-makes-the-difference"
"""Cause of an explanation that knows only the condition under which it works."""
_COUNTED = "number-makes-the-difference"
"""The same for a number of devices, hosts or processes, of which the ordinary next step tells more."""
_RELEASES = "release-changed"
_SLOW = "D.2.3"
"""Symptom of which a number of devices is no factor, but the complaint."""
_UNITS = {"GPU": "GPUs", "node": "nodes", "process": "processes", "worker": "workers"}
_COMPARED = 0.5
"""Probability of what differs between two runs."""


def explain_releases(context: Context) -> Iterator[Explanation]:
    """Yield the release, update or change since which it fails, if the one before is known to work."""
    pair = context.incident.prose.regression
    if pair is not None and pair.good:
        yield _of_regression(pair, context.symptom)


def explain_stated_release(context: Context) -> Iterator[Explanation]:
    """Yield a pair of releases that neighbouring statements, a table or two lists of settings show to differ."""
    found = next((c for c in context.incident.contrasts if c.kind == "release"), None)
    if found is not None and context.incident.prose.regression is None:
        yield _of_factor(found, context.symptom)


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


def explain_count(context: Context) -> Iterator[Explanation]:
    """Yield the number of devices, hosts or processes with which it works, if nothing else is known of it."""
    found = next((c for c in context.incident.contrasts if c.kind == "count"), None)
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
    return BISECT if found.cause == COMPARED else None


_DIFFERS = "What differs: "


def _sentence(c: Contrast) -> str:
    """Return a contrast as words: which value works, and which does not."""
    if not c.good:
        return f"it fails {c.bad}" if c.bad.startswith("only ") else f"{_named(c, c.bad)} give different results"
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
    bad = _named(c, c.bad) if "=" in _named(c, c.bad) else c.bad
    return f"{_named(c, c.good)} works, {bad} does not"


def _named(c: Contrast, value: str) -> str:
    """Return a value with its factor; an alternative is a name itself."""
    if c.kind == "choice":
        return value
    if c.kind == "option" and c.factor.isidentifier() and (c.factor.isupper() or "_" in c.factor):
        return f"{c.factor}={value}"
    return f"release {value}" if c.factor == UNNAMED else f"{c.factor} {value}"


def _of_factor(c: Contrast, symptom: str, second: Contrast | None = None) -> Explanation:
    """Return what differs, the good side as the first fix."""
    good = _good_side(c)
    more = f"; {_sentence(second)}" if second is not None else ""
    release = c.kind == "release"
    fix = f"Go on {good} for now. Then look at what it changes: its options, the code behind it, its release notes."
    if release:
        fix = (
            f"Go back to {_named(c, c.good)} for now. Then read the release notes from there to {c.bad}, and the issues"
            " with your message: a later release may have the fix."
        )
    elif not c.good:
        fix = "Take the one that gives the values of one device, for now. Then look at what the other does differently."
        if c.bad.startswith("only "):
            fix = "Avoid that for now. Then change one part of it at a time, until one alone decides."
    elif c.kind == "count":
        fix = f"Go on {good} for now. Then look at what only several have: their exchange, and what each rank does."
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


def _good_side(c: Contrast) -> str:
    """Return how it works: `with fp32`, `without compile`."""
    if c.kind == "part" and c.bad:
        return f"{'without' if c.good == 'off' else 'with'} {c.factor}"
    if c.kind == "count":
        return f"with {c.good} {c.factor if c.good == '1' else _UNITS[c.factor]}"
    if c.kind == "place":
        return f"on {c.good}"
    return c.good if not c.bad else f"with {_named(c, c.good)}"


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
    if not counted and (condition := context.incident.prose.condition) is not None:
        yield _of_contrast(condition, context.symptom)


def _stated_reason(evidence: str, means: str, pair: Regression | Condition) -> Reason:
    return Reason(evidence=evidence, means=means, source="said", weight=1.5, line=pair.line, words=pair.words)


def _of_regression(pair: Regression, symptom: str) -> Explanation:
    """Return the advice to go back and see what changed: a release, an update, a commit."""
    if not pair.package:  # a commit or pull request, or an update
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
