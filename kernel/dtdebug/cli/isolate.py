"""The sub-command `dtdebug isolate`."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from dtdebug.errors import FOUND, NOTHING, USAGE, UsageError
from dtdebug.experiments.isolate import package_versions, recording_diff
from dtdebug.experiments.isolate.environment_changes import variables_to_try
from dtdebug.experiments.isolate.job_command import JobCommand, one_host, parse_job, spread
from dtdebug.experiments.isolate.prior_knowledge import UserReport, parse_answers
from dtdebug.experiments.isolate.recording_diff import RecordedRun
from dtdebug.experiments.isolate.run_types import Choices
from dtdebug.experiments.isolate.search_state import SearchState
from dtdebug.experiments.isolate.session import SavedSearch, SearchRequest, last_search, new_folder
from dtdebug_taxonomy.knowledge.factors import Factor

_SPAN = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)([smh]?)\Z")
_INTERRUPTED = 130


def add(commands: Any) -> None:
    """Add the sub-command to the parser of the command line."""
    isolate = commands.add_parser(
        "isolate",
        help="rerun a failing job with one change at a time; say which component is responsible",
        usage="%(prog)s [options] -- COMMAND ...",
        description="Runs the job unchanged until it fails, then reruns it with one change at a time, made from "
        "outside: number of ranks, backend, data-loader workers, torch.compile, mixed precision, DDP options, the last "
        "batch, seeds, environment variables. Each run works in a copy of the working directory, and nothing is "
        "uploaded. Says which change makes the failure go away, and what is ruled out. For a job of several hosts, "
        "torchrun agents on this host stand in for them: the network between hosts is not tested (see dtdebug doctor).",
        epilog="Example: `dtdebug bisect --budget 20m -- torchrun --nproc-per-node 4 train.py`. Exit status: 0 the "
        "job does not fail, 1 it fails, 2 it can't be run, 130 interrupted.",
    )
    isolate.add_argument(
        "--budget", default="10m", metavar="TIME", help="for all runs together: 90s, 10m, 2h (default 10m)"
    )
    isolate.add_argument(
        "--hang", action="store_true", help="the failure is a hang: detect it sooner, look for nothing else"
    )
    isolate.add_argument(
        "--hang-after", type=float, metavar="SECONDS", help="without movement (default 30, with --hang 20)"
    )
    isolate.add_argument("--slow", action="store_true", help="the job is slow: find what makes it faster")
    isolate.add_argument(
        "--slow-above", type=float, metavar="SECONDS", help="of a step (default: as slow as it is at first)"
    )
    isolate.add_argument(
        "--differs",
        type=Path,
        metavar="DIR",
        help="the failure is that it gives other numbers than the run recorded there by `dtdebug run --record DIR`",
    )
    isolate.add_argument(
        "--version",
        action="append",
        default=[],
        metavar="PKG==X",
        help="try this version of a package, too: pip installs it in a throw-away environment (repeatable)",
    )
    isolate.add_argument(
        "--answer",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="what you know, so isolate need not try it (repeatable): works_with_one_process=yes, compile=fails",
    )
    isolate.add_argument("--situation", default="", metavar="TEXT", help="what you know, in plain words")
    isolate.add_argument("--dry-run", action="store_true", help="list the runs without starting any")
    isolate.add_argument("--resume", action="store_true", help="continue the last search of this command")
    isolate.add_argument("--in-place", action="store_true", help="run in this folder, not in copies")
    isolate.add_argument(
        "--may-write",
        action="append",
        default=[],
        metavar="PATH",
        help="a path outside the folder that the runs may change",
    )
    isolate.add_argument("--yes", action="store_true", help="do not ask before the first run")
    isolate.add_argument("--format", choices=("text", "json"), default="text")
    isolate.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND ...")
    isolate.set_defaults(run=_isolate)


def _isolate(options: argparse.Namespace) -> int:
    words = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not words:
        raise UsageError("isolate: name the job, as in `dtdebug isolate -- torchrun --nproc-per-node 4 train.py`")
    if not sys.platform.startswith("linux"):
        raise UsageError("isolate: works on Linux only")
    if shutil.which(words[0]) is None:
        raise UsageError(f"isolate: {words[0]}: command not found")
    told = parse_answers(options.answer, options.situation)
    job, not_varied = _here(parse_job(words), told)
    choices, recorded = _choices(options, job)
    asked = SearchRequest(
        budget=_seconds(options.budget),
        factors=_factors(choices),
        variables=variables_to_try() if recorded is None else {},  # the differences are known after the first run
        versions=package_versions.asked_releases(options.version),
        told=told,
        hang=options.hang,
        not_varied=not_varied,
    )
    home = Path.cwd()
    saved = last_search(job, home, choices.kind) if options.resume else None
    if options.resume and saved is None:
        raise UsageError("isolate --resume: no earlier search of this command in this folder")
    known = saved[1].runs if saved else ()
    if options.dry_run or (not options.yes and sys.stdin.isatty() and sys.stderr.isatty()):
        from dtdebug.experiments.isolate.dry_run import plan

        first = next((run for run in known if not run.factors and run.failure), None)
        text = plan(job, asked, choices, first)
        if options.dry_run:
            print(text, end="")
            return NOTHING
        sys.stderr.write(f"{text}Start? [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            return NOTHING
    session = SavedSearch(job, home, saved[0] if saved else new_folder(), choices, asked)
    return _answer(session.search(known), session, told, as_json=options.format == "json")


def _choices(options: argparse.Namespace, job: JobCommand) -> tuple[Choices, RecordedRun | None]:
    """Return the user's choices, and the recorded run to compare with."""
    hang_after = options.hang_after if options.hang_after is not None else 20.0 if options.hang else 30.0
    if not 0 < hang_after < float("inf"):
        raise UsageError(f"isolate --hang-after {hang_after:g}: more than 0 seconds")
    above = options.slow_above
    if above is not None and not 0 < above < float("inf"):
        raise UsageError(f"isolate --slow-above {above:g}: must be more than 0 seconds a step")
    if sum((options.hang, options.slow or above is not None, options.differs is not None)) > 1:
        raise UsageError("isolate: --hang, --slow and --differs are three kinds of failure; name one")
    recorded = (
        recording_diff.checked_recording(options.differs.absolute(), job.ranks) if options.differs is not None else None
    )
    choices = Choices(
        hang_after=hang_after,
        in_place=options.in_place,
        may_write=tuple(str(Path(path).absolute()) for path in options.may_write),
        kind="slow" if options.slow or above is not None else "differs" if recorded is not None else "fails",
        slow_above=above,
        recorded=recorded.folder if recorded is not None else None,
        seeds=recorded.seeds() if recorded is not None else "",
    )
    return choices, recorded


