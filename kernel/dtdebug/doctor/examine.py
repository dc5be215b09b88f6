"""Runs one examination, from the command to the report: inspect this host, meet the others, judge."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from dtdebug.doctor.host.report import Extra, examine_host
from dtdebug.doctor.judge import report as judge_report
from dtdebug.doctor.launch.kubernetes import manifest
from dtdebug.doctor.launch.read_launch import read_launch
from dtdebug.doctor.report_types import Report
from dtdebug.doctor.types import HostReport, Meeting

TOKEN = "DTDEBUG_DOCTOR_TOKEN"  # noqa: S105 - a name
WAIT = 8.0
_IMPORTING, _WRITING = 60.0, 10.0


class HostAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Result of an examination, with this host's own report and its meeting."""

    report: Report
    look: HostReport
    meeting: Meeting
    authenticated: bool = False


class ExamineOptions(NamedTuple):
    """Options of an examination."""

    node: int | None = None
    nodes: int | None = None
    wait: float = WAIT
    here: bool = False
    """Examine this host only."""
    once: bool = False
    """Doctor runs on this host only, even if the command starts other hosts."""
    heavy: bool = False
    torch: bool = False
    folder: Path | None = None


_USUAL = ExamineOptions()


def examine(command: Sequence[str], variables: Mapping[str, str], chosen: ExamineOptions = _USUAL) -> HostAnswer:
    """Examine the job of a launch command.

    Raises:
        UsageError: the command names a file that can't be read, or the folder can't be written.

    """
    began = time.monotonic()
    if (job := manifest(command)) is not None:
        from dtdebug.doctor.judge import pods

        of_pods, first = pods.judge(job)
        return HostAnswer(report=of_pods, look=first, meeting=Meeting(result="none"))
    launch = read_launch(command, variables, node=chosen.node, nodes=chosen.nodes)
    # hosts differ in speed for expensive checks
    wait = chosen.wait + (_IMPORTING if chosen.torch else 0.0) + (_WRITING if chosen.heavy else 0.0)
    seen = examine_host(launch, variables, Extra(chosen.heavy, chosen.torch, tuple(command)))
    meeting, report = Meeting(result="none"), None
    if launch.nodes > 1 and launch.endpoint and not chosen.here and not (chosen.once and launch.starts):
        from dtdebug.doctor.meet import meet
        from dtdebug.doctor.meet.shared_session import SharedFolder

        token = variables.get(TOKEN) or f"job {variables.get('SLURM_JOB_ID', '')}"
        shared = SharedFolder(chosen.folder, token, seen) if chosen.folder is not None else None
        try:
            judge = shared.judge if shared else judge_report.together
            meeting, report = meet.meeting(seen, token, wait, judge, heavy=chosen.heavy, shared=shared is not None)
            report = shared.report_result(meeting, report, began + wait) if shared else report
        finally:
            if shared is not None:
                shared.close()
    if report is None:
        report = judge_report.alone(seen, meeting)
    seconds = round(time.monotonic() - began, 2)
    return HostAnswer(
        report=msgspec.structs.replace(report, seconds=seconds),
        look=seen,
        meeting=meeting,
        authenticated=bool(variables.get(TOKEN)),
    )


def record(answer: HostAnswer) -> str:
    """Return the line of this host for `--read`."""
    body = {"look": answer.look, "meeting": answer.meeting, "pid": os.getpid()}
    return "dtdebug-doctor " + msgspec.json.encode(body).decode()
