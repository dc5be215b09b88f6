"""Bounds the processor time that a file may take to examine, from the budget that the readers of a command share."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from dtdebug.storage import budget

_SECONDS, _FEW, _PER_BYTE, _MOST = 1.0, 0.3, 10e-6, 5.0
"""Processor seconds of any file, once the pool is empty, those for each byte of its text, and the most of one file."""
_AGAIN = 0.5
"""Processor seconds until the limit is told again, where a callback of Python's own has dropped it."""


class TakesTooLongError(BaseException):
    """The limit is reached; no handler of ordinary errors within a check may drop it."""


@contextmanager
def time_limit(size: int) -> Iterator[None]:
    """Raise TakesTooLongError in the block if a text of this size takes far longer than texts do.

    Only the main thread of a process can be interrupted; elsewhere, as in a language server, there is no limit.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    spent = budget.current()
    own = min(_MOST, (_SECONDS if spent.seconds > 0 else _FEW) + _PER_BYTE * size)
    spent.grant(own + max(spent.seconds, 0.0))
    is_over = False

    def stop(_signal: int, _frame: FrameType | None) -> None:
        if not is_over:
            raise TakesTooLongError

    begin = time.process_time()
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, own + max(spent.seconds, 0.0), _AGAIN)
    try:
        yield
    finally:
        is_over = True
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        spent.seconds -= max(0.0, time.process_time() - begin - own)
