"""Where the last of several programs begins whose output was appended to one log."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dtdebug.logs.shapes import Kept
from dtdebug.triage import steps
from dtdebug.triage.judge import shape

_HEAD, _UNLIKE = 5, 3
"""Lines by which the begin of a program is known again, and how many shapes they have at least."""

_JOB = re.compile(rb"slurmstepd: error: \*\*\* JOB (\d{1,18}) ON ")


def last_job(rows: Sequence[Kept]) -> int:
    """The line below which Slurm speaks of another job than above; 0 where it speaks of one at most."""
    ends = [(row.number, found[1]) for row in rows if b"*** JOB " in row.raw and (found := _JOB.search(row.raw))]
    return max((number + 1 for number, job in ends if job != ends[-1][1]), default=0)


def last_begin(rows: Sequence[Kept]) -> int:
    """The line at which the first lines of a log come once more, for the last time; 0 where they don't.

    Lines that show progress come again in one program, too: a log that begins with them tells nothing of this.
    """
    rows = [row for row in rows if row.raw.strip()]
    keys = [shape(row.raw) for row in rows]
    head = keys[:_HEAD]
    if len(set(head)) < _UNLIKE or steps.last_step([row.raw for row in rows[:_HEAD]]) is not None:
        return 0
    for place in range(len(rows) - _HEAD, _HEAD - 1, -1):
        if keys[place] == head[0] and keys[place : place + _HEAD] == head:
            return rows[place].number
    return 0
