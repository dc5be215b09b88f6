"""Notes of a process: one line of JSON each, in a file per process, so that a killed process loses none.

saw      the program uses this part: `loader.workers`, with a value, and the line of its code
set      this change was made, and where
lost     a variable that was set was changed by the program
denied   a file that may not be overwritten
wrote    a file outside of the copy that was created or changed
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

VARIABLE = "DTDEBUG_ISOLATE"
"""Environment variable with the path of the file that instructs the processes of this run."""
LONGER = 3
"""Factor by which time-outs are increased."""
_MOST, _BYTES = 500, 4 << 20
_OURS = f"{__file__.rpartition('/experiments/')[0]}/"
_FOREIGN = ("<", f"{os.path.dirname(os.__file__)}/", _OURS)  # noqa: PTH120
"""Prefixes of files that are not the user's own; files installed by pip count as foreign, too."""


class PartNotes:
    """Notes of this process; forked children write separate files."""

    def __init__(self, folder: str, change: dict[str, str], environment: dict[str, str | None]) -> None:
        self._folder, self.change, self._environment = folder, change, environment
        self._said: set[tuple[str, str, str]] = set()
        self._busy = threading.local()

    def wants(self, knob: str) -> bool:
        """True if the change is to be made."""
        return knob in self.change

    def check_environment(self) -> None:
        """Note which variables have the expected value; None means not set."""
        for name, value in self._environment.items():
            self.note("set" if os.environ.get(name) == value else "lost", f"environment.{name}", value or "")

    def note(self, kind: str, name: str, value: object = "") -> None:
        """Write a note, each once; if the folder can't be written, only the note is lost."""
        row = (kind, name, str(value)[:500])
        if row in self._said or len(self._said) >= _MOST or getattr(self._busy, "now", False):
            return
        self._busy.now = True  # our own file is opened below
        try:
            self._said.add(row)
            rank = os.environ.get("RANK", "")
            told = {"kind": kind, "name": name, "value": row[2], "rank": rank}
            line = json.dumps({**told, "at": _place()} if kind == "saw" else told) + "\n"
            path = f"{self._folder}/{os.getpid()}.jsonl"
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.write(handle, line.encode())
            finally:
                os.close(handle)
        except OSError:
            pass
        finally:
            self._busy.now = False


def is_foreign(file: str) -> bool:
    """True if a code file is not the user's own."""
    return file.startswith(_FOREIGN) or "-packages/" in file


def is_own() -> bool:
    """True if dtdebug's own process is running, which inherited the variable, and no user program."""
    frame, outermost = sys._getframe(3), ""  # noqa: SLF001 - the reader, above `asks`
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith("<"):  # `runpy`, and the text of `-c`, from which our children call a function
            outermost = name
        frame = frame.f_back  # type: ignore[assignment]
    return outermost.startswith(_OURS)


def _place() -> str:
    """Return `FILE:LINE` of the innermost user frame, or ""."""
    frame = sys._getframe(2)  # noqa: SLF001
    while frame is not None:
        name = frame.f_code.co_filename
        if not is_foreign(name):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""


def read_notes(folder: Path) -> Iterator[dict[str, str]]:
    """Yield the notes of all processes; skip truncated and foreign lines."""
    for path in sorted(folder.glob("*.jsonl"))[:4096]:
        try:
            with path.open("rb") as file:
                lines = file.read(_BYTES).splitlines()
        except OSError:
            continue
        for line in lines[:_MOST]:
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict) and all(isinstance(v, str) for v in row.values()) and {"kind", "name"} <= set(row):
                yield row
