"""Comparisons that the user made: releases, an update, a change, a device, a condition."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, Reason, explanation_for
from dtdebug_taxonomy.text.comparisons import Contrast, Regression

COMPARED = "what-makes-the-difference"
"""Cause of an explanation that knows only the condition under which it works."""
_COMPARED = 0.5
"""Probability of what differs between two runs."""


def explain_releases(context: Context) -> Iterator[Explanation]:
    """Yield the release, update or change since which it fails, if the one before is known to work."""
    pair = context.incident.prose.regression
    if pair is not None and pair.good:
        yield _of_regression(pair, context.symptom)


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
    """Yield the condition under which it works."""
    if (contrast := context.incident.prose.contrast) is not None:
        yield _of_contrast(contrast, context.symptom)


def _stated_reason(evidence: str, means: str, pair: Regression | Contrast) -> Reason:
    return Reason(evidence=evidence, means=means, source="said", weight=1.5, line=pair.line, words=pair.words)


def _of_regression(pair: Regression, symptom: str) -> Explanation:
    """Return the advice to go back and see what changed: a release, an update, a commit."""
    if not pair.package:  # a commit or pull request, or an update
        return _of_update(pair, symptom) if pair.good else _of_change(pair, symptom)
    works = f"{pair.package} {pair.good}" if pair.good else f"the {pair.package} from before"
    return explanation_for(
        symptom,
        f"What changed in {pair.package} {pair.bad} does it: with {works} it works",
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


def _of_device(pair: Contrast, symptom: str) -> Explanation:
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


def _of_contrast(pair: Contrast, symptom: str) -> Explanation:
    """Return the advice to keep the working condition and see what it changes."""
    return explanation_for(
        symptom,
        f"The cause is not known yet, but what makes the difference: it works {pair.words}",
        "Two runs that differ in one thing, one of which works, tell where the fault is.",
        f"Go on like that for now ({pair.words}). Then look at what exactly that changes: release notes, options,"
        " the code behind it. `dtdebug isolate` can try such changes; the pair of runs belongs into a report.",
        _COMPARED,
        _stated_reason(COMPARED, "The user says with what it works.", pair),
        effort="rerun",
        named=False,
    )
