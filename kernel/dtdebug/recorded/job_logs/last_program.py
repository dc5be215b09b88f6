"""Finds where the last of several programs starts whose output was appended to one log."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dtdebug.recorded.job_logs import training_steps
from dtdebug.recorded.job_logs.line_judge import shape
from dtdebug.recorded.log_files.line_shapes import KeptLine

_HEAD, _UNLIKE = 5, 3
"""Lines that identify the start of a program, and the minimum number of shapes among them."""

_JOB = re.compile(rb"slurmstepd: error: \*\*\* JOB (\d{1,18}) ON ")


def last_job(rows: Sequence[KeptLine]) -> int:
    """Return the line after which Slurm names only the last job; 0 if it names at most one job."""
    ends = [(row.number, found[1]) for row in rows if b"*** JOB " in row.raw and (found := _JOB.search(row.raw))]
    return max((number + 1 for number, job in ends if job != ends[-1][1]), default=0)


def last_begin(rows: Sequence[KeptLine]) -> int:
    """Return the line at which the first lines of a log recur for the last time; 0 if they don't recur.

    Lines that show progress also recur within one program; a log that starts with them returns 0.
    """
    rows = [row for row in rows if row.raw.strip()]
    keys = [shape(row.raw) for row in rows]
    head = keys[:_HEAD]
    if len(set(head)) < _UNLIKE or training_steps.last_step([row.raw for row in rows[:_HEAD]]) is not None:
        return 0
    for place in range(len(rows) - _HEAD, _HEAD - 1, -1):
        if keys[place] == head[0] and keys[place : place + _HEAD] == head:
            return rows[place].number
    return 0
