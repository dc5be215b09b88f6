"""Reads the frames of another thread in one step, and the local variables of a frame.

CPython 3.11 may crash if `f_back` is read after that thread has continued to run
(https://github.com/getsentry/sentry-python/issues/2386). The interpreter may let it run between two steps of a loop,
but not within one call of a C function, so the whole chain is followed in one call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from inspect import CO_OPTIMIZED
from itertools import accumulate, chain, islice, repeat
from operator import itemgetter
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
_MOST = 5_000


def frames_of(thread: int | None, most: int = _MOST) -> list[FrameType]:
    """Return the thread's frames, innermost first; empty if no such thread runs Python."""
    found: list[FrameType | None] = []
    innermost = islice(map(itemgetter(thread), iter(sys._current_frames, None)), 1)  # noqa: SLF001 - for debuggers
    with suppress(AttributeError, KeyError):  # the outermost frame is followed by None, which has no `f_back`
        found.extend(accumulate(chain(innermost, repeat("f_back", most - 1)), getattr))
    return [frame for frame in found if frame is not None]


def from_locals(frame: FrameType, choose: Callable[[Mapping[str, object]], T]) -> T:
    """Return what `choose` takes from a frame's local variables, without keeping these alive.

    Before Python 3.13 a function's `f_locals` is a copy that stays with the frame, so that a tensor which the user's
    code drops would live on. The copy is emptied, unless another reference exists (`locals()` returns the same copy) or
    a debugger is about to write it back.
    """
    local = frame.f_locals
    chosen = choose(local)
    copied = sys.version_info < (3, 13) and frame.f_code.co_flags & CO_OPTIMIZED
    if copied and frame.f_trace is None and sys.getrefcount(local) == 3:  # the frame, `local`, the argument
        local.clear()
    return chosen


def copy_locals(frame: FrameType) -> dict[str, Any]:
    """Return a frame's local variables; none where a class body has a namespace of its own kind."""
    function = frame.f_code.co_flags & CO_OPTIMIZED
    return from_locals(frame, lambda local: dict(local) if function or type(local) is dict else {})
