"""Walks through a script as a shell on this host would, and collects the wanted commands.

`if`, `case` and loops are followed if their condition is known. Otherwise all branches are visited, and the variables
that they set are unknown afterwards.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import groupby

from dtdebug.doctor.launch.shell import arithmetic
from dtdebug.doctor.launch.shell.builtins import DEEPEST, Commands, WantedCommand
from dtdebug.doctor.launch.shell.variables import Values, is_known
from dtdebug_taxonomy.source.shell.commands import Command
from dtdebug_taxonomy.source.shell.script import Script

_TURNS, _STEPS = 64, 20_000
"""Maximum turns of one loop; maximum commands in all."""
_AND_OR = re.compile(r"(&&|\|\|)")
_RANGE = re.compile(r"\{(\d{1,6})\.\.(\d{1,6})\}")


class Walk(Commands):
    """Walk through one script and those that it starts."""

    def go(self, text: str) -> None:
        """Run through all commands of a shell text."""
        if self._depth >= DEEPEST:
            return
        self._steps += len(text) // 100
        script, outer = Script(text), (self._text, self._heredocs)
        self._text, self._heredocs = text, script.heredocs
        self._depth += 1
        self._block([c for c in script.commands if not c.depth], 0)
        self._depth -= 1
        self._text, self._heredocs = outer

    # -- control flow -----------------------------------------------------------------------------------

    def _block(self, commands: Sequence[Command], level: int) -> None:
        for block, rows in groupby(commands, lambda c: c.arms[level].block if len(c.arms) > level else -1):
            if block < 0:
                for command in rows:
                    self._one(command)
            else:
                self._compound(list(rows), level)

    def _compound(self, commands: list[Command], level: int) -> None:
        kind = commands[0].arms[level].word
        parts = [
            (arm.part, list(rows)) for arm, rows in groupby(commands, lambda c: c.arms[level]) if self._steps < _STEPS
        ]
        if not parts:
            return
        if kind == "if":
            self._if(parts, level)
        elif kind == "case":
            self._case(parts, level)
        elif kind in ("for", "select"):
            self._for(parts, level)
        elif kind in ("while", "until"):
            self._while(parts, level, until=kind == "until")
        else:
            for _, rows in parts:
                self._block(rows, level + 1)

    def _if(self, parts: list[tuple[str, list[Command]]], level: int) -> None:
        open_: bool | None = True
        """The next branch is reached; None if unknown."""
        holds: bool | None = None
        for part, rows in parts:
            if open_ is False:
                return
            if part in ("", "elif"):
                holds = self._condition(rows, level)
            elif part == "then":
                self._if_so(holds if open_ else None if holds is not False else False, rows, level)
                open_ = False if holds and open_ else open_ if holds is False else None
            else:
                self._if_so(open_, rows, level)

    def _if_so(self, so: bool | None, rows: list[Command], level: int) -> None:
        if so is None:
            self._maybe += 1
            self._block(rows, level + 1)
            self._maybe -= 1
        elif so:
            self._block(rows, level + 1)

    def _case(self, parts: list[tuple[str, list[Command]]], level: int) -> None:
        head = parts[0][1][0].words
        subject = self._expand_text(head[1].text) if len(head) > 1 else "$"
        for pattern, rows in parts[1:]:
            choices = [self._expand_text(p) for p in pattern.strip("()").split("|")]
            if not is_known(subject) or not all(map(is_known, choices)):
                self._if_so(None, rows, level)
            elif any(fnmatchcase(subject, c) for c in choices):
                self._if_so(True, rows, level)
                return

    def _for(self, parts: list[tuple[str, list[Command]]], level: int) -> None:
        head = parts[0][1][0]
        words = [w.text for w in head.words]
        body = [c for part, rows in parts if part == "do" for c in rows]
        if len(words) < 3 or words[2] != "in":
            self._if_so(None, body, level)
            return
        items = [text for word in head.words[3:] for text in self._values.words(word, self._raw(word.span))]
        between = _RANGE.fullmatch(words[3]) if len(words) == 4 else None
        if between:  # {1..4}
            items = list(map(str, range(int(between[1]), min(int(between[2]), int(between[1]) + _TURNS) + 1)))
        for item in items[:_TURNS]:
            self._put(words[1], item)
            self._block(body, level + 1)

    def _while(self, parts: list[tuple[str, list[Command]]], level: int, *, until: bool) -> None:
        head = [c for part, rows in parts if part != "do" for c in rows]
        body = [c for part, rows in parts if part == "do" for c in rows]
        for _ in range(_TURNS):
            holds = self._condition(head, level)
            if holds is None:
                self._if_so(None, body, level)
                return
            if holds is until or self._steps > _STEPS:
                return
            before = len(self._values.arguments), dict(self._values.variables)
            self._block(body, level + 1)
            if before == (len(self._values.arguments), self._values.variables):
                return

    def _condition(self, rows: list[Command], level: int) -> bool | None:
        """Return the success of the last of these commands; None unless it is a test."""
        self._status = None
        for command in rows:
            if len(command.arms) == level + 1:
                self._one(command, condition=True)
        return self._status

    def _expand_text(self, text: str) -> str:
        """Expand a text as a shell on this host: unset variables are empty."""
        self._values.empty = True
        found = self._values.expand(text)
        self._values.empty = False
        return found

    def _evaluate_test(self, command: Command) -> bool | None:
        """Evaluate `[ ... ]`, `[[ ... ]]`, `test ...` or `((...))`."""
        first = command.words[0].text
        if first.startswith("(("):
            found = arithmetic.sum_value(self._expand_text(first[2:-2]), self._values.get)
            return None if found is None else bool(found)
        raw = self._raw(command.span)
        if first == "[[" and len(pieces := _AND_OR.split(raw.removeprefix("[[").rstrip("] \t"))) > 1:
            sides = [self._evaluate_test(c) for p in pieces[::2] for c in Script(f"test {p}").commands if not c.depth]
            if None in sides or len(set(pieces[1::2])) > 1:
                return None
            return all(sides) if pieces[1] == "&&" else any(sides)
        words = [self._expand_text(w.text) for w in command.words[1:] if w.text not in ("]", "]]")]
        return arithmetic.test_holds(words)

    def _is_there(self, command: Command) -> bool | None:
        """Return whether this host has the PROGRAM of `command -v PROGRAM` and the like; None for other commands."""
        words = [self._expand_text(w.text) for w in command.words if not w.text.startswith("-")]
        if len(words) == 2 and words[0] in ("command", "which", "type", "hash") and is_known(words[1]):
            return shutil.which(words[1]) is not None
        return None

    # -- commands ----------------------------------------------------------------------------------

    def _one(self, command: Command, *, condition: bool = False) -> None:
        self._steps += 1
        if self._steps > _STEPS:
            return
        sure = True
        if command.joined in ("&&", "||"):
            if self._status is (command.joined == "||"):
                return
            sure = self._status is not None
        first = command.words[0].text if command.words else ""
        if first in ("[", "[[", "test") or first.startswith("(("):
            holds = self._evaluate_test(command)
            turned = self._text[: command.span.start].rstrip(" \t").endswith("!")
            self._status = holds if holds is None or not turned else not holds
            return
        self._maybe += not sure
        self._do(command, first)
        self._maybe -= not sure
        self._status = self._is_there(command) if condition else True


def wanted_commands(
    text: str, path: str, given: tuple[Mapping[str, str], Sequence[str], str], wanted: Callable[[Sequence[str]], bool]
) -> list[WantedCommand]:
    """Return a script's wanted commands in order; `given`: variables, arguments, this host's name."""
    variables, arguments, here = given
    walk = Walk(Values(variables, arguments, path, here), wanted)
    walk.go(text)
    return walk.found
