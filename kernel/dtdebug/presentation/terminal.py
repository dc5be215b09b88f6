"""Prints answers: every command that states a failure shows it by this module, and so in the same words.

The short answer is coloured and wrapped where a terminal shows it, and plain in pipes.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis
    from dtdebug_taxonomy.model.answer import Answer, Step
    from dtdebug_taxonomy.model.snapshot import Snapshot
    from dtdebug_taxonomy.presentation.answer_text import Line

_CLOSE = 0.7
"""Likeness from which a mistyped word may have meant a name."""
_PATIENCE = 2.0
"""Seconds of reading after which a terminal is told how far it is."""
_STYLES = {
    "headline": "\033[1m", "event": "", "place": "\033[36m", "code": "", "mark": "\033[31m", "why": "", "fix": "",
    "removed": "\033[31m", "added": "\033[32m", "next": "", "command": "\033[1m", "foot": "\033[2m",
}  # fmt: skip
_RESET = "\033[0m"
_WIDEST = 120
"""Maximum number of columns of an answer: longer lines are hard to read."""
PREFIX = "dtdebug: "
"""Beginning of an answer: it may stand between the lines of a job."""


def answer_text(
    diagnosis: Diagnosis,
    snapshot: Snapshot,
    *,
    event: str = "",
    next_step: Step | None = None,
    stream: TextIO | None = None,
    collected: str = "",
) -> str:
    """Return the short answer as a stream shows it, without the last line's end.

    `event`: what the command itself saw happen; `collected`: the folder of the run.
    """
    from dtdebug_taxonomy.presentation.answer import build_answer

    answer = build_answer(diagnosis, snapshot, event=event.removeprefix(PREFIX), next_step=next_step, code_at=code_at)
    return format_answer(answer, stream or sys.stdout, collected=collected)


def full_text(diagnosis: Diagnosis) -> str:
    """Return all that is known of a failure, for `--full` and `why`."""
    from dtdebug_taxonomy.presentation.text import to_text

    return to_text(diagnosis, full=True)


def next_step(text: str) -> Step | None:
    """Return the next step of a case, which is a command or a sentence."""
    from dtdebug_taxonomy.model.answer import Step

    if text.startswith("dtdebug "):
        return Step(text="Ask the ranks once more:", command=text)
    return Step(text=text) if text else None


def format_answer(answer: Answer, stream: TextIO, *, more: str = "", collected: str = "") -> str:
    """Return the short answer in the width of a stream, with colour if a terminal shows it."""
    from dtdebug.privacy.sanitize import clean
    from dtdebug_taxonomy.presentation.answer_text import MORE, WIDTH, lay_out

    width = min(shutil.get_terminal_size((WIDTH, 24)).columns, _WIDEST) if stream.isatty() else WIDTH
    rows = lay_out(answer, width, prefix=PREFIX, more=more or MORE, collected=collected)
    lines = [row._replace(text=clean(row.text)) for row in rows]
    return "\n".join(_colour(row) if _is_coloured(stream) else row.text for row in lines)


def _colour(line: Line) -> str:
    style = _STYLES[line.kind]
    return f"{style}{line.text}{_RESET}" if style else line.text


def _is_coloured(stream: TextIO) -> bool:
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def code_at(file: str, line: int) -> str:
    """Return a line of the user's program, stripped, if that file is here and may be shown; else ""."""
    from dtdebug.privacy.sanitize import clean
    from dtdebug_taxonomy import named_files

    return clean(named_files.source_line(file, line)[:200])


def near(word: str, names: Iterable[str]) -> str:
    """Return the name that a mistyped word is most like; "" if it is like none."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word.lower(), sorted(names), n=1, cutoff=_CLOSE)), "")


def dim(line: str, stream: TextIO) -> str:
    """Return a line of less weight, if the stream is a terminal that shows it so."""
    return f"\x1b[2m{line}\x1b[0m" if _is_coloured(stream) else line


def say_aside(line: str) -> None:
    """Print a line on standard error that is not part of the answer."""
    print(dim(line, sys.stderr), file=sys.stderr)


@contextmanager
def waiting_line(files: Sequence[str]) -> Iterator[None]:
    """Show on a terminal that reading takes a while, and how much there is to read."""
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    size = 0
    for file in files:
        with suppress(OSError):
            size += os.stat(file).st_size  # noqa: PTH116 - `-` is no path
    told = f", {size / 1e6:,.0f} MB" if size > 1e6 else ""

    def tell() -> None:
        seconds = _PATIENCE
        while not done.wait(_PATIENCE if seconds == _PATIENCE else 1.0):
            print(f"\r\x1b[Kreading{told}, {seconds:.0f} s ...", end="", file=sys.stderr, flush=True)
            seconds += 1
        if seconds > _PATIENCE:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    thread = threading.Thread(target=tell, name="dtdebug-reading", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(1.0)
