"""Stacks that this process writes while its interpreter can't run: on request, on a crash, and on SIGTERM.

C code writes them to `stacks/PID.txt`. A signal that already has a handler is left alone; after a crash or SIGTERM the
process ends as it would have.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from dtdebug.storage import state_dir

_SLOW, _TRIES = 0.01, 3
"""Maximum seconds of one write, and number of attempts: a busy machine delays one, not all."""
_HOPELESS = 0.5


def offer(path: Path) -> Callable[[], None] | None:
    """Start writing stacks to that file; return a function that stops it, None if the file is missing or slow.

    A stack is written in hundreds of small pieces while the process does nothing else: if each took long, it could
    neither continue nor end. SIGUSR1 is the request. Launchers send SIGTERM to the remaining ranks, whose places are
    worth keeping.
    """
    try:
        file = state_dir.append(path)
    except OSError:
        return None
    if not _is_fast(file):
        os.close(file)
        return None
    undo: list[Callable[[], object]] = []
    for number, chain in ((signal.SIGUSR1, False), (signal.SIGTERM, True)):
        if _is_free(number):
            faulthandler.register(number, file=file, all_threads=True, chain=chain)
            undo.append(lambda number=number: _take_back(number))  # type: ignore[misc]
    if not faulthandler.is_enabled():
        faulthandler.enable(file=file, all_threads=True)
        undo.append(faulthandler.disable)

    def end() -> None:
        for action in undo:
            with suppress(Exception):
                action()
        with suppress(OSError):
            os.close(file)

    return end


def is_offered() -> bool:
    """True if the request is still ours: the program may have set its own handler since, as for a checkpoint."""
    return signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL


def _is_fast(file: int) -> bool:
    with suppress(OSError):
        for _ in range(_TRIES):
            begun = time.monotonic()
            os.write(file, b"\n")
            took = time.monotonic() - begun
            if took <= _SLOW:
                return True
            if took >= _HOPELESS:
                return False
    return False


def _take_back(number: int) -> None:
    """Restore the previous handler, unless the program has set one since: that one stays."""
    if signal.getsignal(number) is signal.SIG_DFL:
        faulthandler.unregister(number)


def _is_free(number: int) -> bool:
    """True if the signal has no handler, neither in Python nor in C."""
    if signal.getsignal(number) is not signal.SIG_DFL:
        return False
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return True
    caught = next((line for line in status.splitlines() if line.startswith("SigCgt:")), "SigCgt: 0").split()[1]
    return not int(caught, 16) >> (number - 1) & 1
