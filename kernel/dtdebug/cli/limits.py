"""Limits of a whole command: processor time and memory, for what no reader has bounded itself.

They hold for commands that read, not for those that start or watch a job.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from dtdebug.storage import budget

_LOOK = 1.0
"""Processor seconds between two looks at the budget."""
_MEMORY = 900 << 20
"""Bytes that a process may write to; what it maps from files does not count."""
TIME = "what was given takes far longer to read than its size explains; nothing was concluded. Give a part of it"
MEMORY = "what was given takes more than 1 GB of memory to read; nothing was concluded. Give a part of it"


class OverBudgetError(BaseException):
    """The time is used up; no handler of ordinary errors may drop it."""


@contextmanager
def time_limit() -> Iterator[None]:
    """Raise OverBudgetError once the command's budget says so; only a main thread can be interrupted."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "ITIMER_VIRTUAL"):
        yield
        return
    is_over = False

    def look(_signal: int, _frame: FrameType | None) -> None:
        if not is_over and budget.current().is_spent():
            raise OverBudgetError

    before = signal.signal(signal.SIGVTALRM, look)
    signal.setitimer(signal.ITIMER_VIRTUAL, _LOOK, _LOOK)
    try:
        yield
    finally:
        is_over = True
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def bound_memory() -> None:
    """Let allocations beyond the limit fail, here and in the processes that are started."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY if hard < 0 else min(_MEMORY, hard), hard))
