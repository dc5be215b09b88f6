"""Collects where the first value that is not finite arose in a run."""

from __future__ import annotations

from pathlib import Path

import msgspec

from dtdebug.experiments.nonfinite.judge import judge
from dtdebug.experiments.nonfinite.record_types import Found
from dtdebug.privacy.sanitize import clean, one_line
from dtdebug.storage import state_dir
from dtdebug_taxonomy.model.training import Violation

FOLDER = "nan"
"""Folder of the ranks' notes, below the run's folder."""
_FILES, _BYTES = 4096, 1 << 20
_ROWS: msgspec.json.Decoder[Found] = msgspec.json.Decoder(Found)


class NonFiniteResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of the search."""

    violations: tuple[Violation, ...] = ()
    note: str = ""


def nonfinite_result(run: Path) -> NonFiniteResult | None:
    """Return the result from the folder of a run, or None if it was not searched."""
    folder = run / FOLDER
    if not folder.is_dir():
        return None
    rows = []
    for path in sorted(folder.glob("*.jsonl"))[:_FILES]:
        try:
            raw = state_dir.read_start(path, _BYTES)
        except OSError:
            continue
        for line in raw.splitlines():
            try:
                rows.append(_ROWS.decode(line))
            except (ValueError, RecursionError):  # truncated, or of another version
                continue
    found = tuple(
        msgspec.structs.replace(
            v, file=clean(v.file), means=one_line(v.means, 600), cause=one_line(v.cause, 300), fix=one_line(v.fix, 300)
        )
        for v in judge(rows)
    )
    return NonFiniteResult(violations=found, note=one_line(_note(rows, seen=bool(found)), 400))


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
