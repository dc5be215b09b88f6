"""One examination, from the command to the answer: look at this host, meet the others, judge."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence

import msgspec

from dtdebug.doctor import meet
from dtdebug.doctor.facts import Look, Meeting, Report
from dtdebug.doctor.judge import verdict
from dtdebug.doctor.launch import read
from dtdebug.doctor.look import Extra, look
from dtdebug.doctor.wire import WireError

TOKEN = "DTDEBUG_DOCTOR_TOKEN"  # noqa: S105 - a name
WAIT = 8.0
_IMPORTING, _WRITING = 60.0, 10.0


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, and how this host fared."""

    report: Report
    look: Look
    meeting: Meeting
    authenticated: bool = False


def examine(
    command: Sequence[str],
    variables: Mapping[str, str],
    *,
    node: int | None = None,
    nodes: int | None = None,
    wait: float = WAIT,
    here: bool = False,
    once: bool = False,
    heavy: bool = False,
    torch: bool = False,
) -> Answer:
    """Examines the job of a launch command; `here`: this host alone; `once`: no other host is started but by it.

    `heavy` and `torch`: what costs seconds and bandwidth, and imports torch in a child.

    Raises:
        UsageError: the command names a file that can't be read.

    """
    began = time.monotonic()
    launch = read(command, variables, node=node, nodes=nodes)
    wait += (_IMPORTING if torch else 0.0) + (_WRITING if heavy else 0.0)  # hosts are not equally fast at it
    seen = look(launch, variables, Extra(heavy, torch, tuple(command)))
    meeting, report = Meeting(result="none"), None
    if launch.nodes > 1 and launch.endpoint and not here and not (once and launch.starts):
        token = variables.get(TOKEN) or f"job {variables.get('SLURM_JOB_ID', '')}"
        meeting, report = asyncio.run(_meet(seen, token, wait, heavy=heavy))
    if report is None:
        report = verdict.alone(seen, meeting)
    seconds = round(time.monotonic() - began, 2)
    return Answer(
        report=msgspec.structs.replace(report, seconds=seconds),
        look=seen,
        meeting=meeting,
        authenticated=bool(variables.get(TOKEN)),
    )


async def _meet(seen: Look, token: str, wait: float, *, heavy: bool) -> tuple[Meeting, Report | None]:
    if meet.collects(seen):
        return await meet.collect(seen, token, wait, verdict.together, heavy=heavy)
    try:
        return await meet.come(seen, token, wait)
    except WireError as error:
        return Meeting(result="lost", words=f"the first host was lost on the way ({error.why})"), None


def record(answer: Answer) -> str:
    """The line of this host for `--read`."""
    body = {"look": answer.look, "meeting": answer.meeting, "pid": os.getpid()}
    return "dtdebug-doctor " + msgspec.json.encode(body).decode()
