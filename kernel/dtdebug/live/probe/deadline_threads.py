"""Runs blocking calls in daemon threads with a deadline; slow ones delay neither others nor the exit."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import TypeVar

T = TypeVar("T")
_THREADS = 64


def begin(tasks: Sequence[Callable[[], T]], deadline: float) -> list[Future[T]]:
    """Start the tasks, in order; those whose turn comes after the deadline never run."""
    futures: list[Future[T]] = [Future() for _ in tasks]
    turns = deque(zip(tasks, futures, strict=True))

    def work() -> None:
        while time.monotonic() < deadline:
            try:
                task, future = turns.popleft()
            except IndexError:
                return
            try:
                future.set_result(task())
            except BaseException as error:
                future.set_exception(error)

    for _ in range(min(len(tasks), _THREADS)):
        threading.Thread(target=work, daemon=True).start()
    return futures


def until(futures: Sequence[Future[T]], deadline: float) -> list[T | None]:
    """Wait for the results until the deadline; None for late or failed ones."""
    wait(futures, timeout=max(0.0, deadline - time.monotonic()))
    return [f.result() if f.done() and f.exception() is None else None for f in futures]
