"""Finds the launch command within a shell script or a `bash -c` text, with variables expanded.

The script is read, never run.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

from dtdebug.doctor.launch import hostfile
from dtdebug.doctor.launch.shell import SHELLS
from dtdebug.errors import UsageError
from dtdebug.storage import safe_open
from dtdebug_taxonomy.source.shell import launch as launches
from dtdebug_taxonomy.source.shell.script import Script

_SIZE = 400_000
_PROGRAM = re.compile(r"(?:.*/)?python[\d.]*\Z")
_OPTIONS = frozenset(("-u", "-O", "-B", "-E", "-s", "-I"))
_DIRECTIVES = {
    ("--nodes", "-N"): "SLURM_NNODES", ("--ntasks", "-n"): "SLURM_NTASKS",
    ("--ntasks-per-node",): "SLURM_NTASKS_PER_NODE", ("--cpus-per-task", "-c"): "SLURM_CPUS_PER_TASK",
    ("--gpus-per-node",): "SLURM_GPUS_PER_NODE",
}  # fmt: skip
"""Script option -> variable that Slurm sets from it (https://slurm.schedmd.com/sbatch.html)."""


class ScriptCommand(NamedTuple):
    """Command that a script starts."""

    words: list[str]
    """Command that starts the ranks; empty if the script has none."""
    exported: dict[str, str]
    """Variables that the script sets."""
    many: int
    """Number of such commands."""
    folder: str
    """Folder where the command starts; `.` if the script does not change it."""


def find_command(
    command: Sequence[str], variables: Mapping[str, str], kind: Callable[[Sequence[str]], int]
) -> ScriptCommand | None:
    """Return the command that a script starts, or None without a script; `kind` rates how likely words start ranks.

    Raises:
        UsageError: the script can't be read.

    """
    place = _place(command)
    if place is None:
        return None
    from dtdebug.doctor.launch.shell import interpreter

    text, path = command[place], Path(command[0])
    if not _is_text(command, place):
        path = Path(text)
        try:
            text = safe_open.read_text(path, _SIZE)
        except OSError as error:
            raise UsageError(f"{path}: can't be read: {error.strerror}") from None
    said = _directives(text) if not variables.get("SLURM_JOB_ID") else {}
    hosts, here = _slurm(text, variables)
    given = ({**said, **hosts, **variables}, command[place + 1 :], here)
    rows = [
        (_kind(f.words, kind), f)
        for f in interpreter.wanted_commands(text, str(path), given, lambda w: _kind(w, kind) > 0)
    ]
    best = max((k for k, _ in rows), default=0)
    chosen = [f for k, f in rows if k == best]
    if not chosen:
        return ScriptCommand([], said, 0, ".")
    first = chosen[-1] if best == 1 else chosen[0]  # among plain programs the last: earlier ones prepare
    return ScriptCommand(list(first.words), said | first.variables, len(chosen) if best > 1 else 1, first.folder)


def _kind(words: Sequence[str], kind: Callable[[Sequence[str]], int]) -> int:
    """Return the confidence that a command starts ranks: 1 python, 2 srun python, higher for launchers."""
    if (of_launcher := kind(words)) > 0:
        return of_launcher + 2
    at = next((i for i, w in enumerate(words[:40]) if _PROGRAM.match(w)), None)
    if at is None:
        return 0
    rest = [w for w in words[at + 1 : at + 4] if w not in _OPTIONS]
    if not rest or not (rest[0].endswith(".py") or (rest[0] == "-m" and rest[1:] and rest[1] not in ("pip", "venv"))):
        return 0
    return 2 if any(PurePath(w).name == "srun" for w in words[:at]) else 1


def _directives(text: str) -> dict[str, str]:
    """Return the variables that Slurm would set from the script's `#SBATCH` lines."""
    script = Script(text)
    rows = {to: d.value for names, to in _DIRECTIVES.items() if (d := script.directive(*names)) is not None and d.value}
    found = {to: value for to, value in rows.items() if value.isdecimal() and len(value) < 7}
    nodes, each = found.get("SLURM_NNODES", ""), found.get("SLURM_NTASKS_PER_NODE", "")
    if nodes:
        found["SLURM_JOB_NUM_NODES"] = nodes
    if nodes and each and "SLURM_NTASKS" not in found:
        found["SLURM_NTASKS"] = str(int(nodes) * int(each))
    return found


def _slurm(text: str, variables: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """Return Slurm's hosts under their old variable name, and the host for which the script is read."""
    said = variables.get("SLURM_JOB_NODELIST", "")
    first = next(iter(hostfile.slurm(said)), "")
    if not first:
        return {}, socket.gethostname()
    here = first if "srun" in text else socket.gethostname()  # a batch script runs on the first host
    return {"SLURM_NODELIST": said}, here


def _is_text(command: Sequence[str], place: int) -> bool:
    before = command[place - 1] if place else ""
    return before.startswith("-") and before.endswith("c")


def _place(command: Sequence[str]) -> int | None:
    """Return the index of the script's path or text among the words, or None."""
    for index, word in enumerate(command[:8]):
        if PurePath(word).name in launches.PROGRAMS:  # what follows is started on each rank
            return None
        if PurePath(word).name in SHELLS:
            rest = index + 1
            while rest < len(command) and command[rest].startswith("-"):
                if command[rest].endswith("c"):  # a text, not a file; behind a launcher each host has its own
                    return rest + 1 if index == 0 and rest + 1 < len(command) else None
                rest += 1
            return rest if rest < len(command) else None
        if index == 0 and word.endswith((".sh", ".slurm", ".sbatch")):
            return index
    return None
