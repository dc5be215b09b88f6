"""Applies single commands of a script to its variables, and collects the wanted ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

from dtdebug.doctor.launch.shell import SHELLS
from dtdebug.doctor.launch.shell.variables import Values, is_known
from dtdebug.storage import safe_open
from dtdebug_taxonomy.source.shell.commands import Assignment, Command, Heredoc
from dtdebug_taxonomy.source.text import Span

DEEPEST = 4
"""Maximum nesting of scripts and texts."""
_SETS = frozenset(("export", "declare", "typeset", "local", "readonly", "env"))
_OTHER_TEXT = frozenset(("eval", "source", "."))
_SIZE = 400_000
_FOUND, _LONGEST, _MOST = 200, 50_000, 5_000
"""Maximum number of wanted commands, characters of a value, elements of an array."""
_HEREDOC = re.compile(r"-d *(?:''|\"\") .{0,200}<<-? *[\"'\\\\A-Za-z_]")
_NAME = re.compile(r"[A-Za-z_]\w*")


class WantedCommand(NamedTuple):
    """Wanted command in a script."""

    words: tuple[str, ...]
    variables: dict[str, str]
    """Variables that the script has set at this place."""
    folder: str
    """Folder where it starts: `.` if the script has not changed it."""
    place: tuple[str, int]
    """Script, and offset in it."""


class Commands:
    """State of a walk through a script, and the effects of single commands."""

    def __init__(self, values: Values, wanted: Callable[[Sequence[str]], bool]) -> None:
        self.found: list[WantedCommand] = []
        self._values, self._wanted = values, wanted
        self._set: dict[str, None] = {}
        """Names that the script has set."""
        self._maybe = 0
        """Number of enclosing blocks that may be skipped."""
        self._status: bool | None = True
        self._steps, self._depth = 0, 0
        self._before: tuple[str, ...] = ()
        """Words before a shell that has a text or script."""
        self._text = ""
        self._heredocs: list[Heredoc] = []

    def go(self, text: str) -> None:
        """Run through all commands of a shell text."""
        raise NotImplementedError

    def _raw(self, span: Span) -> str:
        return self._text[span.start : span.end]

    def _do(self, command: Command, first: str) -> None:
        values = self._values
        if not command.words or first in _SETS:
            for assignment in command.assignments:
                self._assign(assignment)
            if first != "env":
                return
        words = [w for word in command.words for w in values.words(word, self._raw(word.span))]
        if not words:
            return
        if words[0] in _OTHER_TEXT:
            self._follow_text(command, words)
        elif words[0] == "shift":
            del values.arguments[: int(words[1]) if words[1:] and words[1].isdecimal() else 1]
        elif words[:2] == ["set", "--"]:
            values.arguments = words[2:]
        elif words[0] == "unset":
            for name in words[1:]:
                values.variables.pop(name, None)
        elif words[0] == "cd" and len(words) > 1:
            values.go_to("${PWD}" if self._maybe else words[1])
        elif words[0] in ("read", "mapfile", "readarray", "getopts"):
            self._lines(command)
        else:
            self._start(command, words)

    def _follow_text(self, command: Command, words: list[str]) -> None:
        """Follow `eval TEXT` or `source FILE`."""
        if words[0] == "eval":
            texts = (self._values.expand(w.text).replace("\\\n", " ") for w in command.words[1:])
            self.go(" ".join(" ".join(text.split()) for text in texts))
        elif len(words) > 1:
            self._script(self._before, words[1:], self._values.arguments)

    def _start(self, command: Command, words: list[str]) -> None:
        """Collect a program, or follow a shell with its own text or script."""
        before = self._before
        for at, word in enumerate(words[:-1]):
            if PurePath(word).name in SHELLS and self._shell(before + tuple(words[:at]), words[at + 1 :]):
                return
        if len(self.found) >= _FOUND or not self._wanted((*before, *words)):
            return
        own = {a.name: self._values.expand(a.value.text) for a in command.assignments}
        held = {n: v for n in self._set if (v := self._values.get(n)) is not None and is_known(v)}
        variables = held | {n: v for n, v in own.items() if is_known(v)}
        place = (self._values.path, command.span.start + (self._depth << 24))
        if place not in [f.place for f in self.found]:
            self.found.append(WantedCommand((*before, *words), variables, self._values.folder, place))

    def _shell(self, before: tuple[str, ...], rest: list[str]) -> bool:
        """Follow a shell's `-c TEXT` or an existing script; False if there is neither."""
        while rest and rest[0].startswith("-"):
            option, *rest = rest
            if option.endswith("c") and rest:
                self._run_text(before, rest[0], self._values.path, rest[1:] or self._values.arguments)
                return True
        return self._script(before, rest, rest[1:])

    def _script(self, before: tuple[str, ...], rest: list[str], arguments: list[str]) -> bool:
        """Follow a script if the file exists."""
        if not rest or not is_known(rest[0]) or self._depth >= DEEPEST:
            return False
        path = Path(self._values.folder, rest[0])
        try:
            text = safe_open.read_text(path, _SIZE) if path.is_file() else None
        except (OSError, ValueError):
            text = None
        if text is None:
            return False
        self._run_text(before, text, str(path), arguments)
        return True

    def _run_text(self, before: tuple[str, ...], text: str, path: str, arguments: list[str]) -> None:
        values = self._values
        kept = (self._before, values.path, values.arguments)
        self._before, values.path, values.arguments = before, path, list(arguments)
        self.go(text)
        self._before, values.path, values.arguments = kept

    # -- variables --------------------------------------------------------------------------------------

    def _lines(self, command: Command) -> None:
        """Apply `mapfile -t A < <(scontrol show hostnames ...)` and `read -d "" A <<EOF`; other input is unknown."""
        line = self._text[command.span.start :].partition("\n")[0]
        hosts = re.search(r"<\(( ?scontrol [^()]{1,200})\)", line)
        name = next((w.text for w in reversed(command.words[1:]) if _NAME.fullmatch(w.text)), "")
        said = self._values.expand(f"$({hosts[1]})") if hosts else "$"
        text = next((self._raw(h.span) for h in self._heredocs if h.span.start > command.span.start), None)
        if name and text is not None and _HEREDOC.search(line):
            self._put(name, self._values.expand(text.replace("\\\n", "")))
        elif name and is_known(said) and not self._maybe:
            self._values.arrays[name] = said.split()
        elif name:
            self._put(name, f"${{{name}}}")

    def _assign(self, assignment: Assignment) -> None:
        values, name = self._values, assignment.name
        if assignment.items or assignment.value.text == "()":
            items = [w for item in assignment.items for w in values.words(item, self._raw(item.span))]
            old = values.arrays.get(name, []) if assignment.adds else []
            values.arrays[name] = [*old, *([] if self._maybe else items)][:_MOST]
            if self._maybe:
                values.arrays[name].append(f"${{{name}[@]}}")
            return
        if self._text[assignment.span.end : assignment.span.end + 1] == "[":  # one element
            values.arrays.pop(name, None)
            return
        values.arrays.pop(name, None)
        text = assignment.value.text
        if values.get(name) is None:  # A="$A more" appends to an empty value
            text = re.sub(rf"\$(?:{name}\b|\{{{name}\}})", "", text)
        said = values.expand(text)
        self._put(name, values.variables.get(name, "") + said if assignment.adds else said)

    def _put(self, name: str, said: str) -> None:
        self._set[name] = None
        values = self._values
        if len(said) > _LONGEST or (self._maybe and values.variables.get(name) != said):
            said = f"${{{name}}}"
        values.variables[name] = said
