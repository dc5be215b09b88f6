"""Timer of a command or of one of its processes: ends what no reader has bounded once the budget is spent."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from dtdebug.storage import budget

_LOOK = 1.0
"""Processor seconds between two looks at the budget."""


class OverBudgetError(BaseException):
    """The time is used up; no handler of ordinary errors may drop it."""


@contextmanager
def time_limit() -> Iterator[None]:
    """Raise OverBudgetError once the budget of this process is spent; only a main thread can be interrupted."""
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
        if before is not signal.SIG_DFL:  # with which a signal on its way would end the process
            signal.signal(signal.SIGVTALRM, before)
