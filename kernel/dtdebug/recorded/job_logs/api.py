"""`dtdebug triage`: reads all logs of a job."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from dtdebug.errors import FOUND, NOTHING, UsageError
from dtdebug.recorded.job_logs import workers as engines
from dtdebug.recorded.job_logs.job_view import Job, view
from dtdebug.recorded.job_logs.part import Part, decode, encode, is_part, merge
from dtdebug.recorded.job_logs.rank_from_path import of_paths
from dtdebug.recorded.log_files.sources import LogSource, find_logs
from dtdebug.storage import safe_open

_PART = 1 << 30
"""Maximum size of a part in bytes."""


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
        "--engine", default=engines.HERE, metavar="WHERE", help="processes (here), dask://HOST:PORT or ray://HOST:PORT"
    )
    triage.add_argument("--format", choices=("text", "json", "html"), default="text")
    triage.add_argument(
        "--against", metavar="RUN", help="logs of an earlier, healthy run: lines unlike any of them are shown"
    )
    triage.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    if options.processes < 0:
        raise UsageError(f"--processes {options.processes}: 0 or more")
    if options.against is not None and (options.follow or options.part):
        raise UsageError("--against: reads whole logs; it goes with neither --follow nor --part")
    if options.follow and options.format == "html":
        raise UsageError("--follow: prints text or json")
    if options.follow and options.engine != engines.HERE:
        raise UsageError("--follow: reads here; it goes without --engine")
    began = time.perf_counter()
    if options.follow:
        from dtdebug.recorded.job_logs.follow import follow

        return follow(options.paths, lambda job: say(job, began, options.format))
    part = read_part(options.paths, options.processes, options.engine)
    if options.part:
        sys.stdout.write(encode(part).decode() + "\n")
        return NOTHING
    return say(_add_contrast(job_of(part), options), began, options.format)


def _add_contrast(job: Job, options: argparse.Namespace) -> Job:
    """Add the lines that a healthy run did not print."""
    if options.against is None:
        return job
    from msgspec.structs import replace

    from dtdebug.recorded.job_logs import new_line_evidence, new_lines

    rows, unread = new_lines.new(options.paths, [options.against])
    return new_line_evidence.add_new_lines(replace(job, unread=(*job.unread, *unread)), rows)


def job_of(part: Part, situation: str = "") -> Job:
    """Return the job of a part that holds all of it, with the user's description.

    Raises:
        UsageError: no log could be read.

    """
    from msgspec.structs import replace

    from dtdebug.privacy.sanitize import plain

    if not part.files and not part.streams:
        raise UsageError(f"nothing could be read: {'; '.join(part.unread[:3]) or 'no log'}")
    job = view(part)
    return replace(job, snapshot=replace(job.snapshot, situation=plain(situation)))


def say(
    job: Job, began: float, form: str, answers: Mapping[str, str] | None = None, unknown: tuple[str, ...] = ()
) -> int:
    """Print a job with its diagnosis and return the exit status. `began` is a time of `perf_counter`."""
    import msgspec

    from dtdebug.check.stack_files import sourced_snapshot
    from dtdebug.privacy.boundary import diagnose
    from dtdebug.recorded.job_logs import render
    from dtdebug.storage.last_failure import LastFailure
    from dtdebug_taxonomy.knowledge.loader import load
    from dtdebug_taxonomy.logs.log_end import is_stop

    snapshot = sourced_snapshot(job.snapshot)
    diagnosis = render.relocate_lines(diagnose(load(), snapshot, answers, unknown), job.places)
    named = job.verdict is not None and job.verdict.names_ranks
    wrong = diagnosis.recognised and job.went_on is None
    slow = job.slowness.is_slow
    found = bool(job.first or job.ended or job.silent or named or wrong or slow or job.behind or _machine_failed(job))
    found = found or is_stop(job.verdict)
    if found:
        LastFailure(snapshot=snapshot, diagnosis=diagnosis).save()
    if form == "json":
        print(msgspec.json.encode(render.data(job, diagnosis)).decode())
    elif form == "html":
        from dtdebug.recorded.job_logs import html

        print(html.html(job, render.to_text(job, diagnosis, time.perf_counter() - began)))
    else:
        print(render.to_text(job, diagnosis, time.perf_counter() - began))
    return FOUND if found else NOTHING


def _machine_failed(job: Job) -> bool:
    return any(e.role == "root" for e in job.hardware)


def read_part(paths: Sequence[str], processes: int = 0, engine: str = engines.HERE) -> Part:
    """Return the part with everything that the paths name: logs are read, parts are taken as they are."""
    sources, unread = find_logs(list(paths))
    parts, logs = [], []
    for source in sources:
        known = _as_part(source)
        if known is not None:
            parts.append(known)
        else:
            logs.append(source)
    whose = of_paths([s.name for s in logs])
    parts += engines.parts(logs, whose, engine, processes)
    whole = merge(parts)
    whole.unread = [*unread, *whole.unread]
    return whole


def _as_part(source: LogSource) -> Part | None:
    if source.path == "-" or source.member or not source.path.endswith(".json"):
        return None
    try:
        with safe_open.log(source.path) as file:
            begin = file.read(400)
            return decode(begin + file.read(_PART), source.name) if is_part(begin) else None
    except OSError:
        return None  # reading it as a log reports why
