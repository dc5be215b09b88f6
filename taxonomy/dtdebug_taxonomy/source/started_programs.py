"""Python programs that a script starts: their launcher, their arguments, and their text."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import NamedTuple

from dtdebug_taxonomy.source.config.document import Config
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.config_files import upward
from dtdebug_taxonomy.source.shell.commands import Command, Word
from dtdebug_taxonomy.source.shell.launch import PYTHON, LaunchCommand, launch_of
from dtdebug_taxonomy.source.shell.script import Script

_UP = 6
"""Number of folders above a script that are searched for its programs: it may be run from there."""
_LONGEST = 200
"""Maximum length of the folders that a script descends into, in characters."""
_BEFORE = re.compile(r"srun|mpirun|mpiexec|orterun|nohup|env|exec|time|setsid|nice|numactl|taskset|stdbuf|command")
"""Programs that may precede `python` and pass their environment on."""
_HERE = re.compile(r"(\$\(|`)\s*dirname\b.*(\$0|BASH_SOURCE)|\$\{(0|BASH_SOURCE(\[0\])?)%/\*\}", re.DOTALL)
"""Folder of the script itself, as scripts determine it."""
_BESIDE = re.compile(r"\$\(dirname [\"']?\$(0|\{?BASH_SOURCE(\[0\])?\}?)[\"']?\)/")


class StartedProgram(NamedTuple):
    """Command that starts a Python program."""

    command: Command
    launch: LaunchCommand | None
    """None if no launcher of ranks starts it."""
    before: tuple[Word, ...]
    """Words before `python`, or before the launcher: `srun --ntasks=4`."""
    python: Word | None
    """None after a launcher."""
    program: Word
    arguments: tuple[Word, ...]
    """Arguments of the program."""
    code: Code | None
    """Its text; None if there is no such file, or if it is ambiguous."""
    folder: str
    """Folder, relative to the script's, in which it is started; `?` if unknown."""

    @property
    def name(self) -> str:
        """Name of the program, without its folder."""
        return (self.code.path if self.code is not None else self.program.text).rpartition("/")[2]

    def runs_under(self, *names: str) -> bool:
        """True if one of these programs starts it."""
        return any(w.text.rsplit("/", 1)[-1] in names for w in self.before)


def started_programs(script: Script) -> list[StartedProgram]:
    """Return the programs that a script starts, by place; cached on the script."""
    found: list[StartedProgram] | None = script.__dict__.get("_started")
    if found is None:
        found = script.__dict__["_started"] = list(_find_programs(script))
    return found


def long_options(script: Script, words: tuple[Word, ...]) -> Iterator[tuple[Word, str, str | None]]:
    """Yield (word, name, value or None) of the long options among the arguments of a program."""
    for at, word in enumerate(words):
        name, equals, value = word.text.partition("=")
        if name == "--":
            return
        if not name.startswith("--") or "$" in name or "`" in name or not re.fullmatch(r"--[\w.-]+", name):
            continue
        after = words[at + 1].text if at + 1 < len(words) else None
        yield word, name, script.resolve(value) if equals else script.resolve(after) if after else None


def _find_programs(script: Script) -> Iterator[StartedProgram]:
    folder = ""
    for command in script.commands:
        if command.name == "cd" and not command.depth and len(command.words) == 2:
            folder = _change_folder(folder, script.resolve(command.words[1].text))
            continue
        if not command.words:
            continue
        launch = launch_of(script, command)
        if launch is not None:
            if launch.program is not None and "--no-python" not in launch.options:
                is_module = "--module" in launch.options
                code = _read(script, folder, launch.program, is_module)
                yield StartedProgram(
                    command, launch, launch.before, None, launch.program, launch.arguments, code, folder
                )
            continue
        yield from _by_python(script, command, folder)


def _by_python(script: Script, command: Command, folder: str) -> Iterator[StartedProgram]:
    """Yield `python train.py`, after programs that pass on their environment and their processes."""
    if not (PYTHON.match(command.name) or _BEFORE.fullmatch(command.name)):
        return
    words = script.expand_words(command)
    at = next((i for i, w in enumerate(words) if PYTHON.match(w.text.rsplit("/", 1)[-1])), None)
    if at is None or any(w.text.startswith(("$", "`")) for w in words[:at]):
        return
    rest = at + 1
    while rest < len(words) and words[rest].text in {"-u", "-O", "-B", "-E", "-s", "-I"}:
        rest += 1
    is_module = rest < len(words) and words[rest].text == "-m"
    rest += is_module
    if rest >= len(words) or words[rest].text.startswith("-"):
        return
    code = _read(script, folder, words[rest], is_module)
    yield StartedProgram(
        command, None, tuple(words[:at]), words[at], words[rest], tuple(words[rest + 1 :]), code, folder
    )


def _change_folder(folder: str, to: str) -> str:
    """Return the folder, relative to the script's, after a `cd`; `?` if unknown."""
    if _HERE.search(to):
        return ""
    if to.startswith(("/", "~", "-")) or "$" in to or "`" in to or len(folder) > _LONGEST:
        return "?"
    return posixpath.join(folder, to)


def _read(script: Script, folder: str, program: Word, is_module: bool) -> Code | None:
    """Return the program's text: the only file of that name where the script, or its project, may be run."""
    name = script.resolve(program.text)
    beside = _BESIDE.match(name)
    if beside is not None:
        folder, name = "", name[beside.end() :]
    if is_module:
        name = name.replace(".", "/") + ".py"
    if script.project is None or not name.endswith(".py"):
        return None
    found = [code for p in _paths(script, folder, name, 0 if beside else _UP) if (code := script.project.file(p))]
    return found[0] if len(found) == 1 else None


def document(script: Script, start: StartedProgram, name: str) -> Config | None:
    """Return the JSON or YAML file that a command names: the only one of that name where the script may be run."""
    beside = _BESIDE.match(name)
    folder, name = ("", name[beside.end() :]) if beside else (start.folder, name)
    if script.project is None or not name.endswith((".json", ".yaml", ".yml")):
        return None
    found = [c for p in _paths(script, folder, name, 0 if beside else _UP) if (c := script.project.document(p))]
    return found[0] if len(found) == 1 else None


def _paths(script: Script, folder: str, name: str, above: int) -> list[str]:
    """Return possible places of a file with a relative name: below the script's folder, and up to `above` above it."""
    if not script.path or name.startswith(("/", "~", "-")) or "$" in name or "`" in name:
        return []
    below = posixpath.join("" if folder == "?" else folder, name)
    return upward(posixpath.dirname(script.path), below, above)
