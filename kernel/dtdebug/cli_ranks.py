"""The sub-commands that look at the ranks of a job: run, attach, flight, and the archive of `report RUN`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psutil

    from dtdebug.ranks.folder import RunFolder

_CHILDREN = 256
"""Processes below a given one that are asked for the folder of their run."""


def add(commands: Any) -> None:
    """Adds the sub-commands to the parser of the command line."""
    run = commands.add_parser(
        "run",
        help="run a job as before; say which rank and where if it fails or hangs",
        usage="dtdebug run [options] -- COMMAND ...",
        description="Runs the job as before: its output, its signals and its exit status are untouched. If it fails, "
        "hangs or is interrupted, says on standard error which rank, what and where.",
        epilog="The exit status is the job's, 124 after --stop-on-hang, 127 or 126 where it can't be started.",
    )
    run.add_argument(
        "--hang-after", type=float, default=120.0, metavar="SECONDS", help="without movement (default 120)"
    )
    run.add_argument("--stop-on-hang", action="store_true", help="end a job that hangs; the exit status is then 124")
    run.add_argument("--folder", type=Path, metavar="DIR", help="where to collect: a new or an empty folder")
    run.add_argument("--quiet", action="store_true", help="only collect, print nothing")
    run.add_argument("--format", choices=("text", "json"), default="text", help="of the report; json needs --output")
    run.add_argument("--output", type=Path, metavar="FILE", help="the report goes there, not to standard error")
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND ...")
    run.set_defaults(run=_run)

    attach = commands.add_parser("attach", help="say where a running job stands: which rank the others wait for")
    attach.add_argument(
        "target",
        nargs="?",
        metavar="PID|RUN|KERNEL",
        help="a rank, launcher or kernel, a run's folder, a kernel's id or connection file; else the newest run",
    )
    attach.add_argument("--native", action="store_true", help="native frames too (py-spy; slower)")
    attach.add_argument("--format", choices=("text", "json"), default="text")
    attach.set_defaults(run=_attach)

    flight = commands.add_parser("flight", help="say from flight-recorder dumps which rank the others wait for")
    flight.add_argument("folder", type=Path, metavar="DIR", help="holds one dump for each rank")
    flight.add_argument("--prefix", metavar="P", help="what the names of the dumps begin with, before the rank")
    flight.add_argument("--format", choices=("text", "json"), default="text")
    flight.set_defaults(run=_flight)


def _usage(text: str) -> Exception:
    from dtdebug.cli import UsageError

    return UsageError(text)


def _run(options: argparse.Namespace) -> int:
    command: Sequence[str] = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise _usage("run: name the job, as in `dtdebug run -- torchrun --nproc-per-node 8 train.py`")
    if not 0 < options.hang_after < float("inf"):
        raise _usage(f"run --hang-after {options.hang_after:g}: more than 0 seconds")
    if options.format == "json" and options.output is None:
        raise _usage("run --format json: name a file with --output; the standard streams are the job's")
    if options.folder is not None and options.folder.exists() and not _is_empty(options.folder):
        raise _usage(f"run --folder {options.folder}: is no empty folder; name a new one")
    if not sys.platform.startswith("linux"):
        raise _usage("run: works on Linux only")
    from dtdebug.ranks import launch, vigil

    chosen = vigil.Options(
        hang_after=options.hang_after,
        stop_on_hang=options.stop_on_hang,
        folder=options.folder,
        quiet=options.quiet,
        format=options.format,
        output=options.output.absolute() if options.output else None,
    )
    try:
        return launch.launch(command, chosen)
    except FileNotFoundError:
        print(f"dtdebug: {command[0]}: command not found", file=sys.stderr)
        return launch.NOT_FOUND
    except OSError as error:
        print(f"dtdebug: {command[0]}: can't be started: {error.strerror}", file=sys.stderr)
        return launch.NOT_EXECUTABLE


def _is_empty(path: Path) -> bool:
    with suppress(OSError):
        return path.is_dir() and not any(path.iterdir())
    return False


def _attach(options: argparse.Namespace) -> int:
    import msgspec

    from dtdebug.ranks import collect, report, runs

    asked = _ask_kernel(options)
    if asked is not None:
        return asked
    folder, pids, what, notes = _target(options.target)
    if folder is None or runs.lives(folder) or collect.alive(folder):
        seen = collect.look(folder, pids, native=options.native)
    else:
        seen = collect.last(folder)
    if not any(s.rank is not None or s.stack or s.pending for s in seen.states):
        why = "; ".join(f"{road}: {said}" for s in seen.states[:1] for road, said in s.roads.items())
        raise _usage(
            f"attach: {what}: no rank was found there{f' ({why})' if why else ''}; `dtdebug run -- COMMAND` arms a job"
        )
    seen = msgspec.structs.replace(seen, notes=(*notes, *seen.notes))
    found = collect.conclude(folder, seen)
    if options.format == "json":
        print(msgspec.json.encode(found).decode())
    else:
        print(report.to_text(found, what, folder), end="")
    return 0 if found.verdict.kind == "none" else 1


def _ask_kernel(options: argparse.Namespace) -> int | None:
    """The exit status of what a Jupyter kernel says; None where the target is no kernel."""
    if options.target is None or Path(options.target).is_dir():
        return None
    import msgspec

    from dtdebug.live.ask import ask_kernel

    answer = ask_kernel(options.target)
    if answer is None:
        return None
    print(msgspec.json.encode(answer).decode() if options.format == "json" else answer.text)
    return 0 if answer.verdict is None or answer.verdict.kind == "none" else 1


def _target(name: str | None) -> tuple[RunFolder | None, tuple[int, ...], str, tuple[str, ...]]:
    """Folder, processes, what they are called, and what is to be said of the folder."""
    from dtdebug.ranks import runs
    from dtdebug.ranks.folder import RunFolder

    if name is None:
        folder = runs.newest()
        if folder is None:
            raise _usage("attach: no run is known; name a process or the folder of a run")
    elif name.isdecimal() and not Path(name).is_dir():
        pid = int(name)
        folder = _folder_of(pid)
        return folder, () if folder else (pid,), f"process {pid}", ()
    else:
        folder = RunFolder(Path(name))
        if not folder.path.is_dir():
            raise _usage(f"attach {name}: is neither a process nor the folder of a run")
        if not folder.ranks.is_dir():
            raise _usage(f"attach {name}: is no folder of a run; `dtdebug flight {name}` reads dumps")
    return folder, (), f"run {folder.path.name}", _version(folder)


def _folder_of(pid: int) -> RunFolder | None:
    """The folder that a process or one below it collects into."""
    import psutil

    from dtdebug.ranks.folder import VARIABLE, RunFolder

    try:
        top = psutil.Process(pid)
        family = [top, *top.children(recursive=True)[:_CHILDREN]]
    except psutil.Error:
        raise _usage(f"attach {pid}: no such process; a run's folder can be named in its place") from None
    for process in family:
        with suppress(psutil.Error):
            named = process.environ().get(VARIABLE) or _announced(process)
            if named and Path(named).is_dir():
                return RunFolder(Path(named))
    return None


def _announced(process: psutil.Process) -> str | None:
    """The folder where a process that was armed after its start keeps its stack file open."""
    stacks = (Path(file.path) for file in process.open_files() if file.path.endswith(f"/stacks/{process.pid}.txt"))
    return next((str(path.parents[1]) for path in stacks), None)


def _version(folder: RunFolder) -> tuple[str, ...]:
    from dtdebug.ranks.folder import VERSION

    run = folder.load_run()
    if run is None:
        return ("run.json is not there or can't be read; the records are read without it",)
    if run.v != VERSION:
        age = "a newer" if run.v > VERSION else "an older"
        return (
            f"the folder was written by {age} version (layout {run.v}, this one is {VERSION}); what can be is read",
        )
    return ()


def _flight(options: argparse.Namespace) -> int:
    import msgspec

    from dtdebug import flight
    from dtdebug.ranks import report
    from dtdebug.ranks.collect import Found

    try:
        analysis = flight.analyse(options.folder, options.prefix)
    except flight.FlightError as error:
        raise _usage(f"flight: {error}") from None
    record = {
        "verdict": analysis.verdict,
        "ranks": analysis.ranks,
        "missing_dumps": analysis.missing_dumps,
        "notes": analysis.notes,
    }
    if options.format == "json":
        print(msgspec.json.encode(record).decode())
    else:
        found = Found(
            verdict=analysis.verdict, missing_dumps=tuple(analysis.missing_dumps), notes=tuple(analysis.notes)
        )
        print(report.to_text(found, f"dumps in {options.folder}"), end="")
    return 0 if analysis.verdict.kind == "none" else 1


def send(path: Path, *, dumps: bool) -> int:
    """Writes the archive of a run and prints its name."""
    from dtdebug.ranks import report
    from dtdebug.ranks.folder import RunFolder

    folder = RunFolder(path)
    if not folder.ranks.is_dir():
        raise _usage(f"report {path}: is no folder of a run")
    try:
        target, left_out = report.archive(folder, dumps=dumps)
    except FileExistsError as error:
        raise _usage(f"report: {error.filename}: exists already; move it away") from None
    print(target)
    for line in left_out:
        print(f"  left out: {line}", file=sys.stderr)
    return 0
