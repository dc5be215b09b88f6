"""Hands failed runs and cells over to editors, through `failures.json` in the state directory."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from dtdebug.privacy.sanitize import clean
from dtdebug.storage import state_dir
from dtdebug_taxonomy import named_files

if TYPE_CHECKING:
    from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis
    from dtdebug_taxonomy.model.snapshot import Snapshot
    from dtdebug_taxonomy.presentation.editor_marks import Failures, Mark

_WORDS = 200
"""Maximum characters of a line that are stored to identify it."""


def keep_failure(snapshot: Snapshot, diagnosis: Diagnosis, job: str) -> bool:
    """Store a failure if it is recognised and points at the user's own lines; True if stored."""
    from dtdebug.privacy.boundary import mask_snapshot
    from dtdebug_taxonomy.presentation.editor_marks import FILE, failure_of

    found = failure_of(mask_snapshot(snapshot), diagnosis, job=job, time=time.time())
    if found is None:
        return False
    found = msgspec.structs.replace(found, marks=tuple(_locate_mark(mark) for mark in found.marks))
    return state_dir.save(FILE, _load_failures().with_(found))


def drop_failure(job: str) -> None:
    """Remove the failure of a run or a cell that has succeeded since."""
    from dtdebug_taxonomy.presentation.editor_marks import FILE

    kept = _load_failures()
    if len(kept.without(job).failures) < len(kept.failures):
        state_dir.save(FILE, kept.without(job))


def _load_failures() -> Failures:
    from dtdebug_taxonomy.presentation.editor_marks import FILE, VERSION, Failures

    kept = state_dir.load(FILE, Failures)
    return kept if kept is not None and kept.v == VERSION else Failures()


def _locate_mark(mark: Mark) -> Mark:
    """Add absolute path and line text, so that the mark survives edits of the file."""
    if mark.cell:
        return mark
    path = Path(mark.file).absolute()
    words = mark.words or named_files.source_line(path, mark.line)
    return msgspec.structs.replace(mark, file=str(path), words=clean(words)[:_WORDS])


def job_of(command: Sequence[str]) -> str:
    """Return a key of the job: the programs that its command names, by path, else the command."""
    scripts = [word for word in command if word.endswith((".py", ".sh", ".sbatch")) and not word.startswith("-")]
    with suppress(OSError):
        scripts = [str(Path(script).resolve()) for script in scripts]
    return os.pathsep.join(scripts) or " ".join(command)
