"""Lets our threads get the GIL soon while the user's code keeps it busy."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_INTERVAL = 0.0005
"""Seconds after which a busy thread has to release the GIL; Python's own 0.005 delayed us at each file."""
_lock = threading.Lock()
_depth = 0
_before = 0.0


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """Shorten the interval while any caller is inside; the user's value is restored afterwards."""
    global _depth, _before
    with _lock:
        if _depth == 0:
            _before = sys.getswitchinterval()
            sys.setswitchinterval(min(_before, _INTERVAL))
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                sys.setswitchinterval(_before)
