"""Stacks that this process writes while its interpreter can't: when it is asked, when it crashes, when it is ended.

C code writes them to `stacks/PID.txt`. A signal that somebody handles is left alone; after a crash or SIGTERM the
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

from dtdebug import state

_SLOW, _TRIES = 0.01, 3
"""Seconds that one write may take, and how often it is tried: a busy machine delays one, not all."""
_HOPELESS = 0.5


def offer(path: Path) -> Callable[[], None] | None:
    """Writes to that file from now on; returns what ends it, or None where the file can't be made or the disk is slow.

    A stack is written in hundreds of small pieces while the process does nothing else: where each takes long, it could
    neither go on nor end. SIGUSR1 is the request. SIGTERM is how launchers end the ranks that are left: where they
    stood is worth keeping.
    """
    try:
        file = state.append(path)
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
    """The request is still ours: the program may have set a handler of its own since, as for a checkpoint."""
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
    """Puts back what was there, unless the program has set a handler since: that one stays."""
    if signal.getsignal(number) is signal.SIG_DFL:
        faulthandler.unregister(number)


def _is_free(number: int) -> bool:
    """Nobody handles the signal, neither in Python nor in C."""
    if signal.getsignal(number) is not signal.SIG_DFL:
        return False
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return True
    caught = next((line for line in status.splitlines() if line.startswith("SigCgt:")), "SigCgt: 0").split()[1]
    return not int(caught, 16) >> (number - 1) & 1
