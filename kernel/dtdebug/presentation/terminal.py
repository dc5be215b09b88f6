"""Prints the short answer: coloured and wrapped where a terminal shows it, plain in pipes."""

from __future__ import annotations

import linecache
import os
import shutil
import sys
from pathlib import Path
from typing import TextIO

from dtdebug.privacy.sanitize import clean
from dtdebug_taxonomy.presentation.answer import Answer
from dtdebug_taxonomy.presentation.answer_text import MORE, WIDTH, Line, lay_out

_STYLES = {
    "headline": "\033[1m", "event": "", "place": "\033[36m", "code": "", "mark": "\033[31m", "why": "", "fix": "",
    "removed": "\033[31m", "added": "\033[32m", "next": "", "command": "\033[1m", "foot": "\033[2m",
}  # fmt: skip
_RESET = "\033[0m"
_SOURCE_LIMIT = 4 << 20
"""Maximum size in bytes of a file that a source line is shown of."""
PREFIX = "dtdebug: "
"""Beginning of an answer: it may stand between the lines of a job."""


def show(answer: Answer, stream: TextIO | None = None, *, more: str = MORE) -> None:
    """Print the short answer to a stream, by default standard output."""
    stream = stream or sys.stdout
    stream.write(format_answer(answer, stream, more=more) + "\n")
    stream.flush()


def format_answer(answer: Answer, stream: TextIO, *, more: str = MORE) -> str:
    """Return the short answer in the width of a stream, with colour if a terminal shows it."""
    terminal = stream.isatty()
    width = min(shutil.get_terminal_size((WIDTH, 24)).columns, 120) if terminal else WIDTH
    lines = [Line(line.kind, clean(line.text)) for line in lay_out(answer, width, prefix=PREFIX, more=more)]
    coloured = terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return "\n".join(_colour(line) if coloured else line.text for line in lines)


def _colour(line: Line) -> str:
    style = _STYLES[line.kind]
    return f"{style}{line.text}{_RESET}" if style else line.text


def code_at(file: str, line: int) -> str:
    """Return a line of the user's program, stripped, if that file is here; else ""."""
    try:
        path = Path(file)
        if not path.is_file() or path.stat().st_size > _SOURCE_LIMIT:
            return ""
        return clean(linecache.getline(file, line).strip()[:200])
    except (OSError, ValueError):
        return ""