def _factors(choices: Choices) -> tuple[Factor, ...]:
    """Return the factors that may be changed: when numbers are compared, only those that must not alter them."""
    from dtdebug_taxonomy.knowledge import factors

    if choices.kind != "differs":
        return tuple(f for f in factors.load() if "recorded" not in f.uses)
    return tuple(f for f in factors.load() if not f.alters)


def _here(job: JobCommand, told: UserReport) -> tuple[JobCommand, tuple[str, ...]]:
    """Return the same job on this host alone, and what that leaves untested."""
    if job.hosts < 2:
        return job, ()
    if told.one_host == "yes":
        raise UsageError(
            "isolate: you say that it works on one host, so the cause lies between the hosts; "
            "`dtdebug doctor COMMAND` on each host looks at that"
        )
    if job.launcher != "torchrun":
        raise UsageError("isolate: the command is for several hosts; name one that fails on one host")
    here = spread(job)
    if here is None:
        print(f"dtdebug isolate: {job.hosts} hosts are requested; all runs are on this host only", file=sys.stderr)
        return one_host(job), (f"the number of hosts: {job.hosts} are requested, and all runs are on this host",)
    print(
        f"dtdebug isolate: {job.hosts} hosts are asked for; {job.hosts} agents of torchrun on this one stand for them",
        file=sys.stderr,
    )
    return here, ("what is between the hosts, and what differs between them: all agents are on this one",)


def _answer(found: SearchState, session: SavedSearch, told: UserReport, *, as_json: bool) -> int:
    from dtdebug.experiments.isolate import render
    from dtdebug.experiments.isolate.claims import diagnose_search
    from dtdebug.storage.last_failure import LastFailure

    known = diagnose_search(found, told) if found.failure is not None else None
    diagnosis = known[1] if known else None
    if known:
        LastFailure(snapshot=known[0], diagnosis=known[1]).save()
    written = tuple(dict.fromkeys(path for run in found.runs for path in run.wrote if not _is_temporary(path)))
    if as_json:
        print(json.dumps(render.to_json(found, diagnosis, written=written)))
    else:
        print(render.to_text(found, diagnosis), end="")
        for path in written[:5]:
            print(f"  the runs left {path}")
    if session.interrupted:
        return _INTERRUPTED
    if found.failure is None:
        return USAGE if found.unfinished else NOTHING
    return FOUND


def _is_temporary(path: str) -> bool:
    return path.startswith(tempfile.gettempdir())


def _seconds(text: str) -> float:
    found = _SPAN.match(text.strip())
    seconds = float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found[2]] if found else 0.0
    if seconds <= 0:
        raise UsageError(f"isolate --budget {text}: a time such as 90s, 10m or 2h")
    return seconds
