"""Runs one examination, from the command to the report: inspect this host, meet the others, judge."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from dtdebug.doctor.facts import HostReport, Meeting
from dtdebug.doctor.judge import verdict
from dtdebug.doctor.kubernetes import manifest
from dtdebug.doctor.launch import read_launch
from dtdebug.doctor.look import Extra, examine_host
from dtdebug.doctor.report import Report

TOKEN = "DTDEBUG_DOCTOR_TOKEN"  # noqa: S105 - a name
WAIT = 8.0
_IMPORTING, _WRITING = 60.0, 10.0


class HostAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Result of an examination, with this host's own report and its meeting."""

    report: Report
    look: HostReport
    meeting: Meeting
    authenticated: bool = False


class Chosen(NamedTuple):
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


_USUAL = Chosen()


def examine(command: Sequence[str], variables: Mapping[str, str], chosen: Chosen = _USUAL) -> HostAnswer:
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
        from dtdebug.doctor import meet
        from dtdebug.doctor.shared import Shared

        token = variables.get(TOKEN) or f"job {variables.get('SLURM_JOB_ID', '')}"
        shared = Shared(chosen.folder, token, seen) if chosen.folder is not None else None
        try:
            judge = shared.judge if shared else verdict.together
            meeting, report = meet.meeting(seen, token, wait, judge, heavy=chosen.heavy, shared=shared is not None)
            report = shared.ended(meeting, report, began + wait) if shared else report
        finally:
            if shared is not None:
                shared.close()
    if report is None:
        report = verdict.alone(seen, meeting)
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
