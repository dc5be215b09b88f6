"""Collects where the first value that is not finite arose in a run."""

from __future__ import annotations

from pathlib import Path

import msgspec

from dtdebug.experiments.nonfinite.judge import judge
from dtdebug.experiments.nonfinite.record_types import Found
from dtdebug.experiments.repeat import notes
from dtdebug.privacy.sanitize import one_line

FOLDER = "nan"
"""Folder of the ranks' notes, below the run's folder."""
_BYTES = 1 << 20
_ROWS: msgspec.json.Decoder[Found] = msgspec.json.Decoder(Found)


def nonfinite_result(run: Path) -> notes.Noted | None:
    """Return the result from the folder of a run, or None if it was not searched."""
    folder = run / FOLDER
    if not folder.is_dir():
        return None
    rows = notes.read_rows(folder, _ROWS, _BYTES)
    found = tuple(map(notes.shown, judge(rows)))
    return notes.Noted(violations=found, note=one_line(_note(rows, seen=bool(found)), 400))


def _note(rows: list[Found], *, seen: bool) -> str:
    failed = next((r.failed for r in rows if r.failed), "")
    if failed:
        return f"nan: ended on a rank: {failed}"
    if seen:
        return ""
    steps = max((r.ended for r in rows), default=0)
    if not steps:
        return "nan: no optimizer step was seen"
    spent = max(r.spent for r in rows)
    return f"nan: all losses and gradients of {steps} steps are finite; looking took {spent:.2f} s of a rank"
