"""Prints answers: every command that states a failure shows it by this module, and so in the same words."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis
    from dtdebug_taxonomy.model.snapshot import Snapshot

_ADVICE = 8
"""Maximum number of causes in the full text."""
_CLOSE = 0.7
"""Likeness from which a mistyped word may have meant a name."""
_PATIENCE = 2.0
"""Seconds of reading after which a terminal is told how far it is."""


def show(diagnosis: Diagnosis, snapshot: Snapshot, *, full: bool = False, whole: str = "") -> None:
    """Print the answer; `whole` is all that the command itself has to say, instead of the text of the diagnosis."""
    print(answer_text(diagnosis, snapshot, full=full, whole=whole))


def answer_text(diagnosis: Diagnosis, snapshot: Snapshot, *, full: bool = False, whole: str = "") -> str:
    """Return what `show` prints, without the last line's end."""
    from dtdebug.privacy.boundary import mask_snapshot
    from dtdebug_taxonomy.presentation.text import to_markdown, to_text

    text = whole.rstrip("\n") or to_text(diagnosis, advice=_ADVICE if full else 2)
    return f"{text}\n\n{to_markdown(diagnosis, mask_snapshot(snapshot)).rstrip()}" if full else text


def near(word: str, names: Iterable[str]) -> str:
    """Return the name that a mistyped word is most like; "" if it is like none."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word.lower(), sorted(names), n=1, cutoff=_CLOSE)), "")


def dim(line: str, stream: TextIO) -> str:
    """Return a line of less weight, if the stream is a terminal that shows it so."""
    coloured = stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return f"\x1b[2m{line}\x1b[0m" if coloured else line


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
