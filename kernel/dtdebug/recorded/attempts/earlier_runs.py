"""Says in one sentence what the runs of a log show that ended before the last one, and whether they failed alike."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from dtdebug.recorded.attempts.attempt import Attempt, attempt_of
from dtdebug.recorded.job_logs.job_view import Job
from dtdebug_taxonomy.logs.log import read_output
from dtdebug_taxonomy.logs.runs import lines_of
from dtdebug_taxonomy.model.snapshot import Snapshot


def account_of(runs: Sequence[Snapshot]) -> tuple[str, bool]:
    """Return the sentence on the earlier of several runs, and whether the last one failed as the one before."""
    *before, last = [attempt_of(run, f"run {number}") for number, run in enumerate(runs, 1)]
    begin, end = lines_of(runs[0])[0], lines_of(runs[-2])[1]
    lines = f"lines {begin:,}-{end:,} are "
    like = [a for a in before if a.failed and (a.kind, a.root) == (last.kind, last.root)]
    if last.failed and like:
        earlier = "an earlier run" if len(before) == 1 else "earlier runs"
        return f"The same in {len(like) + 1} of {len(runs)} runs; {lines}{earlier}.", True
    ended = _end(before[-1], runs[-2])
    if len(before) == 1:
        return f"{lines}an earlier run, which {ended}; this is about the last", False
    return f"{lines}{len(before)} earlier runs, the last of which {ended}; this is about the last run", False


def account_of_files(job: Job) -> str:
    """Return the sentence on the logs that hold earlier runs above the last one."""
    file, line = job.cut[0]
    which = f"{len(job.cut)} of {job.files} logs hold" if job.files > 1 else "the log holds"
    return f"{which} earlier runs, as {file} above line {line:,}; this is about the last run"


def _end(run: Attempt, snapshot: Snapshot) -> str:
    if run.failed:
        return f"ended by {textwrap.shorten(run.words.rstrip('. '), 90, placeholder=' ...')}"
    if run.completed:
        return "was completed"
    if read_output(snapshot).outcome.interrupted:
        return "was interrupted by hand"
    return f"prints no end{f' (last step {run.step:,})' if run.step is not None else ''}"
