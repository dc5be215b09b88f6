"""Sub-command `triage`: reads all logs of a job, and shows what each rank did."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

from dtdebug.errors import NOTHING, UsageError

if TYPE_CHECKING:
    from dtdebug.recorded.job_logs.job_view import Job
    from dtdebug.recorded.logs import Logs

_HERE = "processes"


def add(commands: Any) -> None:
    """Add the sub-command to the command-line parser."""
    triage = commands.add_parser(
        "triage",
        help="read all logs of a job; say which rank failed first",
        description="Reads all logs of a job: which rank failed first, which followed, which went silent, and what "
        "the hosts and devices report. Then the diagnosis.",
        epilog="Example: `dtdebug triage logs/`. On many hosts: `srun -N64 --ntasks-per-node=1 dtdebug triage --part "
        "LOGS > part-$SLURM_NODEID.json`, "
        "then `dtdebug triage part-*.json`. The exit status is 0 if nothing was found, 1 if something was.",
    )
    triage.add_argument(
        "paths",
        nargs="+",
        metavar="PATH|-",
        help="logs, folders, patterns, archives (.gz .zst .xz .tar), parts; - reads standard input",
    )
    triage.add_argument("--part", action="store_true", help="print a summary of these logs, to be joined later")
    triage.add_argument(
        "--follow", action="store_true", help="keep reading; report the first failure as soon as it happens"
    )
    triage.add_argument(
        "--processes", type=int, default=0, metavar="N", help="parallel processes (default: one per core)"
    )
    triage.add_argument(
        "--engine", default=_HERE, metavar="WHERE", help="processes (here), dask://HOST:PORT or ray://HOST:PORT"
    )
    triage.add_argument("--format", choices=("text", "json", "html"), default="text")
    triage.add_argument(
        "--against", metavar="RUN", help="logs of an earlier, healthy run: lines unlike any of them are shown"
    )
    triage.add_argument("--full", action="store_true", help="also what each rank did, and all that is known")
    triage.set_defaults(run=_triage)


def _triage(options: argparse.Namespace) -> int:
    if options.processes < 0:
        raise UsageError(f"--processes {options.processes}: 0 or more")
    if options.against is not None and (options.follow or options.part):
        raise UsageError("--against: reads whole logs; it goes with neither --follow nor --part")
    if options.follow and options.format == "html":
        raise UsageError("--follow: prints text or json")
    if options.follow and options.engine != _HERE:
        raise UsageError("--follow: reads here; it goes without --engine")
    began = time.perf_counter()
    if options.follow:
        from dtdebug.recorded.job_logs.follow import follow

        return follow(options.paths, lambda job: _say(job, began, options))
    if options.part:
        from dtdebug.recorded.job_logs import api
        from dtdebug.recorded.job_logs.part import encode

        sys.stdout.write(encode(api.read_part(options.paths, options.processes, options.engine)).decode() + "\n")
        return NOTHING
    from dtdebug.cli.reading_view import answer_attempts
    from dtdebug.cli.readings import Asked
    from dtdebug.presentation.terminal import waiting_line
    from dtdebug.recorded.job_logs import api
    from dtdebug.recorded.logs import Logs

    if _are_other(options):
        from dtdebug.cli import door

        return door.answer(options.paths, Asked.of(options), aside=False)
    logs = Logs(options.paths, processes=options.processes, engine=options.engine)
    asked = Asked(format=options.format, full=options.full)
    with waiting_line(options.paths):
        if options.format != "html" and options.against is None:
            status = answer_attempts(logs, logs.decision, asked)
            if status is not None:
                return status
        job = api.job_of(logs.part)
    return _say(job, began, options, logs)


def _are_other(options: argparse.Namespace) -> bool:
    """True if the paths are, or hold, something else than logs: runs, archives, dumps, answers."""
    from dtdebug.recorded.things import recognise

    if options.format == "html" or options.against is not None:
        return False
    try:
        things = recognise(options.paths)
    except UsageError:
        return False  # reading them as logs says what is wrong
    kinds = {thing.kind for thing in things}
    return kinds == {"curves"} or bool(kinds - {"log", "logs", "program", "words", "curves"})


def _say(job: Job, began: float, options: argparse.Namespace, logs: Logs | None = None) -> int:
    """Print what the job's logs show: below the first line that `diagnose` gives, what each rank did."""
    from dtdebug.cli.reading_view import print_reading
    from dtdebug.cli.readings import Asked, add_attempts, add_runs, add_writer, judge_job, read_logs

    job = _add_contrast(job, options)
    asked = Asked(format=options.format, full=options.full or options.against is not None)
    curves = logs.curves_with() if logs is not None else None
    if logs is not None and logs.is_file and options.format == "text" and options.against is None:
        reading = read_logs(logs, asked)
        if reading.job is None:
            reading = add_writer(add_attempts(reading, logs.decision), logs.paths, asked)
            found = reading.found or bool(job.first) or job.tells_more
            return print_reading(reading._replace(found=found, curves=curves), "", asked, rows=job)
        reading = reading._replace(seconds=time.perf_counter() - began)
    else:
        reading = judge_job(job, began, asked)
    if logs is not None:
        reading = add_writer(add_runs(reading, logs, asked), logs.paths, asked)
    return print_reading(reading._replace(curves=curves), "", asked)


def _add_contrast(job: Job, options: argparse.Namespace) -> Job:
    """Add the lines that a healthy run did not print."""
    if options.against is None:
        return job
    from msgspec.structs import replace

    from dtdebug.recorded.job_logs import new_line_evidence, new_lines

    rows, unread = new_lines.new(options.paths, [options.against])
    return new_line_evidence.add_new_lines(replace(job, unread=(*job.unread, *unread)), rows)
