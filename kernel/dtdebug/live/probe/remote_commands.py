"""Commands that inspect ranks on other hosts: built and shown, run only on request.

Each is a list of words that no local shell sees; words for a remote shell are quoted.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import IO

import msgspec

from dtdebug.live.probe.deadline_threads import begin, until
from dtdebug.live.probe.pyspy_output import parse_spy
from dtdebug.privacy.sanitize import clean
from dtdebug.storage.untrusted import tidy
from dtdebug_taxonomy.model.ranks import RankState
from dtdebug_taxonomy.stacks.wait_operations import operation

TIMEOUT = 20.0
"""Seconds for all commands together."""
_LIMIT = 64 << 20
"""Maximum number of bytes of an answer."""
_NAME = re.compile(r"[A-Za-z0-9_][\w.@:%\[\],-]*\Z")
"""Hosts, jobs, pods: a leading dash would make an option."""

_JSON = re.compile(rb"(?m)^(?:\{|\[\s{0,9}(?:\{|\]))")


class RemoteCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command that inspects the ranks of one place."""

    where: str
    """Host, node or pod."""
    words: tuple[str, ...]
    pid: int | None = None
    """Process that py-spy inspects; None for a command that prints records of ranks."""

    def __str__(self) -> str:
        return shlex.join(self.words)


class _Report(msgspec.Struct):
    ranks: list[RankState]


def attach(target: str = "", *, program: Sequence[str] = ("dtdebug",)) -> list[str]:
    """Return the command that prints the records of all ranks on its host; `target` is a process id or a run."""
    return [*program, "attach", "--format", "json", *([target] if target else [])]


def stack(pid: int, *, program: Sequence[str] = ("py-spy",)) -> list[str]:
    """Return the command that prints the stacks of one process on its host; needs no dtdebug there."""
    return [*program, "dump", "--json", "--nonblocking", "--pid", str(pid)]


def over_ssh(host: str, words: Sequence[str], *, pid: int | None = None) -> RemoteCommand:
    """Return the command on a host by ssh, which never asks for a password; raises ValueError for an invalid name."""
    options = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=5")
    return RemoteCommand(where=host, words=("ssh", *options, _name(host), "--", shlex.join(words)), pid=pid)


def over_srun(job: str, node: str, words: Sequence[str], *, pid: int | None = None) -> RemoteCommand:
    """Return the command on a node of a Slurm job, next to its step and without a device; raises ValueError."""
    options = ("--overlap", f"--jobid={_name(job)}", f"--nodelist={_name(node)}", "--nodes=1", "--ntasks=1")
    return RemoteCommand(where=node, words=("srun", *options, "--gres=gpu:0", "--mem=0", *words), pid=pid)


def over_kubectl(
    pod: str, words: Sequence[str], *, namespace: str = "", container: str = "", pid: int | None = None
) -> RemoteCommand:
    """Return the command in a pod; raises ValueError."""
    options = (
        *(("--namespace", _name(namespace)) if namespace else ()),
        *(("--container", _name(container)) if container else ()),
    )
    return RemoteCommand(where=pod, words=("kubectl", "exec", _name(pod), *options, "--", *words), pid=pid)


def run(commands: Sequence[RemoteCommand], timeout: float = TIMEOUT) -> tuple[list[RankState], list[str]]:
    """Run the commands in parallel and return (states, notes); a note gives a failed command and the reason.

    Only on an explicit request of the user: the commands log in to other machines.
    """
    deadline = time.monotonic() + timeout
    done = until(begin([partial(_one, command, deadline) for command in commands], deadline), deadline + 1.0)
    late: list[tuple[list[RankState], str]] = [
        ([], f"{clean(command.where)}: no answer in {timeout:g} s") for command in commands
    ]
    answers = [answer or missed for answer, missed in zip(done, late, strict=True)]
    return [state for states, _ in answers for state in states], [note for _, note in answers if note]


def read_states(data: bytes, command: RemoteCommand) -> list[RankState]:
    """Return the records in a command's output, cleaned.

    Raises:
        ValueError: it is not JSON of records.

    """
    found_json = _JSON.search(data)  # a login may print before it
    begin = found_json.start() if found_json else 0
    try:
        if command.pid is not None:
            look = parse_spy(data[begin:], command.pid)
            found = [
                RankState(
                    pid=command.pid, host=command.where, alive=True, stack=look.stack, pending=operation(look.stack)
                )
            ]
        elif data[begin : begin + 1] == b"[":
            found = msgspec.json.decode(data[begin:], type=list[RankState])
        else:
            found = msgspec.json.decode(data[begin:], type=_Report).ranks
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(f"printed something other than the JSON of ranks: {error}") from error
    return [tidy(msgspec.structs.replace(state, host=state.host or command.where)) for state in found]


def _one(command: RemoteCommand, deadline: float) -> tuple[list[RankState], str]:
    where, began = clean(command.where), time.monotonic()
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                command.words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
            )
        except OSError as error:
            return [], f"{where}: {command.words[0]} can't be started: {error.strerror}"
        try:
            data = _read(process, deadline)
            status = process.wait(max(0.0, deadline - time.monotonic()))
            states = read_states(data, command) if data.strip() else []
        except (TimeoutError, subprocess.TimeoutExpired):
            return [], f"{where}: no answer in {time.monotonic() - began:.1f} s"
        except ValueError as error:
            return [], f"{where}: {clean(str(error))[:300]}"
        finally:
            _end(process)
        if states:
            return [msgspec.structs.replace(s, roads={**s.roads, command.words[0]: "ok"}) for s in states], ""
        return [], f"{where}: exit status {status}: {_last_line(errors)}"


def _read(process: subprocess.Popen[bytes], deadline: float) -> bytes:
    """Return everything that it prints; raises TimeoutError, or ValueError if it is too much."""
    stream, data = process.stdout, bytearray()
    if stream is None:
        return b""
    with stream:
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([stream], [], [], left)[0]:
                raise TimeoutError
            part = os.read(stream.fileno(), 1 << 18)
            if not part:
                return bytes(data)
            data += part
            if len(data) > _LIMIT:
                raise ValueError(f"printed more than {_LIMIT >> 20} MiB")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the command and its children, if still running."""
    if process.poll() is None:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(1.0)


def _last_line(errors: IO[bytes]) -> str:
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - 4096))
    lines = clean(errors.read().decode(errors="replace")).strip().splitlines()
    return lines[-1][:300] if lines else "it said nothing"


def _name(text: str) -> str:
    if not _NAME.match(text):
        raise ValueError(f"{clean(text)[:80]!r} is not the name of a host, job or pod")
    return text
