"""Sub-command `attach`: inspects a running job on this host and, at the user's request, on others."""

from __future__ import annotations

import argparse
import os
import shlex
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtdebug.errors import FOUND, NOTHING, UsageError
from dtdebug.privacy.sanitize import clean

if TYPE_CHECKING:
    import psutil

    from dtdebug.live.job.observe import LiveRanks
    from dtdebug.live.probe.remote_commands import RemoteCommand
    from dtdebug.storage.run_folder import RunFolder
    from dtdebug_taxonomy.presentation.case_json import Case

_CHILDREN = 256
"""Maximum number of processes below a given one that are asked for the folder of their run."""
_WAITED = 10.0
"""Seconds to observe ranks that wait for a working one, if no record shows since when they wait."""
_LISTED = 4
"""Maximum number of running jobs that are listed."""
_AGAIN = 15.0
"""Seconds of a second look at ranks if the first one did not show what they wait in."""


def add(commands: Any) -> None:
    """Add the sub-command to the command-line parser."""
    attach = commands.add_parser(
        "attach",
        help="look into a running job: which rank the others wait for",
        description="Asks each rank of a job that runs or hangs where it is, and says which one the others wait for, "
        "and in which line. The job need not have been started by dtdebug (then py-spy looks), and nothing of it is "
        "stopped or changed.",
        epilog="Example: `dtdebug attach`, or `dtdebug attach 28371` with the process id of torchrun or of a "
        "rank. Exit status: 0 every rank makes progress, 1 one is waited for or it is not understood, 2 usage error or "
        "no rank was found.",
    )
    attach.add_argument(
        "target",
        nargs="?",
        metavar="PID|RUN|KERNEL",
        help="a rank, launcher or kernel, a run's folder, a kernel's id or connection file; else the job that runs "
        "here, else the newest run",
    )
    attach.add_argument("--native", action="store_true", help="show native frames too (py-spy; slower)")
    attach.add_argument("--full", action="store_true", help="also all that `dtdebug why` shows")
    attach.add_argument("--format", choices=("text", "json"), default="text")
    far = attach.add_argument_group("ranks on other hosts", "Commands that ask there are shown; --go runs them.")
    far.add_argument("--via", choices=("ssh", "srun", "kubectl"), help="default: srun in a Slurm job, else ssh")
    far.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="NAME[=PID|RUN]",
        help="a host, node or pod to ask, and what to attach to there (repeatable); else those of silent ranks",
    )
    far.add_argument("--program", default="dtdebug", metavar="COMMAND", help="dtdebug there (default: dtdebug)")
    far.add_argument("--go", action="store_true", help="run the commands and use their answers")
    far.add_argument("--store", metavar="HOST:PORT", help="ask the job's own store where its ranks can be reached")
    attach.set_defaults(run=_attach)


def _attach(options: argparse.Namespace) -> int:
    import msgspec

    from dtdebug.live.hosts import presence
    from dtdebug.live.job import conclude, observe, recent_runs, rendezvous_check
    from dtdebug.live.job.saved_case import SavedCaseError, of_run
    from dtdebug.live.probe import other_hosts
    from dtdebug_taxonomy.model.ranks import spell

    asked = _ask_kernel(options)
    if asked is not None:
        return asked
    place = _place(options.store) if options.store else None
    folder, pids, what, notes = _target(options.target)
    lives = folder is None or recent_runs.lives(folder) or observe.alive(folder)
    if folder is not None and not (lives or place or options.go or options.host):
        with suppress(SavedCaseError):  # below it is said that no rank was found
            ended = of_run(folder).case
            return _show(options, msgspec.structs.replace(ended, notes=(*notes, *ended.notes)), what, folder)
    if (lives or pids) and (unmet := rendezvous_check.unmet(folder, pids)) is not None:
        return _show(options, unmet, what, folder)
    addresses: dict[int, str] = {}
    where = (lambda: addresses) if place else None
    if folder is None or lives or place:
        addresses, said = _addresses(place, folder, pids) if place else ({}, ())
        notes += said
        seen = observe.ask_ranks(folder, pids, native=options.native, addresses=where)
        open_ = any(s.alive and s.stack and s.pending is None and s.waiting is None for s in seen.states)
        if open_ and not seen.interrupted:
            # It may compute, or wait in C code: reading its native frames can take longer than a first look may.
            seen = observe.ask_ranks(folder, pids, native=options.native, timeout=_AGAIN, addresses=where)
    else:
        seen = observe.last(folder)
    seen = msgspec.structs.replace(seen, notes=(*notes, *seen.notes))
    _refuse_strangers(pids, seen)
    asking = bool(lives or options.host or options.go or place)
    commands = _commands(options, seen, folder) if asking else []
    if options.go:
        seen = _asked_there(commands, seen)
        commands = []
    shown = tuple(clean(str(command)) for command in commands)
    if not any(s.rank is not None or s.stack or s.pending for s in seen.states):
        raise _nobody(what, seen, shown if options.format == "text" else ())
    silent = other_hosts.silent_ranks(seen.states) if asking else ()
    if silent and not place and (known := other_hosts.store_of(seen.states)):
        hint = f"the job's store may know where {spell(silent)} can be reached: --store {known} asks it"
        seen = msgspec.structs.replace(seen, notes=(*seen.notes, hint))
    hosts = presence.read_hosts(folder) if folder is not None else ()
    found = conclude.conclude(folder, seen, hosts=hosts)
    timed = options.go or _is_timed(seen) or seen.interrupted
    if found.verdict.kind == "none" and found.verdict.stragglers and asking and not timed:
        later = observe.ask_ranks(folder, pids, native=options.native, pause=_WAITED, addresses=where)
        seen = msgspec.structs.replace(later, seconds=_WAITED, notes=seen.notes)
        found = conclude.conclude(folder, seen, hosts=hosts)
    if lives or pids:
        from dtdebug.live.job.ras_view import with_ras

        found = with_ras(found, seen.states)
    return _show(options, msgspec.structs.replace(found, unanswered=silent, commands=shown), what, folder)


