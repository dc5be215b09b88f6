"""Sub-commands that inspect the ranks of a job: run, flight, slow, and the archive of `report RUN`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dtdebug.cli import call_plan, resume
from dtdebug.cli import collectives as course
from dtdebug.errors import FOUND, NOTHING, UsageError
from dtdebug.privacy.sanitize import complain

if TYPE_CHECKING:
    from dtdebug_taxonomy.presentation.case_json import Case


_LATEST, _MOST_STEPS = 1_000_000, 16
"""Largest number of a step that can be compared, and how many can."""


def add(commands: Any) -> None:
    """Add the sub-commands to the command-line parser."""
    run = commands.add_parser(
        "run",
        help="run a job unchanged; if it fails or hangs, say which rank and where",
        usage="dtdebug run [options] -- COMMAND ...",
        description="Runs the job unchanged: output, signals and exit status stay its own. If it fails, "
        "hangs or is interrupted, standard error says what happened, on which rank and where.",
        epilog="Example: `dtdebug run -- torchrun --nproc-per-node 8 train.py`. The exit status is the job's, 124 "
        "after --stop-on-hang, 127 or 126 if it can't be started, 1 if "
        "--doctor finds a fault.",
    )
    run.add_argument(
        "--hang-after", type=float, default=120.0, metavar="SECONDS", help="without progress (default 120)"
    )
    run.add_argument(
        "--stop-on-hang",
        action="store_true",
        help="end a job of which the records prove that it hangs; the exit status is then 124",
    )
    run.add_argument(
        "--stop-on-not-understood",
        action="store_true",
        help="end also a job that makes no progress for a reason that is not understood, or that may still go on",
    )
    run.add_argument("--folder", type=Path, metavar="DIR", help="folder for the records: new, and shared by all hosts")
    run.add_argument("--full", action="store_true", help="print all that is known, as `dtdebug why` does")
    run.add_argument("--quiet", action="store_true", help="collect only; print nothing")
    run.add_argument("--format", choices=("text", "json"), default="text", help="of the report; json needs --output")
    run.add_argument("--output", type=Path, metavar="FILE", help="write the report there instead of to standard error")
    run.add_argument(
        "--doctor", action="store_true", help="run `dtdebug doctor` first; do not start the job if it finds a fault"
    )
    run.add_argument(
        "--watch",
        action="store_true",
        help="look, while it trains, whether what must hold in a healthy training holds: equal weights of replicas, "
        "other samples on each rank, gradients averaged, ...; say which rank is late and why",
    )
    run.add_argument(
        "--parity",
        action="store_true",
        help="compare some early steps with the same steps of one process: does each gradient come out the same, else "
        "by which factor is it off",
    )
    run.add_argument(
        "--steps", default="1,2,5", metavar="N,...", help="with --parity: the steps to compare (default 1,2,5)"
    )
    run.add_argument(
        "--nan",
        action="store_true",
        help="check each loss and gradient; at the first that is not finite, repeat the step and say where it arises",
    )
    course.add_options(run)
    call_plan.add_options(run)
    resume.add_options(run)
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND ...")
    run.set_defaults(run=_run)

    flight = commands.add_parser(
        "flight",
        help="find in flight-recorder dumps which rank the others wait for",
        description="Compares the dumps that PyTorch's flight recorder left for a job that hung or timed out: which "
        "rank did not make the call that the others wait in, and in which line. Needs no process and no torch.",
        epilog="Example: `dtdebug flight dumps/`, with one file per rank that ends in its number. Exit status: 0 "
        "nobody is waited for, 1 a rank is, or the fabric, 2 usage error or unreadable input.",
    )
    flight.add_argument("folder", type=Path, metavar="DIR", help="folder with one dump per rank")
    flight.add_argument("--prefix", metavar="P", help="prefix of the dumps' names, before the rank")
    flight.add_argument("--format", choices=("text", "json"), default="text")
    flight.set_defaults(run=_flight)

    slow = commands.add_parser(
        "slow",
        help="find in torch.profiler traces which rank is late, and in which phase",
        description="Compares the traces that torch.profiler wrote on each rank of a slow job: which rank is late, "
        "what it spends its time in (loader, computation, communication), and what to do about it. Reads the files of "
        "NCCL's Inspector too: which rank the others wait for in collectives, and which communicator is slow.",
        epilog="Example: `dtdebug slow traces/`. Exit status: 0 nothing found, 1 a rank is late, loading holds up "
        "all, or not all was understood, 2 usage error or unreadable input.",
    )
    slow.add_argument(
        "traces", type=Path, nargs="+", metavar="TRACE", help="one per rank (.json, .json.gz, .log), or a folder"
    )
    slow.add_argument("--format", choices=("text", "json"), default="text")
    slow.set_defaults(run=_slow)


def _slow(options: argparse.Namespace) -> int:
    from dtdebug.cli.slow import run

    text, found = run(options.traces, as_json=options.format == "json")
    print(text, end="")
    return FOUND if found else NOTHING


def _run(options: argparse.Namespace) -> int:
    command: Sequence[str] = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise UsageError("run: name the job, as in `dtdebug run -- torchrun --nproc-per-node 8 train.py`")
    if not 0 < options.hang_after < float("inf"):
        raise UsageError(f"run --hang-after {options.hang_after:g}: more than 0 seconds")
    if options.resume_check:
        return resume.check(options, command)
    if options.format == "json" and options.output is None:
        raise UsageError("run --format json: name a file with --output; the standard streams are the job's")
    if not sys.platform.startswith("linux"):
        raise UsageError("run: works on Linux only")
    if options.folder is not None and (why := _refusal(options.folder, command)):
        raise UsageError(f"run --folder {options.folder}: {why}")
    if options.doctor:
        from dtdebug.cli.doctor import before_run

        if not before_run(command):
            return FOUND
    if options.parity and not options.quiet:
        _say_limits(command, "parity")
    if options.nan and not options.quiet:
        _say_limits(command, "nan")
    from dtdebug.live.job import reporter, run_job

    variables, after = course.recording(options, command) if options.record else ({}, lambda: None)
    chosen = reporter.Options(
        hang_after=options.hang_after,
        stop_on_hang=options.stop_on_hang,
        stop_unexplained=options.stop_on_not_understood,
        folder=options.folder,
        quiet=options.quiet,
        format=options.format,
        output=options.output.absolute() if options.output else None,
        watch=options.watch,
        parity=_steps(options.steps) if options.parity else (),
        nonfinite=options.nan,
        contract=call_plan.contract(options.contract, command) if options.contract else None,
        environment=variables,
        after=after,
        full=options.full,
        foreseen=lambda found: _foreseen(found, command),
    )
    try:
        return run_job.launch(command, chosen)
    except FileNotFoundError:
        complain(f"{command[0]}: command not found")
        return run_job.NOT_FOUND
    except OSError as error:
        complain(f"{command[0]}: can't be started: {error.strerror}")
        return run_job.NOT_EXECUTABLE


def _say_limits(command: Sequence[str], instrument: Literal["parity", "nan"]) -> None:
    """Print what of the program an instrument will not cover, by its source."""
    from dtdebug.experiments.collectives import job_program
    from dtdebug.experiments.repeat import foreseen

    with suppress(UsageError):  # another program than Python's
        script = job_program.script(job_program.of(command))
        for line in foreseen.limits(script, instrument) if script is not None else ():
            complain(f"{instrument}: {line}")


def _steps(text: str) -> tuple[int, ...]:
    words = text.split(",")
    if not all(w.isascii() and w.isdecimal() and 0 < int(w) <= _LATEST for w in words) or len(words) > _MOST_STEPS:
        raise UsageError(f"run --steps {text}: at most {_MOST_STEPS} numbers of steps from 1, as in 1,2,5")
    return tuple(sorted({int(w) for w in words}))


def _foreseen(found: Case, command: Sequence[str]) -> str:
    import os

    from dtdebug.doctor import after_failure
    from dtdebug.storage.last_failure import LastFailure

    last = LastFailure.load()  # the diagnosis made just now
    output = last.snapshot.output if last is not None and last.pid == os.getpid() else ""
    return after_failure.foreseen_line(found, command, os.environ, output)


def _refusal(path: Path, command: Sequence[str]) -> str:
    from dtdebug.live.hosts import join_run

    try:
        return join_run.refusal(path, command)
    except OSError as error:
        return f"can't be read: {error.strerror}"


def _flight(options: argparse.Namespace) -> int:
    from dtdebug.cli import door
    from dtdebug.cli.readings import Asked
    from dtdebug.recorded.things import Thing, recognise

    asked = Asked.of(options)
    named = str(options.folder)
    things: list[Thing] = []
    with suppress(UsageError):  # reading it as dumps says what is wrong
        things = [] if options.prefix else recognise([named])
    if not things or all(thing.kind not in ("run", "archive", "answer") for thing in things):
        things = [Thing(named, "dumps", "")]
    return door.answer_things(things, asked)


def send(path: Path, *, dumps: bool, only_list: bool = False) -> int:
    """List the contents of a run's archive and the masked secrets, then write it and print its name."""
    from dtdebug.live.job import report
    from dtdebug.storage.run_folder import RunFolder

    folder = RunFolder(path)
    if not folder.ranks.is_dir():
        raise UsageError(f"report {path}: is not a run's folder")
    members, left_out = report.survey(folder, dumps=dumps)
    for line in (*(member.line() for member in members), *(f"left out: {line}" for line in left_out)):
        print(f"  {line}", file=sys.stderr)
    masked = sum(member.masked for member in members)
    print(f"  {len(members)} file(s), {masked} secret(s) masked; read it before you send it", file=sys.stderr)
    if only_list:
        return 0
    try:
        target = report.archive(folder, members)
    except FileExistsError as error:
        raise UsageError(f"report: {error.filename}: already exists; move it away") from None
    print(target)
    return 0
