"""Finds the launch command within a shell script or a `bash -c` text, with variables expanded.

The script is read from top to bottom and never run. `if`, `case` and loops are not decided: what is set in them is
unknown.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

from dtdebug.doctor.launch import hostfile
from dtdebug.doctor.launch.expansion import Scope, is_known
from dtdebug.errors import UsageError
from dtdebug.storage import safe_open
from dtdebug_taxonomy import named_files
from dtdebug_taxonomy.source.shell import launch as launches
from dtdebug_taxonomy.source.shell.commands import Assignment, Command
from dtdebug_taxonomy.source.shell.script import Script

SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "sbatch"))
_SETS = frozenset(("export", "declare", "typeset", "local", "readonly", "env"))
_READS = frozenset(("read", "mapfile", "readarray", "getopts", "let"))
_TESTS = frozenset(("[", "[[", "test", "case"))
_SIZE, _DEEPEST, _FOUND, _ITEMS = 400_000, 4, 200, 5_000
"""Maximum characters of a script, nesting of scripts, launch commands, and elements of an array."""
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
    """Known variables that the script sets."""
    many: int
    """Number of such commands."""
    folder: str
    """Folder where the command starts; `.` if the script does not change it."""
    why: dict[str, str]
    """Variable that the script sets -> why its value is unknown."""


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
    text, path = command[place], Path(command[0])
    if not _is_text(command, place):
        path = Path(text)
        try:
            text = safe_open.read_text(path, _SIZE)
        except OSError as error:
            raise UsageError(f"{path}: can't be read: {error.strerror}") from None
    said = _directives(text) if not variables.get("SLURM_JOB_ID") else {}
    hosts, here = _slurm(text, variables)
    scope = Scope({**said, **hosts, **variables}, command[place + 1 :], str(path), here)
    reader = _Reader(scope, lambda words: _kind(words, kind))
    reader.read(text)
    best = max((rating for rating, _ in reader.found), default=0)
    chosen = [found for rating, found in reader.found if rating == best]
    if not chosen:
        return ScriptCommand([], said, 0, ".", {})
    first = chosen[-1] if best == 1 else chosen[0]  # among plain programs the last: earlier ones prepare
    return first._replace(exported=said | first.exported, many=len(chosen) if best > 1 else 1)


class _Reader:
    """Collects the launch commands of a script and of the scripts and texts that it starts."""

    def __init__(self, scope: Scope, rate: Callable[[Sequence[str]], int]) -> None:
        self.found: list[tuple[int, ScriptCommand]] = []
        self._scope, self._rate = scope, rate
        self._before = dict(scope.variables)
        self._maybe = ""
        """Why what is set here is unknown, or ""."""

    def read(self, text: str, before: tuple[str, ...] = (), depth: int = 0) -> None:
        """Read a shell text; `before` are the words in front of the shell that runs it."""
        self._scope.left -= len(text)
        outer = self._maybe
        for command in Script(text).commands if depth < _DEEPEST and self._scope.left > 0 else ():
            if command.depth or self._scope.left <= 0:
                continue
            arguments, words = self._scope.arguments, [arm.word for arm in command.arms]
            joined = f"is set after `{command.joined}`" if command.joined in ("&&", "||") else ""
            self._maybe = outer or next((f"is set in `{w}`" for w in words if w not in ("{", "(")), joined)
            if "{" in words:  # maybe a function, with arguments of its own
                self._scope.arguments = None
            self._command(command, text, before, depth)
            if "{" in words:
                self._scope.arguments = arguments
        self._maybe = outer

    def _command(self, command: Command, text: str, before: tuple[str, ...], depth: int) -> None:
        scope = self._scope
        first = command.words[0].text if command.words else ""
        if not command.words or first in _SETS:
            for assignment in command.assignments:
                self._assign(assignment, text)
            if first != "env":
                return
        words = [w for word in command.words for w in scope.split(word, text[word.span.start : word.span.end])]
        if not words or first in _TESTS:
            return
        if first in ("for", "select", "unset") or first in _READS:
            names = words[1:2] if first in ("for", "select") else words[1:]
            for name in (n.partition("=")[0] for n in names):
                scope.forget(name, f"is changed by `{first}`")
        elif first == "eval":
            whole = " ".join(scope.expand(w.text) for w in command.words[1:]).replace("\\\n", " ")
            self.read(" ".join(whole.split()), before, depth + 1)
        elif first in ("source", "."):
            self._follow([*words[1:2], *(words[2:] or scope.arguments or [])], before, depth)
        elif first == "shift":
            count = int(words[1]) if words[1:] and re.fullmatch(r"\d{1,3}", words[1]) else 1
            scope.arguments = None if self._maybe or scope.arguments is None else scope.arguments[count:]
        elif first == "cd" and len(words) > 1:
            alone = words[1].startswith(("/", "~", "$", "`")) or scope.folder == "."
            scope.folder = "$PWD" if self._maybe else words[1] if alone else f"{scope.folder}/{words[1]}"
        else:
            self._start(command, words, before, depth)

    def _assign(self, assignment: Assignment, text: str) -> None:
        scope, name, value = self._scope, assignment.name, assignment.value.text
        is_array = bool(assignment.items) or value == "()"
        if text[assignment.span.end : assignment.span.end + 1] == "[":
            scope.forget(name, "is set item by item")
        elif self._maybe and not (is_array and assignment.adds):
            scope.forget(name, self._maybe)
        elif is_array:
            rows = scope.arrays.get(name, []) if assignment.adds else []
            for item in assignment.items if not self._maybe else ():
                rows += scope.split(item, text[item.span.start : item.span.end])
            scope.forget(name, self._maybe)
            if self._maybe:
                rows.append(f"${{{name}[@]}}")
            else:
                del scope.why[name]
            scope.arrays[name] = rows[:_ITEMS] if len(rows) > _ITEMS else rows
        else:
            scope.assign(name, (scope.expand(f"${name}") if assignment.adds else "") + scope.expand(value))

    def _start(self, command: Command, words: list[str], before: tuple[str, ...], depth: int) -> None:
        """Collect a launch command, or follow a shell with its own text or script."""
        for at, word in enumerate(words[:-1]):
            if PurePath(word).name in SHELLS and self._shell(words[at + 1 :], (*before, *words[:at]), depth):
                return
        whole = [*before, *words]
        rating = self._rate(whole) if len(self.found) < _FOUND else 0
        if rating <= 0:
            return
        scope = self._scope
        kept = scope.variables, scope.why
        scope.variables, scope.why = dict(scope.variables), dict(scope.why)
        for assignment in command.assignments:  # for this command alone
            scope.assign(assignment.name, scope.expand(assignment.value.text))
        own = {n: v for n, v in scope.variables.items() if self._before.get(n) != v}
        why = scope.why | {n: f"comes from `{v[:60]}`" for n, v in own.items() if not is_known(v)}
        exported = {n: v for n, v in own.items() if is_known(v)}
        self.found.append((rating, ScriptCommand(whole, exported, 1, scope.folder, why)))
        scope.variables, scope.why = kept

    def _shell(self, rest: list[str], before: tuple[str, ...], depth: int) -> bool:
        """Follow a shell's `-c TEXT` or an existing script; False if there is neither."""
        while rest and rest[0].startswith("-"):
            option, *rest = rest
            if option.endswith("c") and rest:
                self.read(rest[0], before, depth + 1)
                return True
        return self._follow(rest, before, depth)

    def _follow(self, rest: list[str], before: tuple[str, ...], depth: int) -> bool:
        """Read a script with its arguments, if the file exists."""
        scope, path = self._scope, Path(self._scope.folder, *rest[:1])
        if not rest or not is_known(rest[0]):
            return False
        try:
            text = named_files.read_file(path, _SIZE).decode(errors="replace") if path.is_file() else None
        except (OSError, ValueError):
            text = None
        if text is None:
            return False
        kept = scope.path, scope.arguments
        scope.path, scope.arguments = str(path), rest[1:]
        self.read(text, before, depth + 1)
        scope.path, scope.arguments = kept
        return True


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
