"""`dtdebug replay`: one recorded rank alone in one process."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from dtdebug import state
from dtdebug.agent.arming import BOOTSTRAP
from dtdebug.course import program, recording, settings
from dtdebug.errors import UsageError


class At(msgspec.Struct, frozen=True, kw_only=True):
    """The first collective whose input is another one."""

    index: int
    op: str
    what: str
    tensor: int | None = None
    file: str = ""
    line: int = 0


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay has shown."""

    rank: int = 0
    inputs: int = 0
    """Tensors that the program gave to its collectives, and that were compared."""
    identical: int = 0
    first_difference: At | None = None
    why: str = ""
    """Why it did not get to the end of the recording; empty if it did."""


def replay(
    folder: Path, rank: int, command: Sequence[str], *, begin: int = 1, pdb: bool = False, timeout: float = 3600.0
) -> Replayed:
    """Runs the rank's program with the recorded answers.

    Raises:
        UsageError: there is no such recording, or its command can't be run here.

    """
    names = recording.ranks(folder)
    if rank not in names:
        raise UsageError(f"{folder}: no rank {rank}; recorded are {', '.join(str(r) for r in list(names)[:16])}")
    header = recording.load(folder, names[rank]).header
    words = (list(command) and program.of(command)) or _recorded(folder, header)
    with tempfile.TemporaryDirectory(prefix="dtdebug-replay-") as place:
        told = {"recording": str(folder.absolute()), "name": names[rank], "begin": begin, "pdb": pdb}
        variables = settings.job_variables(Path(place), ["replay"], told)
        path = os.pathsep.join([BOOTSTRAP, *filter(None, [os.environ.get("PYTHONPATH")])])
        kept = {k: v for k, v in header.environment.items() if "***" not in v}
        status = _run(words, header, {**os.environ, **kept, **variables, "PYTHONPATH": path}, pdb=pdb, timeout=timeout)
        try:
            data = state.read_start(Path(place) / "result.json", 1 << 20)
            found = msgspec.json.decode(data, type=Replayed)
        except (OSError, ValueError):
            return Replayed(rank=rank, why=f"the program ended ({status}) before its first collective")
    why = found.why or (f"the program ended with {status}" if status != "exit code 0" else "")
    return msgspec.structs.replace(found, rank=rank, why=why)


def _recorded(folder: Path, header: recording.RecordingHeader) -> list[str]:
    words = list(header.command)
    if any("multiprocessing" in word for word in words) or not words:  # a child: its parent's command starts it
        try:
            told: dict[str, Any] = msgspec.json.decode(state.read_start(folder / settings.FILE, 1 << 20))
            words = program.of([str(word) for word in told["command"]])
        except (OSError, ValueError, KeyError):
            raise UsageError(f"{folder}: does not say what started rank {header.rank}; add --command") from None
    if any("***" in word for word in words):
        raise UsageError(f"{folder}: the command has a secret, which was not recorded; add --command")
    return words


def _run(
    words: Sequence[str], header: recording.RecordingHeader, env: dict[str, str], *, pdb: bool, timeout: float
) -> str:
    where = header.folder if Path(header.folder).is_dir() else None
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
