"""Limit of a whole command's memory, for what no reader has bounded itself, and what is said at its limits.

They hold for commands that read, not for those that start or watch a job.
"""

from __future__ import annotations

from contextlib import suppress

_MEMORY = 900 << 20
"""Bytes that a process may write to; what it maps from files does not count."""
TIME = "what was given takes far longer to read than its size explains; nothing was concluded. Give a part of it"
MEMORY = "what was given takes more than 1 GB of memory to read; nothing was concluded. Give a part of it"
DEPTH = "what was given is nested too deep to be read; nothing was concluded"


def bound_memory() -> None:
    """Let allocations beyond the limit fail, here and in the processes that are started."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY if hard < 0 else min(_MEMORY, hard), hard))
