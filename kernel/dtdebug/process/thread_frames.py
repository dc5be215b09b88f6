"""Reads the frames of another thread in one step, and the local variables of a frame.

CPython 3.11 may crash if `f_back` is read after that thread has continued to run
(https://github.com/getsentry/sentry-python/issues/2386). The interpreter may let it run between two steps of a loop,
but not within one call of a C function, so the whole chain is followed in one call. Before CPython 3.12 such a call may
collect garbage when it makes an object, here a frame, and a finalizer in Python lets that thread run: the collector
rests meanwhile (https://github.com/python/cpython/pull/97920).
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Mapping
from inspect import CO_OPTIMIZED
from itertools import accumulate, chain, islice, repeat, takewhile
from operator import attrgetter, methodcaller, truth
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
_MOST = 5_000


def frames_of(thread: int | None, most: int = _MOST) -> list[FrameType]:
    """Return the thread's frames, innermost first; empty if no such thread runs Python."""
    current = iter(sys._current_frames, None)  # noqa: SLF001 - for debuggers
    innermost = islice(map(methodcaller("get", thread), current), 1)
    # The outermost frame is followed by None.
    return _in_one_step(takewhile(truth, accumulate(chain(innermost, repeat("f_back", most - 1)), getattr)))


def from_locals(frame: FrameType, choose: Callable[[Mapping[str, object]], T]) -> T:
    """Return what `choose` takes from a frame's local variables, without keeping these alive.

    Before Python 3.13 a function's `f_locals` is a copy that stays with the frame, so that a tensor which the user's
    code drops would live on. The copy is emptied, unless another reference exists (`locals()` returns the same copy) or
    a debugger is about to write it back.
    """
    (local,) = _in_one_step(map(attrgetter("f_locals"), (frame,)))
    chosen = choose(local)
    copied = sys.version_info < (3, 13) and frame.f_code.co_flags & CO_OPTIMIZED
    if copied and frame.f_trace is None and sys.getrefcount(local) == 3:  # the frame, `local`, the argument
        local.clear()
    return chosen


def copy_locals(frame: FrameType) -> dict[str, Any]:
    """Return a frame's local variables; none where a class body has a namespace of its own kind."""
    function = frame.f_code.co_flags & CO_OPTIMIZED
    return from_locals(frame, lambda local: dict(local) if function or type(local) is dict else {})


def _in_one_step(items: Iterable[T]) -> list[T]:
    """Return items that C functions make, without letting another thread run meanwhile."""
    if sys.version_info >= (3, 12) or not gc.isenabled():
        return list(items)
    try:
        return list(chain(iter(gc.disable, None), items, iter(gc.enable, None)))  # both return None: no item
    except BaseException:
        gc.enable()
        raise
