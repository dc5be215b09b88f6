"""The short answer as a notebook shows it: lines of cells, verbs of `%dtdebug`, and no line of another program."""

from __future__ import annotations

import re
import sys

from msgspec.structs import replace

from dtdebug.presentation import terminal
from dtdebug.privacy.boundary import mask_snapshot
from dtdebug.privacy.sanitize import clean
from dtdebug.process.cell_text import compiled_text
from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis
from dtdebug_taxonomy.model.answer import Answer, Step
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.presentation.answer import build_answer
from dtdebug_taxonomy.presentation.answer_text import to_short_text

MORE = "more: %dtdebug why"
_CELL = re.compile(r"cell In\[(\d{1,9})\]\Z")
_COMMAND = re.compile(r"dtdebug (?P<verb>[a-z]+)(?: (?P<option>--[a-z-]+))?")
_VERBS = {
    "rehearse --memory": "rehearse --memory --world 8 --gpu 80GiB --yes",
    "attach": "hang", "doctor": "doctor", "isolate": "isolate", "run --watch": "watch",
    **{f"run {option}": f"run {option} --yes" for option in ("--parity", "--nan", "--resume-check")},
}  # fmt: skip
"""Commands of a terminal, and the verbs of `%dtdebug` that do the same for the cells of a notebook."""


def answer_of(d: Diagnosis, snapshot: Snapshot | None = None) -> Answer:
    """Return the short answer to show in this notebook, without secrets."""
    snapshot = mask_snapshot(snapshot) if snapshot is not None else None
    answer = build_answer(d, snapshot, code_at=code_at)
    return replace(answer, next=_in_notebook(answer.next)) if answer.next is not None else answer


def to_cell_text(answer: Answer, *, more: bool = True) -> str:
    """Return the short answer as the plain text of an output; `more`: `%dtdebug why` has the rest."""
    return to_short_text(answer, prefix=terminal.PREFIX, more=MORE if more else "")


def code_at(file: str, line: int) -> str:
    """Return a line of the user's program, stripped: of a cell that ran in this kernel, or of a file that is here."""
    cell = _CELL.match(file)
    if cell is None:
        return terminal.code_at(file, line)
    lines = cell_source(int(cell[1])).splitlines()
    return clean(lines[line - 1].strip()[:200]) if 0 < line <= len(lines) else ""


def cell_source(number: int) -> str:
    """Return the source of a cell that ran in this kernel, by the number that the user sees; "" if there is none."""
    shell = getattr(sys.modules.get("IPython.core.interactiveshell"), "InteractiveShell", None)
    if shell is None or not shell.initialized():
        return ""
    inputs = getattr(getattr(shell.instance(), "history_manager", None), "input_hist_raw", None) or ()
    found = inputs[number] if 0 < number < len(inputs) else ""
    return compiled_text(found) if isinstance(found, str) else ""


def _in_notebook(step: Step) -> Step | None:
    """Return the step with the verb of `%dtdebug` instead of the command, which may need a file or a launcher.

    None for `dtdebug check`: the cells have been checked for this answer.
    """
    found = _COMMAND.match(step.command)
    if found is None:
        return step
    if found["verb"] == "check":
        return None
    verb = _VERBS.get(found["verb"] + (f" {found['option']}" if found["option"] else ""))
    return replace(step, command=f"%dtdebug {verb}" if verb else "")