def _refuse_strangers(pids: Sequence[int], seen: LiveRanks) -> None:
    """Raise UsageError for a named process that is neither a rank nor the parent of one."""
    from dtdebug.live.probe.not_a_rank import stranger

    for pid in pids:
        if said := stranger(pid, seen.states):
            raise UsageError(f"attach: {clean(said)}")


def _is_timed(seen: LiveRanks) -> bool:
    """True if a rank reports since when it waits, as ranks with an agent do."""
    return any(s.pending is not None and s.pending.since for s in seen.states)


def _show(options: argparse.Namespace, found: Case, what: str, folder: RunFolder | None) -> int:
    """Print the case; return the exit status, which shows whether a rank is to blame."""
    from dtdebug.cli import door
    from dtdebug.cli.readings import Asked
    from dtdebug.live.job.saved_case import Saved, snapshot_of, without_step

    if options.native:
        found = without_step(found, "attach --native")
    return door.show_case(Saved(found, snapshot_of(found, folder), folder), Asked.of(options), what=what)


def _nobody(what: str, seen: LiveRanks, commands: Sequence[str]) -> UsageError:
    """Return the error that no rank was found, and print the commands that would ask elsewhere."""
    for command in commands:
        print(command)
    roads = (f"{road}: {said}" for state in seen.states[:1] for road, said in state.roads.items())
    why = " ".join(clean("; ".join([*roads, *seen.notes[:4]])).split())
    advice = "--go runs the commands above" if commands else "`dtdebug run -- COMMAND` arms a job"
    return UsageError(f"attach: {what}: no rank was found there{f' ({why})' if why else ''}; {advice}")


def _commands(options: argparse.Namespace, seen: LiveRanks, folder: RunFolder | None) -> list[RemoteCommand]:
    """Return the commands that ask for silent ranks, or on the hosts that the user named."""
    from dtdebug.live.probe import other_hosts

    try:
        program = shlex.split(options.program) or ["dtdebug"]
        found = other_hosts.commands(seen.states, folder, via=options.via, named=options.host, program=program)
    except ValueError as error:
        raise UsageError(f"attach: {error}") from None
    if options.go and not found and other_hosts.silent_ranks(seen.states):
        raise UsageError("attach --go: no other host is known; name hosts to ask with --host NAME")
    return found


def _asked_there(commands: Sequence[RemoteCommand], seen: LiveRanks) -> LiveRanks:
    """Return the local observation joined with the commands' answers."""
    import msgspec

    from dtdebug.live.probe import other_hosts, remote_commands

    if not commands:
        return msgspec.structs.replace(seen, notes=(*seen.notes, "all ranks answered here: no other host was asked"))
    others, failed = remote_commands.run(commands)
    states, foreign = other_hosts.join_answers(seen.states, others)
    lacked = other_hosts.silent_ranks(seen.states)
    progress = {rank: now for rank, now in seen.progress.items() if rank not in lacked}  # observed once only from here
    return msgspec.structs.replace(seen, states=states, progress=progress, notes=(*seen.notes, *failed, *foreign))


def _place(text: str) -> tuple[str, int]:
    """Parse host and port of a store."""
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdecimal()) or not 0 < int(port[:9]) < 65536:
        raise UsageError(f"attach --store {clean(text)}: is not HOST:PORT, such as node-0:29500")
    return host.strip("[]"), int(port)


def _addresses(
    place: tuple[str, int], folder: RunFolder | None, pids: Sequence[int]
) -> tuple[dict[int, str], tuple[str, ...]]:
    """Return (addresses, notes): the addresses of the ranks' agents from the job's store."""
    import psutil

    from dtdebug.live.probe import other_hosts
    from dtdebug.live.probe.ask_all_ranks import world_size

    records = list(folder.records()) if folder else []
    here, python = socket.gethostname(), sys.executable
    for pid in (*pids, *(record.pid for record in records if record.pid and record.host == here)):
        with suppress(psutil.Error, OSError):
            rank = psutil.Process(pid)
            if rank.uids().real == os.getuid():  # never run a program of another user's process
                python = other_hosts.python_of(tuple(rank.cmdline()), rank.environ())
                break
    try:
        found = other_hosts.addresses(*place, python=python, world=world_size(records) or 1)
    except other_hosts.StoreError as error:
        return {}, (str(error),)
    return other_hosts.reachable(found, place[0])


