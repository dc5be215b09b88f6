"""Implements `dtdebug replay`: runs one recorded rank alone in one process."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from dtdebug.errors import UsageError
from dtdebug.experiments.collectives import job_program, recording_format, settings
from dtdebug.live.agent.arm import BOOTSTRAP
from dtdebug.privacy.sanitize import allowed_variables, clean
from dtdebug.storage import state_dir


class InputDifference(msgspec.Struct, frozen=True, kw_only=True):
    """First collective whose input differs."""

    index: int
    op: str
    what: str
    tensor: int | None = None
    file: str = ""
    line: int = 0


class ReplayResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a replay."""

    rank: int = 0
    inputs: int = 0
    """Number of input tensors of collectives that were compared."""
    identical: int = 0
    first_difference: InputDifference | None = None
    why: str = ""
    """Reason why the replay did not reach the end of the recording, or ""."""


def replay(
    folder: Path, rank: int, command: Sequence[str], *, begin: int = 1, pdb: bool = False, timeout: float = 3600.0
) -> ReplayResult:
    """Run the rank's program with the recorded results.

    Raises:
        UsageError: there is no such recording, nothing in it to replay, or its command can't be run here.

    """
    names = recording_format.ranks(folder)
    if rank not in names:
        raise UsageError(f"{folder}: no rank {rank}; recorded are {', '.join(str(r) for r in list(names)[:16])}")
    course = recording_format.load(folder, names[rank])
    _check(course, names[rank], begin)
    header = course.header
    words = (list(command) and job_program.of(command)) or _recorded_command(folder, header)
    where = _folder(header)
    script = job_program.script(words)
    if script is not None and not Path(where or "", script).is_file():
        raise UsageError(f"replay: {Path(where or '', script)}: no such file; name the program with --command")
    with tempfile.TemporaryDirectory(prefix="dtdebug-replay-") as place:
        told = {"recording": str(folder.absolute()), "name": names[rank], "begin": begin, "pdb": pdb}
        variables = settings.job_variables(Path(place), ["replay"], told)
        path = os.pathsep.join([BOOTSTRAP, *filter(None, [os.environ.get("PYTHONPATH")])])
        kept = {k: v for k, v in allowed_variables(header.environment).items() if "***" not in v}
        kept.pop("TORCHELASTIC_ERROR_FILE", None)  # of the launcher, which is gone
        environment = {**os.environ, **kept, **variables, "PYTHONPATH": path}
        status = _run(words, where, environment, pdb=pdb, timeout=timeout)
        try:
            data = state_dir.read_start(Path(place) / "result.json", 1 << 20)
            found = msgspec.json.decode(data, type=ReplayResult)
        except (OSError, ValueError):
            return ReplayResult(rank=rank, why=f"the program ended ({status}) before its first collective")
    why = found.why or (f"the program ended with {status}" if status != "exit code 0" else "")
    return msgspec.structs.replace(found, rank=rank, why=why)


def _check(course: recording_format.Course, name: str, begin: int) -> None:
    """Check that there is something to replay.

    Raises:
        UsageError: there is not, or the results of collectives can't be read.

    """
    if not course.records:
        raise UsageError(
            f"{course.data.parent}: no collective of {name} can be read"
            + "".join(f"; {note}" for note in course.notes[:1])
        )
    if begin > course.records[-1].number:
        raise UsageError(f"replay --from {begin}: the recording goes to collective #{course.records[-1].number}")
    if any(record.data for record in course.records):
        try:
            state_dir.open_regular(course.data).close()
        except OSError as error:
            raise UsageError(f"{course.data}: what collectives gave can't be read: {error.strerror}") from None


def _folder(header: recording_format.RecordingHeader) -> str | None:
    """Return the rank's working directory, or None if this machine does not have it."""
    try:
        return header.folder if Path(header.folder).is_dir() else None
    except (OSError, ValueError):
        return None


def _recorded_command(folder: Path, header: recording_format.RecordingHeader) -> list[str]:
    words = list(header.command)
    if any("multiprocessing" in word for word in words) or not words:  # a child: its parent's command starts it
        try:
            told: dict[str, Any] = msgspec.json.decode(state_dir.read_start(folder / settings.FILE, 1 << 20))
            words = job_program.of([str(word) for word in told["command"]])
        except (OSError, ValueError, KeyError):
            raise UsageError(f"{folder}: does not say what started rank {header.rank}; add --command") from None
    if any("***" in word for word in words):
        raise UsageError(f"{folder}: the command has a secret, which was not recorded; add --command")
    if any("\0" in word for word in words):
        raise UsageError(f"{folder}: the recorded command can't be one; add --command")
    words = job_program.of(words)
    print(f"dtdebug replay: runs {clean(shlex.join(words))[:500]}", file=sys.stderr)
    return words


def _run(words: Sequence[str], where: str | None, env: dict[str, str], *, pdb: bool, timeout: float) -> str:
    try:
        done = subprocess.run(
            words,
            cwd=where,
            env=env,
            stdin=None if pdb else subprocess.DEVNULL,
            stdout=None if pdb else subprocess.DEVNULL,
            check=False,
            timeout=timeout,
        )
    except OSError as error:
        raise UsageError(f"replay: {words[0]}: can't be started: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        return f"after {timeout:g} s by --timeout"
    return f"exit code {done.returncode}" if done.returncode >= 0 else f"signal {-done.returncode}"
