"""Rules for labs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dtdebug_taxonomy.knowledge.labs import AFTER, BEFORE, FILE, LABS, Lab, lab_diff, load_labs
from dtdebug_taxonomy.knowledge.loader import Knowledge

LINES = 16
"""Maximum number of lines that a fix changes, so that it can be read at a glance."""
_RECORDED = "before.txt"


def lab_problems(knowledge: Knowledge) -> Iterator[str]:
    """Yield every broken rule, as `file: what to do`."""
    for folder in sorted(p for p in LABS.iterdir() if p.is_dir() and p.name != "__pycache__"):
        yield from (f"labs/{folder.name}: {p}" for p in _files(folder))
    for lab in load_labs().values():
        yield from (f"labs/{lab.id}/{FILE}: {p}" for p in _record(knowledge, lab))


def _files(folder: Path) -> Iterator[str]:
    missing = [name for name in (BEFORE, AFTER, FILE) if not (folder / name).is_file()]
    if missing:
        yield f"missing: {', '.join(missing)}"
        return
    changed = [line for line in lab_diff(folder.name).splitlines()[2:] if line[:1] in ("+", "-")]
    if not 0 < len(changed) <= LINES:
        yield f"the fix changes {len(changed)} lines; 1 to {LINES} are good to read"


def _record(knowledge: Knowledge, lab: Lab) -> Iterator[str]:
    symptom = knowledge.symptoms.get(lab.symptom)
    if symptom is None:
        yield f"unknown symptom {lab.symptom!r}"
    else:
        if lab.cause not in {c.id for c in symptom.cause}:
            yield f"{lab.symptom} has no cause {lab.cause!r}"
        if lab.stage != symptom.stage:
            yield f"stage {lab.stage!r}; that of {lab.symptom} is {symptom.stage!r}"
        elsewhere = [c.id for c in symptom.cause if c.lab == lab.id and c.id != lab.cause]
        if elsewhere:
            yield f"is the lab of {', '.join(elsewhere)}, too"
    if lab.culprit is not None and not 0 <= lab.culprit < lab.ranks:
        yield f"culprit {lab.culprit} is none of {lab.ranks} ranks"
    if not lab.works.strip():
        yield "works: the text that tells that the work is done"
    if not any("{script" in word or "{folder" in word for word in lab.command):
        yield "command: names neither {script} nor {folder}"
    if lab.recorded != (lab.folder / _RECORDED).is_file():
        yield f"recorded = {str(lab.recorded).lower()}, but {_RECORDED} is {'missing' if lab.recorded else 'there'}"
    if lab.violates and lab.violates not in {name for e in knowledge.evidence.values() for name in e.watch}:
        yield f"violates: nothing is known by the name {lab.violates!r}"
    if bool(lab.violates) != bool(lab.mark) or lab.mark not in lab.source(BEFORE):
        yield "mark: the text of a line of before.py, where something is violated"
    if lab.title.endswith("."):
        yield "title: without '.'"
    yield from (
        f"ends in neither '.' nor '?': {text!r}" for text in (*lab.hints, lab.why) if text[-1:] not in (".", "?")
    )
