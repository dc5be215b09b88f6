"""Figures of a process: CPU use, page faults, memory events and pressure of its control group."""

from __future__ import annotations

import os
import re
from pathlib import Path

from dtdebug.live.procfs.reader import DENIED, ThreadNow, file_start

_TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_GROUP = re.compile(r"(?m)^(?:0:|\d{1,6}:(?:[\w,=]{0,60},)?memory(?:,[\w,=]{0,60})?):(?P<path>/[^\n]{0,1000})$")
_OOM = re.compile(r"(?m)^(?P<name>oom|oom_kill|max|oom_group_kill) (?P<count>\d{1,18})$")
_PRESSURE = re.compile(r"full avg10=(?P<share>[\d.]{1,8})")
_LEAST_PRESSURE = 5.0
"""Minimum percentage of the last ten seconds for stalls to be reported."""


def figures(pid: int, first: ThreadNow, last: ThreadNow, seconds: float) -> dict[str, str]:
    """Return state, kernel function, CPU, page faults of the main thread; memory events, pressure and OOM kills."""
    found = {"state": last.state, "in the kernel at": last.where}
    if last.denied:
        found["system call"] = DENIED
    elif last.call:
        found["system call"] = last.call
    if seconds > 0:
        found["CPU"] = f"{cpu(first, last, seconds):.0%} of a core over {seconds:.1f} s"
    if last.faults > first.faults:
        found["pages read from disk"] = str(last.faults - first.faults)
    for group in _groups(pid):
        for name in ("memory.events", "memory.oom_control"):
            found |= {
                f"memory events: {m['name']}": m["count"] for m in _OOM.finditer(file_start(f"{group}/{name}", 4096))
            }
    for what in ("memory", "io"):
        stalled = _PRESSURE.search(file_start(f"/proc/pressure/{what}", 1024))
        if stalled and float(stalled["share"]) >= _LEAST_PRESSURE:
            found[f"stalled for {what}"] = f"{stalled['share']} % of the last 10 s"
    return {name: value for name, value in found.items() if value and value != "0"}


def cpu(first: ThreadNow, last: ThreadNow, seconds: float) -> float:
    """Return the share of one core that the thread used between two samples."""
    return min(1.0, max(0, last.ticks - first.ticks) / _TICK / seconds) if seconds > 0 else 0.0


def _groups(pid: int) -> list[str]:
    """Return the control groups that count the process's memory, in both versions of the hierarchy."""
    found = []
    for m in _GROUP.finditer(file_start(f"/proc/{pid}/cgroup", 1 << 16)):
        for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified"):
            path = f"{root}{m['path'].rstrip('/')}"
            if Path(path).is_dir():
                found.append(path)
    return found
