"""MCP server: each tool runs one read-only command of dtdebug in a separate process, and returns its answer.

It communicates only on standard input and output. A tool starts no program of the caller's, changes no file and
contacts no other host; `attach` inspects processes of this user. The commands' own limits on time and input apply.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from dtdebug.errors import USAGE
from dtdebug.mcp import tool_answers
from dtdebug_taxonomy import __version__

_SECONDS = 120.0
_LOOKS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_SAYS = (
    "Troubleshooting of distributed deep-learning training, local and deterministic. Begin with `diagnose` (one log or "
    "pasted error), `triage` (a folder of logs) or `attach` (a job that hangs now). Each claim names its record. "
    "`understood: false` means that the cause is not known: do what `next` says, instead of guessing."
)


def build() -> MCPServer:
    """Return the server with its tools."""
    server = MCPServer("dtdebug", version=__version__, instructions=_SAYS, log_level="WARNING")
    for tool in (diagnose, why, triage, attach, flight, check, doctor, explain):
        server.tool(annotations=_LOOKS)(tool)
    return server


def diagnose(
    text: str = "", path: str = "", situation: str = "", answers: list[str] | None = None
) -> tool_answers.FailureAnswer:
    """Reads a failure of a training job: what happened, on which rank, where, the cause if something points at one.

    Give the output of the job as `text`, or the `path` of a log, or both nothing and only `situation`: what is seen, in
    plain words. `answers` are KEY=VALUE for a question that an earlier answer asked (VALUE may be `unknown`).
    """
    if not (text or path or situation):
        raise ToolError("diagnose: give text, path or situation")
    if text and path:
        raise ToolError("diagnose: give text or path, not both")
    options = [f"--situation={situation}"] if situation else []
    options += [f"--answer={answer}" for answer in answers or ()]
    place = ["-"] if text else [_path(path)] if path else []
    return tool_answers.failure(_run_command("diagnose", *options, "--", *place, given=text))


def why() -> tool_answers.FailureAnswer:
    """Return the last failure that dtdebug has diagnosed here: of a cell, a run or a log."""
    import msgspec

    from dtdebug.storage.last_failure import LastFailure
    from dtdebug_taxonomy.presentation.case_json import contract, of_text

    last = LastFailure.load()
    if last is None:
        raise ToolError("why: no failure has been diagnosed yet; give diagnose a log")
    return tool_answers.failure(msgspec.to_builtins(contract(of_text(last.snapshot, last.diagnosis))))


def triage(paths: list[str]) -> tool_answers.JobAnswer:
    """Reads all logs of a job, files, folders or archives: which rank failed first, who followed, who fell silent."""
    if not paths:
        raise ToolError("triage: name files or folders")
    return tool_answers.job(_run_command("triage", "--", *map(_path, paths)))


def attach(pid: int) -> tool_answers.FailureAnswer:
    """Says where a running job stands: which rank the others wait for, and in which line. `pid`: any rank."""
    return tool_answers.failure(_run_command("attach", str(pid)))


def flight(folder: str) -> tool_answers.FailureAnswer:
    """Reads flight-recorder dumps, one file for each rank: which rank the others wait for."""
    return tool_answers.failure(_run_command("flight", "--", _path(folder)))


def check(paths: list[str]) -> tool_answers.FindingsAnswer:
    """Finds what will fail in distributed runs, in programs, notebooks, scripts, configuration; runs nothing."""
    if not paths:
        raise ToolError("check: name files or folders")
    rows, said = _run("check", "--", *map(_path, paths))
    return tool_answers.findings_answer(rows, [line.removeprefix("dtdebug: ") for line in said.splitlines()])


def doctor(command: list[str] | None = None) -> tool_answers.FindingsAnswer:
    """Examines this host for the job of a launch command, which is read and not run; without one, this host alone."""
    return tool_answers.doctor_answer(_run_command("doctor", "--host-only", *(["--", *command] if command else [])))


def explain(name: str = "") -> str:
    """A page on a symptom code, check, cause, message or question, with sources; without a name the list of all."""
    return str(_run_command("explain", *(["--", name] if name else []))["markdown"])


def _path(path: str) -> str:
    """Return an absolute path, which can't be mistaken for an option or standard input."""
    try:
        return str(Path(path).expanduser().absolute())
    except RuntimeError:  # the home of a user that there is not
        return str(Path(path).absolute())


def _run_command(verb: str, *arguments: str, given: str = "") -> dict[str, Any]:
    read: dict[str, Any] = _run(verb, *arguments, given=given)[0]
    return read


def _run(verb: str, *arguments: str, given: str = "") -> tuple[Any, str]:
    """Return the command's JSON output, and its messages on standard error.

    Raises:
        ToolError: wrong usage, unreadable input, or no answer in time.

    """
    command: Sequence[str] = [sys.executable, "-P", "-m", "dtdebug", verb, "--format", "json", *arguments]
    try:
        started = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except (OSError, ValueError) as error:  # too long for an argument, or with a zero byte
        raise ToolError(f"{verb}: can't be asked: {getattr(error, 'strerror', None) or error}") from None
    with started as child:
        try:
            out, said = child.communicate(given.encode(errors="replace"), timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            raise ToolError(f"{verb}: no answer within {_SECONDS:g} s; run it in a terminal") from None
    words = said.decode(errors="replace").strip()
    if child.returncode == USAGE or not out.strip():
        raise ToolError(words.removeprefix("dtdebug: ") or f"{verb}: no answer (exit status {child.returncode})")
    return json.loads(out), words
