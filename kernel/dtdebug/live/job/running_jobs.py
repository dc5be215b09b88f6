"""Finds the jobs that a user runs on this host, and tells by a cheap look which of them make progress."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

import psutil

from dtdebug.live.probe.processes import RankProcess, is_launcher, ranks_among, see
from dtdebug.privacy.sanitize import one_line

STUCK = "no progress"
"""Begin of what is told of a job that seems to hang."""
_PAUSE = 0.4
"""Seconds between the two readings of the processors' time."""
_IDLE, _BUSY = 0.02, 0.5
"""Shares of a core up to which a rank rests, and from which it computes or polls."""
_SPEAKS, _QUIET = 10.0, 60.0
"""Seconds since the last output up to which a job speaks, and from which its silence is worth a word."""
_FRAMEWORK = re.compile(rb"/(?:libtorch|libnccl|libmpi|libtensorflow|xla_extension|libjax|horovod|paddle)")
_LINE = 60


class RunningJob(NamedTuple):
    """A job of this user."""

    pid: int
    """Its launcher, or its only rank."""
    command: tuple[str, ...]
    ranks: tuple[RankProcess, ...]

    @property
    def shown(self) -> str:
        """The command as a user would type it, cut and without secrets."""
        words = list(self.command)
        if len(words) > 1 and "python" in os.path.basename(words[0]):  # noqa: PTH119 - a word, and no path
            words = words[1:]
        words[:1] = [os.path.basename(word) for word in words[:1]]  # noqa: PTH119
        return one_line(" ".join(words), _LINE)

    @property
    def ranks_words(self) -> str:
        """The ranks on this host, in words."""
        return f"{len(self.ranks)} rank{'s' * (len(self.ranks) != 1)}"


def find() -> list[RunningJob]:
    """Return the jobs of this user on this host, the newest first."""
    own = os.getuid()
    family = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.uids().real == own and (seen := see(process)) is not None:
                family.append(seen)
    ranks = ranks_among(sorted(family, key=lambda p: p.pid))
    commands = {p.pid: p.command for p in family}
    parents = {p.pid: p.parent for p in family}
    jobs: dict[int, list[RankProcess]] = {}
    for rank in ranks:
        if (rank.world_size or 0) > 1 or rank.local_rank is not None:
            jobs.setdefault(_top(rank.pid, commands, parents), []).append(rank)
    found = [
        RunningJob(pid, commands.get(pid, ()), tuple(of))
        for pid, of in jobs.items()
        if is_launcher(("", *commands.get(pid, ()))) or any(_trains(rank.pid) for rank in of)
    ]
    return sorted(found, key=lambda job: -job.pid)


def _trains(pid: int) -> bool:
    """True if a framework is loaded: in a shell of Slurm any program has the number of a rank."""
    try:
        with open(f"/proc/{pid}/maps", "rb") as maps:  # noqa: PTH123 - read line by line
            return any(_FRAMEWORK.search(line) for line in maps)
    except OSError:
        return False


def _top(pid: int, commands: dict[int, tuple[str, ...]], parents: dict[int, int]) -> int:
    """Return the outermost launcher above a rank; without one its parent, if that is a Python program; else itself."""
    above, top = parents.get(pid, 0), 0
    first = above
    while above in commands and above > 1:
        if is_launcher(("", *commands[above])):
            top = above
        elif top:
            break
        above = parents.get(above, 0)
    if top:
        return top
    same = commands.get(first, ())[:1] == commands.get(pid, ())[:1]
    return first if first in commands and same else pid


def look(jobs: Sequence[RunningJob]) -> Iterator[tuple[RunningJob, str]]:
    """Yield each job with what two readings say of its progress; it takes less than half a second for all."""
    before = {job.pid: _seconds(job) for job in jobs}
    began = time.monotonic()
    time.sleep(_PAUSE)
    for job in jobs:
        spent = time.monotonic() - began
        after = _seconds(job)
        shares = [(after[pid] - used) / spent for pid, used in before[job.pid].items() if pid in after]
        yield job, _doing(shares, _silence(job))


def _doing(shares: Sequence[float], silence: float | None) -> str:
    """Return what the ranks' shares of a core and the age of the last output say; a spinning wait looks like work."""
    if not shares:
        return "has just ended"
    if silence is not None and silence < _SPEAKS:
        return f"making progress, last output {silence:.0f} s ago"
    quiet = f", no output for {silence:.0f} s" if silence is not None and silence >= _QUIET else ""
    if max(shares) <= _IDLE:
        return f"{STUCK} for {silence:.0f} s: all ranks wait" if silence is not None else "all ranks wait just now"
    if min(shares) <= _IDLE < _BUSY <= max(shares):
        return f"some ranks compute, others wait{quiet}"
    return f"its ranks compute{quiet}"


def _seconds(job: RunningJob) -> dict[int, float]:
    """Return the processors' time of each rank's main thread: others poll while it waits."""
    found = {}
    for rank in job.ranks:
        with suppress(psutil.Error):
            main = next((t for t in psutil.Process(rank.pid).threads() if t.id == rank.pid), None)
            if main is not None:
                found[rank.pid] = main.user_time + main.system_time
    return found


def _silence(job: RunningJob) -> float | None:
    """Return the seconds since the job last wrote to a file; None if it writes to a terminal or a pipe."""
    times = []
    for pid in (job.pid, *(rank.pid for rank in job.ranks)):
        for stream in (1, 2):
            with suppress(OSError):
                there = os.stat(f"/proc/{pid}/fd/{stream}")  # noqa: PTH116 - a link that pathlib would name
                if stat.S_ISREG(there.st_mode):
                    times.append(there.st_mtime)
    return max(0.0, time.time() - max(times)) if times else None
