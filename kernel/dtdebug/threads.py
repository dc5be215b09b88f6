"""The frames of another thread, read in one piece.

CPython 3.11 may crash where `f_back` is asked for after that thread has run on meanwhile
(https://github.com/getsentry/sentry-python/issues/2386). Between two steps of a loop the interpreter may let it run,
within one call of a C function it does not: so the whole chain is followed in one.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from itertools import accumulate, chain, islice, repeat
from operator import itemgetter
from types import FrameType

_MOST = 5_000


def frames_of(thread: int | None, most: int = _MOST) -> list[FrameType]:
    """Its frames, innermost first; none where no such thread runs Python."""
    found: list[FrameType | None] = []
    innermost = islice(map(itemgetter(thread), iter(sys._current_frames, None)), 1)  # noqa: SLF001 - for debuggers
    with suppress(AttributeError, KeyError):  # the outermost one has None behind it, which has no `f_back`
        found.extend(accumulate(chain(innermost, repeat("f_back", most - 1)), getattr))
    return [frame for frame in found if frame is not None]
