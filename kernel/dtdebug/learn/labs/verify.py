"""Verifies a lab: `before.py` fails and is diagnosed as declared, `after.py` works without a finding."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import msgspec

from dtdebug.learn.labs.execute import LabRun, execute
from dtdebug.privacy.boundary import diagnose
from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis
from dtdebug_taxonomy.explanations.model import Explanation
from dtdebug_taxonomy.knowledge.labs import AFTER, BEFORE, FILE, Lab
from dtdebug_taxonomy.knowledge.loader import load

_AMONG = 2
"""Maximum position of the cause among the pieces of advice."""
_SHOWN = 2_000


class HalfResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one half of a lab."""

    file: str
    ok: bool
    seconds: float
    text: str
    """Result in one line."""
    output: str = ""
    """End of the output if the half did not do what it should."""


def verify(lab: Lab) -> tuple[HalfResult, HalfResult]:
    """Run both scripts, each in a separate folder."""
    return _before(lab, _run(lab, BEFORE)), _after(lab, _run(lab, AFTER))


def lay_out(lab: Lab, script: str, folder: Path) -> Path:
    """Copy a lab's script and the files next to it into a folder; return the script's new path.

    Raises:
        FileExistsError: a file of one of these names exists there; it is left unchanged.
        OSError: they can't be written.

    """
    names = {script: lab.script} | {
        f.name: f.name for f in lab.folder.iterdir() if f.is_file() and f.name not in (BEFORE, AFTER, FILE)
    }
    for name in names.values():
        if (folder / name).exists():
            raise FileExistsError(17, "exists already", str(folder / name))
    folder.mkdir(parents=True, exist_ok=True)
    for source, name in names.items():
        shutil.copyfile(lab.folder / source, folder / name)
    return folder / lab.script


def diagnosis_of_run(lab: Lab, ran: LabRun) -> Diagnosis:
    """Return the diagnosis of a run, with a user's description if the output alone does not show the fault."""
    if ran.found is not None and ran.found.diagnosis is not None and not lab.says:
        return ran.found.diagnosis
    return diagnose(load(), ran.snapshot(lab))


def _run(lab: Lab, script: str) -> LabRun:
    with tempfile.TemporaryDirectory(prefix="dtdebug-lab-") as folder:
        return execute(lab, lay_out(lab, script, Path(folder)))


def _before(lab: Lab, ran: LabRun) -> HalfResult:
    if ran.works(lab):
        return _bad(BEFORE, ran, "works, although it should fail")
    if ran.status is None:
        return _bad(BEFORE, ran, f"did not end within {lab.limit_s:g} s")
    diagnosis = diagnosis_of_run(lab, ran)
    first = diagnosis.symptoms[0]
    causes = [f"{a.cause} ({a.symptom})" for a in _causes(diagnosis)[:_AMONG]]
    wrong = []
    if lab.says and ran.status and load().symptoms[lab.symptom].kind == "abnormal-behaviour":
        wrong.append(f"ended with {ran.status}: it should end without an error, and only its user see what is wrong")
    if not diagnosis.recognised and not lab.says:
        wrong.append("nothing is said of it: it is not taken for a fault of distributed training")
    if diagnosis.verdict in ("unknown", "echo"):
        wrong.append(f"the diagnosis is {diagnosis.verdict}")
    if first.code != lab.symptom:
        wrong.append(f"symptom {first.code} ({first.probability:.2f}), expected {lab.symptom}")
    is_open = lab.open and not causes and diagnosis.next is not None
    if f"{lab.cause} ({lab.symptom})" not in causes and not is_open:
        wrong.append(f"causes {', '.join(causes) or 'none'}; expected {lab.cause}")
    if lab.violates:
        wrong += _violation_errors(lab, ran)
    if lab.culprit is not None and diagnosis.culprits != (lab.culprit,):
        wrong.append(f"culprits {diagnosis.culprits}, expected {lab.culprit}")
    return _bad(BEFORE, ran, "; ".join(wrong)) if wrong else _good(BEFORE, ran, _diagnosis_line(lab, diagnosis))


def _violation_errors(lab: Lab, ran: LabRun) -> list[str]:
    """Return errors if the watch does not name the lab's violation and its line."""
    lines = lab.source(BEFORE).splitlines()
    named = [v for v in ran.violated if v.invariant == lab.violates]
    if not named:
        return [f"the watch names {', '.join(v.invariant for v in ran.violated) or 'nothing'}, not {lab.violates}"]
    places = [lines[v.line - 1].strip() for v in named if 0 < v.line <= len(lines)]
    if any(lab.mark in place for place in places):
        return []
    return [f"{lab.violates} is placed at {places or 'no line'}, not at {lab.mark!r}"]


def _causes(diagnosis: Diagnosis) -> tuple[Explanation, ...]:
    """Return the advice that a reader sees: the causes, or the guesses if no cause is known."""
    return diagnosis.advice or diagnosis.guesses


def _diagnosis_line(lab: Lab, diagnosis: Diagnosis) -> str:
    place = next((n for n, a in enumerate(_causes(diagnosis), 1) if a.cause == lab.cause), None)
    kind = "advice" if diagnosis.advice else "guess"
    cause = "the cause openly not known" if place is None else f"{lab.cause} as {kind} {place}"
    culprit = f", rank {lab.culprit}" if lab.culprit is not None else ""
    how = f"{lab.violates} is named with its line" if lab.violates else "fails"
    return f"{how}; {lab.symptom} ({diagnosis.symptoms[0].probability:.0%}), {cause}{culprit}"


def _after(lab: Lab, ran: LabRun) -> HalfResult:
    if ran.status is None:
        return _bad(AFTER, ran, f"did not end within {lab.limit_s:g} s")
    if ran.status:
        return _bad(AFTER, ran, f"ended with {ran.status}")
    if lab.works not in ran.output:
        return _bad(AFTER, ran, f"did not print {lab.works!r}")
    if ran.violated:
        return _bad(AFTER, ran, f"works, but the watch names {', '.join(v.invariant for v in ran.violated)}")
    verdict = ran.found.verdict if ran.found is not None else None
    if (ran.said and not lab.violates) or (
        verdict is not None and verdict.kind != "none"
    ):  # "none": it looked once and printed nothing
        return _bad(AFTER, ran, f"works, but dtdebug says: {ran.said or (verdict and verdict.summary)}")
    said = diagnose(load(), ran.snapshot(msgspec.structs.replace(lab, says="")))
    if said.recognised:
        return _bad(AFTER, ran, f"works, but its output is taken for {said.symptoms[0].code}")
    return _good(AFTER, ran, "works, nothing is said")


def _good(file: str, ran: LabRun, text: str) -> HalfResult:
    return HalfResult(file=file, ok=True, seconds=round(ran.seconds, 1), text=text)


def _bad(file: str, ran: LabRun, text: str) -> HalfResult:
    return HalfResult(file=file, ok=False, seconds=round(ran.seconds, 1), text=text, output=ran.output[-_SHOWN:])