def _ask_kernel(options: argparse.Namespace) -> int | None:
    """Return the exit status of a Jupyter kernel's answer; None if the target is not a kernel."""
    if options.target is None or Path(options.target).is_dir():
        return None
    import msgspec

    from dtdebug.notebook.attach_client import ask_kernel, connection_file

    if options.via or options.host or options.go or options.store:
        if not options.target.isdecimal() and connection_file(options.target) is not None:
            raise UsageError(
                f"attach {options.target}: is a kernel; --via, --host, --go, --store go with a run or process"
            )
        return None
    answer = ask_kernel(options.target)
    if answer is None:
        return None
    print(msgspec.json.encode(answer).decode() if options.format == "json" else answer.text)
    return NOTHING if answer.verdict is None or answer.verdict.kind == "none" else FOUND


def _target(name: str | None) -> tuple[RunFolder | None, tuple[int, ...], str, tuple[str, ...]]:
    """Return the run folder, the processes, their description, and notes on the folder."""
    from dtdebug.live.job import recent_runs
    from dtdebug.storage.run_folder import RunFolder

    if name is None and (job := _only_job()):
        return _target(str(job))
    if name is None:
        folder = recent_runs.newest()
        if folder is None:
            raise UsageError("attach: no job of yours runs here, and no run is known; name a process or a run's folder")
    elif name.isdecimal() and not Path(name).is_dir():
        pid = int(name)
        folder = _folder_of(pid)
        if folder is not None:
            return folder, (), f"process {pid}", ()
        top, notes = _launcher_of(pid)
        return None, (top,), f"process {top}", notes
    else:
        folder = RunFolder(Path(name))
        if not folder.path.is_dir():
            raise UsageError(f"attach {name}: is neither a process nor the folder of a run")
        if not folder.ranks.is_dir():
            raise UsageError(f"attach {name}: is not a run's folder; `dtdebug flight {name}` reads dumps")
    return folder, (), f"run {folder.path.name}", _version(folder)


def _only_job() -> int | None:
    """Return the process of the one job of this user that runs here, if any.

    Raises:
        UsageError: several run.

    """
    from dtdebug.live.job import running_jobs

    jobs = running_jobs.find()
    if len(jobs) > 1:
        told = ", ".join(f"{job.pid} ({job.shown})" for job in jobs[:_LISTED])
        more = f" and {len(jobs) - _LISTED} more" if len(jobs) > _LISTED else ""
        raise UsageError(f"attach: {len(jobs)} jobs of yours run here: {told}{more}; name one")
    return jobs[0].pid if jobs else None


def _launcher_of(pid: int) -> tuple[int, tuple[str, ...]]:
    """Return the launcher of a rank, which leads to the others, and a note; else the process itself."""
    from dtdebug.live.job import running_jobs

    for job in running_jobs.find():
        rank = next((each for each in job.ranks if each.pid == pid), None)
        if rank is not None and len(job.ranks) > 1:
            number = "a rank" if rank.rank is None else f"rank {rank.rank}"
            return job.pid, (f"process {pid} is {number} of the job of process {job.pid}, whose ranks were all asked",)
    return pid, ()


def _folder_of(pid: int) -> RunFolder | None:
    """Return the folder into which a process or one below it collects."""
    import psutil

    from dtdebug.storage import VARIABLE
    from dtdebug.storage.run_folder import RunFolder

    try:
        top = psutil.Process(pid)
        if (own := os.geteuid()) and top.uids().real != own:
            raise UsageError(f"attach {pid}: belongs to {clean(top.username())}; ask as that user, or with sudo")
        family = [top, *top.children(recursive=True)[:_CHILDREN]]
    except psutil.Error:
        raise UsageError(f"attach {pid}: no such process; a run's folder can be named in its place") from None
    for process in family:
        with suppress(psutil.Error):
            named = process.environ().get(VARIABLE) or _stack_folder(process)
            if named and Path(named).is_dir():
                return RunFolder(Path(named))
    return None


def _stack_folder(process: psutil.Process) -> str | None:
    """Return the folder in which a process armed after its start keeps its stack file open."""
    stacks = (Path(file.path) for file in process.open_files() if file.path.endswith(f"/stacks/{process.pid}.txt"))
    return next((str(path.parents[1]) for path in stacks), None)


def _version(folder: RunFolder) -> tuple[str, ...]:
    from dtdebug.storage.run_folder import VERSION

    run = folder.load_run()
    if run is None:
        return ("run.json is not there or can't be read; the records are read without it",)
    if run.v != VERSION:
        age = "a newer" if run.v > VERSION else "an older"
        return (
            f"the folder was written by {age} version (layout {run.v}, this one is {VERSION}); what can be is read",
        )
    return ()
