"""The Python programs that a script starts: by which launcher, with which arguments, and their text."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import NamedTuple

from dtdebug_taxonomy.source.commands import Command, Word
from dtdebug_taxonomy.source.document import Config
from dtdebug_taxonomy.source.files_read import upward
from dtdebug_taxonomy.source.launch import PYTHON, LaunchCommand, launch_of
from dtdebug_taxonomy.source.python import Code
from dtdebug_taxonomy.source.shell import Script

_UP = 6
"""So many folders above a script are looked in for what it starts: it may be run from there."""
_LONGEST = 200
"""Characters of the folders that a script goes down into."""
_BEFORE = re.compile(r"srun|mpirun|mpiexec|orterun|nohup|env|exec|time|setsid|nice|numactl|taskset|stdbuf|command")
"""What may stand before `python` and hands its environment on."""
_HERE = re.compile(r"(\$\(|`)\s*dirname\b.*(\$0|BASH_SOURCE)|\$\{(0|BASH_SOURCE(\[0\])?)%/\*\}", re.DOTALL)
"""The folder of the script itself, as scripts ask for it."""
_BESIDE = re.compile(r"\$\(dirname [\"']?\$(0|\{?BASH_SOURCE(\[0\])?\}?)[\"']?\)/")


class Started(NamedTuple):
    """A command that starts a Python program."""

    command: Command
    launch: LaunchCommand | None
    """None where no launcher of ranks starts it."""
    before: tuple[Word, ...]
    """Words before `python`, or before the launcher: `srun --ntasks=4`."""
    python: Word | None
    """None after a launcher."""
    program: Word
    arguments: tuple[Word, ...]
    """Of the program."""
    code: Code | None
    """Its text; None where there is no such file, or more than one that could be meant."""
    folder: str
    """Below that of the script, where it is started; `?` where that is not known."""

    @property
    def name(self) -> str:
        """The program, without its folder."""
        return (self.code.path if self.code is not None else self.program.text).rpartition("/")[2]

    def runs_under(self, *names: str) -> bool:
        """Whether one of these programs starts it."""
        return any(w.text.rsplit("/", 1)[-1] in names for w in self.before)


def started(script: Script) -> list[Started]:
    """What a script starts, by place; kept with it."""
    found: list[Started] | None = script.__dict__.get("_started")
    if found is None:
        found = script.__dict__["_started"] = list(_started(script))
    return found


def given(script: Script, words: tuple[Word, ...]) -> Iterator[tuple[Word, str, str | None]]:
    """The long options among the arguments of a program: the word, its name, and its value where it has one."""
    for at, word in enumerate(words):
        name, equals, value = word.text.partition("=")
        if name == "--":
            return
        if not name.startswith("--") or "$" in name or "`" in name or not re.fullmatch(r"--[\w.-]+", name):
            continue
        after = words[at + 1].text if at + 1 < len(words) else None
        yield word, name, script.resolve(value) if equals else script.resolve(after) if after else None


def _started(script: Script) -> Iterator[Started]:
    folder = ""
    for command in script.commands:
        if command.name == "cd" and not command.depth and len(command.words) == 2:
            folder = _changed(folder, script.resolve(command.words[1].text))
            continue
        if not command.words:
            continue
        launch = launch_of(script, command)
        if launch is not None:
            if launch.program is not None and "--no-python" not in launch.options:
                is_module = "--module" in launch.options
                code = _read(script, folder, launch.program, is_module)
                yield Started(command, launch, launch.before, None, launch.program, launch.arguments, code, folder)
            continue
        yield from _by_python(script, command, folder)


def _by_python(script: Script, command: Command, folder: str) -> Iterator[Started]:
    """`python train.py`, after what hands on its environment and its processes."""
    if not (PYTHON.match(command.name) or _BEFORE.fullmatch(command.name)):
        return
    words = script.expanded(command)
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
    yield Started(command, None, tuple(words[:at]), words[at], words[rest], tuple(words[rest + 1 :]), code, folder)


def _changed(folder: str, to: str) -> str:
    """The folder below that of the script after a `cd`; `?` where it is not known."""
    if _HERE.search(to):
        return ""
    if to.startswith(("/", "~", "-")) or "$" in to or "`" in to or len(folder) > _LONGEST:
        return "?"
    return posixpath.join(folder, to)


def _read(script: Script, folder: str, program: Word, is_module: bool) -> Code | None:
    """The program's text: the one file of that name where the script, or its project, may be run."""
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


def document(script: Script, start: Started, name: str) -> Config | None:
    """The JSON or YAML file that a command names: the one of that name where the script may be run."""
    beside = _BESIDE.match(name)
    folder, name = ("", name[beside.end() :]) if beside else (start.folder, name)
    if script.project is None or not name.endswith((".json", ".yaml", ".yml")):
        return None
    found = [c for p in _paths(script, folder, name, 0 if beside else _UP) if (c := script.project.document(p))]
    return found[0] if len(found) == 1 else None


def _paths(script: Script, folder: str, name: str, above: int) -> list[str]:
    """Where a file of a relative name may be: below the folder of the script, and of so many above it."""
    if not script.path or name.startswith(("/", "~", "-")) or "$" in name or "`" in name:
        return []
    below = posixpath.join("" if folder == "?" else folder, name)
    return upward(posixpath.dirname(script.path), below, above)
