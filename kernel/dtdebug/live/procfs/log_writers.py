"""Finds the process that still writes a log: a log that just ends is then that of a job that runs, or stands."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dtdebug.live.procfs import reader

_MOST = 4096


class Writer(NamedTuple):
    """Process that has a log open for writing."""

    pid: int
    file: str
    age: float
    """Seconds since anything was written to the last of the logs."""


def writer_of(files: Sequence[str]) -> Writer | None:
    """Return a process on this host that has one of the logs open for writing; None if none is seen."""
    wanted: dict[str, float] = {}
    for file in files[:_MOST]:
        try:
            wanted[os.path.realpath(file)] = Path(file).stat().st_mtime
        except OSError:
            continue
    if not wanted:
        return None
    age = max(time.time() - max(wanted.values()), 0.0)
    for pid in reader.processes()[:_MOST]:
        if pid == os.getpid():
            continue
        for number, name in reader.files(pid).items():
            if name in wanted and reader.writes(pid, number):
                return Writer(pid, name, age)
    return None
