"""The sub-command `doctor`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtdebug.errors import FOUND, NOTHING, USAGE, UsageError

if TYPE_CHECKING:
    from dtdebug.doctor.report_types import Report

FORMS = ("text", "json", "jsonl", "junit", "nagios")
FILES = ("sh", "slurm", "k8s", "json")


def add(commands: Any) -> None:
    """Add the sub-command to the parser of the command line."""
    doctor = commands.add_parser(
        "doctor",
        help="check before the run: can this job start, on this host and on all others?",
        usage="dtdebug doctor [options] [-- COMMAND ...]",
        description="Runs on each host with the job's own launch command: the hosts meet at the job's endpoint, are "
        "compared, and each pair is tested; it names the host, the cause and the fix. Without a command it examines "
        "this host. The job itself is not started, and nothing is installed or changed.",
        epilog="Example: srun dtdebug doctor -- torchrun --nnodes 4 --node-rank $SLURM_NODEID ... train.py. "
        "Exit status: 0 ready, 1 at least one fault, 2 usage error, or no examination possible.",
    )
    doctor.add_argument("--format", choices=FORMS, default="text", help="jsonl: one line per host, for --read")
    doctor.add_argument("--export", nargs="?", const="sh", choices=FILES, help="print only the settings to export")
    doctor.add_argument(
        "--wait", type=float, default=8.0, metavar="SECONDS", help="wait for hosts that have not reported (default 8)"
    )
    doctor.add_argument("--node", type=int, metavar="N", help="node rank of this host, if the command does not say")
    doctor.add_argument("--nodes", type=int, metavar="N", help="number of hosts, if the command does not say (Ray)")
    doctor.add_argument(
        "--host-only", action="store_true", help="check this host only, even if the command names several"
    )
    doctor.add_argument(
        "--heavy", action="store_true", help="also measure network, disk and memory throughput: takes some seconds"
    )
    doctor.add_argument(
        "--torch", action="store_true", help="import torch as the ranks would, and form a gloo group of two processes"
    )
    doctor.add_argument(
        "--folder",
        type=Path,
        metavar="DIR",
        help="a folder that all hosts share: hosts that cannot connect report there",
    )
    doctor.add_argument("--strict", action="store_true", help="warnings count as faults")
    doctor.add_argument(
        "--read", type=Path, metavar="FILE", help="read the --format jsonl lines from a job's output and join them"
    )
    doctor.add_argument(
        "--hosts", type=Path, metavar="FILE", help="start doctor on the hosts listed in FILE, one per line; needs --via"
    )
    doctor.add_argument(
        "--via", choices=("ssh", "srun", "kubectl", "ray"), help="how to start it there; ray needs no --hosts"
    )
    doctor.add_argument("--token-stdin", action="store_true", help="read the hosts' shared token from standard input")
    doctor.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND ...")
    doctor.set_defaults(run=_doctor)


def _doctor(options: argparse.Namespace) -> int:
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not 0 < options.wait <= 60:
        raise UsageError(f"doctor --wait {options.wait:g}: more than 0, at most 60 seconds")
    if options.nodes is not None and not 0 < options.nodes <= 4096:
        raise UsageError(f"doctor --nodes {options.nodes}: 1 to 4096")
    if (options.hosts is None) != (options.via in (None, "ray")):
        raise UsageError("doctor: --hosts needs --via and the reverse, except --via ray, which knows its hosts")
    if not sys.platform.startswith("linux"):
        raise UsageError("doctor: works on Linux only")
    if options.via is not None:
        from dtdebug.doctor.meet import remote_start

        over_ray = options.via == "ray"
        report = (
            remote_start.over_ray(command, options.wait)
            if over_ray
            else remote_start.examine(options.hosts, options.via, command, options.wait)
        )
        _keep(command, report)
        told = {h for f in report.findings for h in f.hosts}
        others = [u for u in report.not_examined if u.id.startswith("host ") and u.id.removeprefix("host ") not in told]
        return _print_report(options, report, tuple(f"{u.id} did not report: {u.why}" for u in others))
    if options.read is not None:
        from dtdebug.doctor.meet.read_jsonl import merge_lines

        report = merge_lines(options.read)
        return _print_report(options, report, ())
    from dtdebug.doctor.examine import TOKEN, ExamineOptions, examine, record
    from dtdebug.doctor.launch.read_launch import is_spare, read_launch

    variables = dict(os.environ)
    if options.token_stdin:
        variables[TOKEN] = sys.stdin.readline(200).strip()
    if is_spare(read_launch(command, variables), variables):
        return NOTHING
    answer = examine(
        command,
        variables,
        ExamineOptions(
            node=options.node,
            nodes=options.nodes,
            wait=options.wait,
            here=options.host_only,
            heavy=options.heavy,
            torch=options.torch,
            folder=options.folder,
        ),
    )
    _keep(command, answer.report)
    if options.format == "jsonl":
        print(record(answer))
        return _status(answer.report, strict=options.strict)
    notes = []
    met = answer.meeting.result in ("hub", "came")
    if met and not answer.authenticated:
        notes.append("the hosts were not authenticated: give all hosts the same DTDEBUG_DOCTOR_TOKEN")
    status = _print_report(options, answer.report, tuple(notes))
    if options.format == "text" and options.export is None and not met and answer.meeting.result != "none":
        print(record(answer))  # for --read: this host could not report to the others
    return status


def before_run(command: Sequence[str]) -> bool:
    """Examine a job that is about to start and print the report to standard error; True if it may start."""
    from dtdebug.doctor import render
    from dtdebug.doctor.examine import ExamineOptions, examine
    from dtdebug.privacy.sanitize import clean

    answer = examine(command, os.environ, ExamineOptions(once=True))
    _keep(command, answer.report)
    print(clean(render.to_text(answer.report)), end="", file=sys.stderr)
    ready = _status(answer.report, strict=False) == NOTHING
    if not ready:
        print("dtdebug: the job was not started; without --doctor it will be", file=sys.stderr)
    sys.stderr.flush()
    return ready


def _keep(command: Sequence[str], report: Report) -> None:
    """Save the observations for the wizard, and for a run of this command that fails."""
    from dtdebug.storage.doctor_result import Examination

    known = {k: (v, f"dtdebug doctor: {report.grounds.get(k, '')}") for k, v in report.observations.items()}
    Examination(command=tuple(command), observations=known).save()


def _print_report(options: argparse.Namespace, report: Report, notes: tuple[str, ...]) -> int:
    import msgspec

    from dtdebug.doctor import render
    from dtdebug.privacy.sanitize import clean

    status = _status(report, strict=options.strict)
    if options.export is not None:
        print(render.to_export(report, options.export), end="")
    elif options.format == "json":
        print(msgspec.json.encode(report).decode())
    elif options.format == "junit":
        print(clean(render.to_junit(report, strict=options.strict)), end="")
    elif options.format == "nagios":
        line, status = render.to_nagios(report, status)
        print(clean(line))
    else:
        print(clean(render.to_text(report, notes=notes)), end="")
    return status


def _status(report: Report, *, strict: bool) -> int:
    if not report.hosts:
        return USAGE
    counted = {"fault", "warning"} if strict else {"fault"}
    return FOUND if any(f.severity in counted for f in report.findings) else NOTHING
