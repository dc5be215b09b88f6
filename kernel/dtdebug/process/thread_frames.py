"""Reads the frames of another thread in one step.

CPython 3.11 may crash if `f_back` is read after that thread has continued to run
(https://github.com/getsentry/sentry-python/issues/2386). The interpreter may let it run between two steps of a loop,
but not within one call of a C function, so the whole chain is followed in one call.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from itertools import accumulate, chain, islice, repeat
from operator import itemgetter
from types import FrameType

_MOST = 5_000


def frames_of(thread: int | None, most: int = _MOST) -> list[FrameType]:
    """Return the thread's frames, innermost first; empty if no such thread runs Python."""
    found: list[FrameType | None] = []
    innermost = islice(map(itemgetter(thread), iter(sys._current_frames, None)), 1)  # noqa: SLF001 - for debuggers
    with suppress(AttributeError, KeyError):  # the outermost frame is followed by None, which has no `f_back`
        found.extend(accumulate(chain(innermost, repeat("f_back", most - 1)), getattr))
    return [frame for frame in found if frame is not None]
