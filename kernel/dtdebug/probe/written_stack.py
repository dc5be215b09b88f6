"""The stack that a process writes of itself through faulthandler, once a signal asks for it: no interpreter needed."""

from __future__ import annotations

import os
import re
import signal
import stat
import time
from pathlib import Path

from dtdebug.probe.outside import FRAMES, OutsideError, frame_of, status_of
from dtdebug_taxonomy.ranks import Frame

_CAUGHT = signal.SIGUSR1 if hasattr(signal, "SIGUSR1") else None
_TRACED_THREAD = re.compile(r"(?:Current t|T)hread 0x[0-9a-f]+.*\(most recent call first\):")
_TRACED_FRAME = re.compile(r'  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)')


def traceback(pid: int, file: Path, deadline: float) -> tuple[Frame, ...]:
    """The main thread's stack, innermost last, that faulthandler appends to its announced file on SIGUSR1.

    The signal is sent only to a process that catches it: any other would end by it.

    Raises:
        OutsideError: it does not catch the signal, may not be signalled or wrote nothing in time.

    """
    if _CAUGHT is None or not _catches(pid, _CAUGHT):
        raise OutsideError("does not catch SIGUSR1")
    try:
        status = file.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise OutsideError("announced what is not a regular file")
        before = status.st_size
        os.kill(pid, _CAUGHT)
        text = _appended(file, before, deadline)
    except OSError as error:
        raise OutsideError(str(error)) from error
    stack = parse_traceback(text)
    if not stack:
        raise OutsideError("wrote no traceback")
    return stack


def parse_traceback(text: str) -> tuple[Frame, ...]:
    """The stack of the oldest thread, the main one, in faulthandler's text; innermost last."""
    stack: list[Frame] = []
    for line in text.splitlines():
        if _TRACED_THREAD.match(line):
            stack = []
        elif found := _TRACED_FRAME.match(line):
            stack.append(frame_of(found["file"], int(found["line"][:9]), found["function"]))
    return tuple(reversed(stack[:FRAMES]))


def _appended(file: Path, before: int, deadline: float) -> str:
    """What was written after `before`, once nothing more comes."""
    size, last = before, time.monotonic()
    while time.monotonic() < deadline:
        now = file.stat().st_size
        if now != size:
            size, last = now, time.monotonic()
        elif size > before and time.monotonic() - last > 0.05:
            break
        time.sleep(0.01)
    with file.open("rb") as opened:
        opened.seek(before)
        return opened.read(1 << 20).decode(errors="replace")


def _catches(pid: int, number: int) -> bool:
    return bool(int(status_of(str(pid)).get("SigCgt", "0"), 16) >> (number - 1) & 1)
