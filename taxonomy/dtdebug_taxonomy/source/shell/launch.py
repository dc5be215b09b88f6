"""Commands that start ranks: which launcher, its options, the program and the program's own arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from dtdebug_taxonomy.knowledge import facts
from dtdebug_taxonomy.source.shell.commands import Command, Word
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.text import Span, whole_number

WORDS = ("torchrun", "torch.distributed", "deepspeed", "accelerate", "horovodrun")
"""Strings, one of which is in any text that starts ranks with one of these launchers."""
_MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate launch",
    "deepspeed.launcher.runner": "deepspeed",
}
PROGRAMS = {"torchrun": "torchrun", "deepspeed": "deepspeed", "horovodrun": "horovodrun"}
"""Name of a program -> its launcher."""
PYTHON = re.compile(r"^(python[\d.]*|\$\{?PYTHON\w*\}?|\{sys\.executable\})$", re.IGNORECASE)
"""Name of an interpreter, also as a variable."""
_WRAPPERS = re.compile(
    r"srun|mpirun|mpiexec|nohup|env|exec|sudo|time|timeout|numactl|taskset|p?d?ssh|docker|podman|singularity|apptainer|"
    r"shifter|enroot|conda|mamba|micromamba|poetry|uv|pipenv|pdm|pixi|hatch|nsys|ncu|stdbuf|setsid|nice|ionice|eval|"
    r"xargs|run|command|proxychains|tmux|screen|coverage"
)
"""Programs that run the command in their arguments."""
_OLD_LAUNCH = {"--use-env": False, "--use_env": False}
"""Options that only torch.distributed.launch has: option -> whether a value follows."""
_UNKNOWN = re.compile(r"^(\$\{?[\w@*#!\[\]]+\}?|\$\(.*\)|`.*`|\{\w+\})$", re.DOTALL)


class GivenOption(NamedTuple):
    """Option of a command with its value."""

    word: Word
    value: Word | None


class LaunchCommand(NamedTuple):
    """Command that starts ranks."""

    command: Command
    launcher: str
    """As in the table of launchers: `torchrun`, `deepspeed`, `accelerate launch`, `horovodrun`."""
    at: Word
    before: tuple[Word, ...]
    """Words before the launcher: `srun --ntasks=4`."""
    options: dict[str, GivenOption]
    """Options by their first long spelling."""
    program: Word | None
    arguments: tuple[Word, ...]
    """Arguments of the program."""
    certain: bool
    """True if all words before the program are known."""

    @property
    def place(self) -> Span:
        """Span of the launcher in the command, although a variable elsewhere may contain its name."""
        inside = self.command.span.start <= self.at.span.start < self.command.span.end
        return self.at.span if inside else self.command.words[0].span

    def number(self, script: Script, *names: str) -> int | None:
        """Return the number that one of these options is set to, if known."""
        for name in names:
            given = self.options.get(name)
            if given is not None and given.value is not None:
                text = script.resolve(given.value.text)
                return whole_number(text)
        return None


def launches(script: Script) -> Iterator[LaunchCommand]:
    """Yield the commands of a script that start ranks, by place."""
    for command in script.commands:
        if command.words and (found := launch_of(script, command)) is not None:
            yield found


def launch_of(script: Script, command: Command) -> LaunchCommand | None:
    """Return the launch command that a command is, or None."""
    first = command.words[0].text
    may = command.name in PROGRAMS or command.name == "accelerate" or _WRAPPERS.fullmatch(command.name)
    if not (may or PYTHON.match(command.name) or first.startswith(("$", "{"))):
        return None
    words = script.expand_words(command)
    for at, word in enumerate(words):
        name = word.text.rsplit("/", 1)[-1]
        following = [w.text for w in words[at + 1 : at + 2]]
        if name in PROGRAMS:
            return _parse_launch(command, PROGRAMS[name], words, at, at + 1)
        if name == "accelerate" and following == ["launch"]:
            return _parse_launch(command, "accelerate launch", words, at, at + 2)
        rest = at + 1
        while rest < len(words) and words[rest].text in {"-u", "-O", "-B", "-E", "-s", "-I"}:
            rest += 1
        module = words[rest + 1].text if rest + 1 < len(words) and words[rest].text == "-m" else ""
        if module in _MODULES:
            return _parse_launch(command, _MODULES[module], words, at, rest + 2)
        if PYTHON.match(name):
            return None
        if at == 0 and not (_WRAPPERS.fullmatch(name) or word.text.startswith(("$", "{"))):
            return None
    return None


@lru_cache(maxsize=8)
def _spellings(launcher: str) -> dict[str, tuple[str, bool]]:
    """Return spelling -> (first long spelling, whether a value follows)."""
    options = facts.launchers()[launcher].options
    found = {s: (name, o.takes_value) for name, o in options.items() for s in o.spellings}
    if launcher == "torchrun":
        found |= {s: (s, takes) for s, takes in _OLD_LAUNCH.items()}
    return found


def option(launcher: str, text: str) -> tuple[str, bool] | None:
    """Return the option of a launcher that a word sets: (first long spelling, whether a value follows)."""
    known = _spellings(launcher)
    name = text.partition("=")[0]
    if name in known:
        return known[name]
    if not name.startswith("--") or len(name) < 4:
        return None
    names = {known[s] for s in known if s.startswith(name)}
    return names.pop() if len(names) == 1 else None


def _parse_launch(command: Command, launcher: str, words: list[Word], at: int, start: int) -> LaunchCommand:
    options: dict[str, GivenOption] = {}
    certain, i, program = True, start, None
    while i < len(words):
        word = words[i]
        text = word.text
        i += 1
        if text.startswith("-") and len(text) > 1:
            known = option(launcher, text)
            if known is None:
                certain = False
                continue
            name, takes = known
            value = _after_equals(word) if "=" in text else None
            if takes and value is None and i < len(words):
                value = words[i]
                i += 1
            options[name] = GivenOption(word, value)
        elif _UNKNOWN.match(text) and i < len(words):
            certain = False
        else:
            program = word
            break
    return LaunchCommand(command, launcher, words[at], tuple(words[:at]), options, program, tuple(words[i:]), certain)


def _after_equals(word: Word) -> Word:
    name, _, value = word.text.partition("=")
    start = word.span.start + len(name) + 1
    span = Span(min(start, word.span.end), word.span.end)
    quoted = span.end - span.start == len(value) + 2 and not word.is_quoted
    return Word(span, value, Span(span.start + 1, span.end - 1) if quoted else span)
