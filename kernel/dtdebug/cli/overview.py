"""Plain `dtdebug`: the jobs that run, else the last failure, else how to begin."""

from __future__ import annotations

import time

from dtdebug.errors import NOTHING

_SHOWN, _RECENT = 6, 7 * 86_400.0


def show() -> int:
    """Print what is worth knowing first; return the exit status."""
    print(_jobs() or _last_failure() or _hints())
    return NOTHING


def _hints() -> str:
    from dtdebug.cli.help import HINTS

    return f"{HINTS}\nMore            dtdebug --help"


def _jobs() -> str:
    """Return a line on each job of this user on this host."""
    import sys

    if not sys.platform.startswith("linux"):
        return ""
    from dtdebug.live.job import running_jobs

    jobs = running_jobs.find()
    if not jobs:
        return ""
    looked = list(running_jobs.look(jobs[:_SHOWN]))
    lines = [f"{job.pid}  {job.shown}  {job.ranks_words}: {doing}" for job, doing in looked]
    lines += [f"and {len(jobs) - _SHOWN} more"] if len(jobs) > _SHOWN else []
    stuck = next((job for job, doing in looked if doing.startswith(running_jobs.STUCK)), jobs[0])
    target = f" {stuck.pid}" if len(jobs) > 1 else ""
    return "\n".join([*lines, f"`dtdebug attach{target}` asks every rank where it is; `dtdebug --help` shows the rest"])


def _last_failure() -> str:
    """Return the first line of the last failure, and how to see the rest."""
    from dtdebug.storage.last_failure import LastFailure
    from dtdebug_taxonomy.presentation.text import first_line

    last = LastFailure.load()
    if last is None or not 0 <= time.time() - last.time < _RECENT:
        return ""
    age = time.time() - last.time
    ago = next(
        (f"{age / unit:.0f} {name}" for unit, name in ((86_400, "d"), (3_600, "h"), (60, "min")) if age >= unit), ""
    )
    return (
        f"The last failure, {f'{ago} ago' if ago else 'just now'}: {first_line(last.diagnosis)}\n"
        "`dtdebug why` tells all of it; `dtdebug --help` shows how to ask about another"
    )
