"""Did the host's memory run out? The kernel's own counters and log, where they can be read."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path

_KILLED = re.compile(r"(?:Killed process|\boom_reaper: reaped process|oom-kill:.{0,2000}[, ]pid=)\s*(?P<pid>\d{1,9})")
_COUNTER = re.compile(r"(?m)^oom_kill (?P<count>\d{1,18})$")
_LINES = 20_000


class MemoryKills:
    """Remembers how often the kernel had killed for memory before the job."""

    def __init__(self) -> None:
        self._begun = time.clock_gettime(time.CLOCK_MONOTONIC)
        self._before = _kills()

    def killed(self) -> tuple[int | None, frozenset[int]]:
        """How many processes of our control group the kernel has killed since, and which; None if it can't be read."""
        now = _kills()
        count = None if now is None or self._before is None else now - self._before
        return count, _logged(self._begun)


def _kills() -> int | None:
    """`oom_kill` of our control group, version 2 or 1."""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers not in ("", "memory"):
                continue
            root, name = (
                ("/sys/fs/cgroup/memory", "memory.oom_control") if controllers else ("/sys/fs/cgroup", "memory.events")
            )
            for folder in (root + path, root):  # in a container its own group is mounted as the root
                with suppress(OSError):
                    found = _COUNTER.search(Path(folder, name).read_text())
                    if found:
                        return int(found["count"])
    return None


def _logged(since: float) -> frozenset[int]:
    """Processes that the kernel's log says it killed for memory since then; empty where it can't be read."""
    pids: set[int] = set()
    try:
        handle = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return frozenset()
    try:
        for _ in range(_LINES):
            try:
                record = os.read(handle, 8192).decode(errors="replace")
            except BrokenPipeError:  # overwritten while we read
                continue
            head, _, message = record.partition(";")
            fields = head.split(",")
            if len(fields) > 2 and fields[2].isdecimal() and int(fields[2]) / 1e6 >= since:
                pids.update(int(found["pid"]) for found in _KILLED.finditer(message))
    except OSError:
        pass  # the end of the log
    finally:
        os.close(handle)
    return frozenset(pids)
