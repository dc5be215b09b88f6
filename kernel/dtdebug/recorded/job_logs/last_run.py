"""Finds the last of several runs whose output is in one log: what is above it is of runs that have ended."""

from __future__ import annotations

from dtdebug.privacy.sanitize import plain
from dtdebug.recorded.log_files.excerpt import LogLines
from dtdebug_taxonomy.logs.pasted_margins import without_margins
from dtdebug_taxonomy.logs.runs import lines_of, may_hold_runs, runs_of
from dtdebug_taxonomy.model.snapshot import Snapshot


def snapshot_of(lines: LogLines, source: str) -> Snapshot:
    """Return what was kept of a log as a snapshot, with all runs in it."""
    kept = lines.excerpt()
    return Snapshot(output=without_margins(plain(kept.text)), source=source, first_lines=kept.first_lines)


def begin_of_last_run(lines: LogLines, source: str) -> int:
    """Return the first line of the last run in a log; 0 if it shows one run only."""
    if not may_hold_runs([row.raw.decode("utf-8", "replace") for row in lines.shapes.kept]):
        return 0
    runs = runs_of(snapshot_of(lines, source))
    return lines_of(runs[-1])[0] if len(runs) > 1 else 0
