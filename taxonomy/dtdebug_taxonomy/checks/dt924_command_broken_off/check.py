"""Options run as a separate command because the command before them ended too early."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.source.shell.commands import Command
from dtdebug_taxonomy.source.shell.launch import PROGRAMS, PYTHON
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.text import Span

_OPTION = re.compile(r"--?[A-Za-z][\w.-]*(=.*)?", re.DOTALL)
_STARTS = {*PROGRAMS, "accelerate", "srun", "mpirun"}
_BLANK = re.compile(r"\\([ \t]+)\r?\n[ \t]*\Z")
_NOTE = re.compile(r"\\[ \t]+#[^\n]{0,500}\n[ \t]*\Z")
_COMMENT = re.compile(r"\n[ \t]*#[^\n]{0,500}\n[ \t]*\Z")


def check(script: Script) -> Iterator[Hit]:
    """Report the first option of each such line."""
    before: Command | None = None
    for command in script.commands:
        if not command.words or command.depth:
            continue
        word = command.words[0]
        if before is not None and not command.joined and _OPTION.fullmatch(word.text) and not word.is_quoted:
            start = word.span.start
            gap = str(script.text[max(before.span.end - 4, start - 600, 0) : start])
            blank = _BLANK.search(gap)
            why = "nothing joins it to the line before"
            if blank or _NOTE.search(gap):
                why = f"a {'blank' if blank else 'comment'} after the backslash ends the line before"
            elif _COMMENT.search(gap):
                why = "the comment before it ends the command"
            yield Hit(
                word.span,
                f"The shell runs {word.text} as a command of its own, for {why}: {before.name} starts without this and "
                "what follows.",
                _fix(start, blank),
            )
            before = None
        elif _is_launch(command):
            before = command
        else:
            before = None


def _is_launch(command: Command) -> bool:
    return any(
        PYTHON.match(name := w.text.rsplit("/", 1)[-1]) or name in _STARTS for w in command.words[:4] if w.is_fixed
    )


def _fix(start: int, blank: re.Match[str] | None) -> Fix | None:
    """Return a fix that removes the blanks."""
    if blank is None:
        return None
    first = start - len(blank.string) + blank.start(1)
    return Fix("Take the blank away", (Edit(Span(first, first + len(blank[1])), ""),))
