"""Reads the processes of an MPI job: found by the environment that its launcher gave them, never by a call of MPI.

A call that waits for other ranks would hang with them; only local properties of a communicator are read here.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import msgspec
import psutil

from dtdebug.live.probe.adapters import Reach
from dtdebug.live.probe.deadline_threads import begin, until
from dtdebug.live.probe.processes import RankProcess, find_ranks, ranks_of_job, variables
from dtdebug.live.probe.pyspy import observe
from dtdebug.storage.untrusted import tidy
from dtdebug_taxonomy import named_files
from dtdebug_taxonomy.model.ranks import RankState

_JOB = ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "SLURM_STEP_ID")
"""Variables that all ranks of a job share and that differ between jobs."""
_HOST_FILES = ("PBS_NODEFILE", "PE_HOSTFILE", "LSB_DJOB_HOSTFILE")
_HOST_LISTS = ("SLURM_JOB_NODELIST", "SLURM_NODELIST", "LSB_HOSTS")
_HOST_FILE = 4 << 20
"""Maximum size in bytes of a file that lists the hosts of a job."""
_MOST_HOSTS = 4096
_RANGES = re.compile(r"([^\[\],]{1,255}+)(?:\[([\d,-]+)\])?([^\[\],]{0,255}+)(?:,|\Z)")


def reach(comm: Any = None, *, like: int | None = None) -> Reach:
    """Return a reader of the ranks on this host that belong to the job of a process (this one by default)."""
    world = int(comm.Get_size()) if comm is not None else None

    def look(timeout: float) -> Sequence[RankState]:
        deadline = time.monotonic() + timeout
        found = ranks_here(like)
        states = until(begin([partial(observe, each, timeout) for each in found], deadline), deadline)
        return [
            tidy(msgspec.structs.replace(state or _silent(each), world_size=each.world_size or world))
            for each, state in zip(found, states, strict=True)
        ]

    return look


def ranks_here(like: int | None = None) -> list[RankProcess]:
    """Return the ranks on this host in a process's job: by the job's name, else by the launcher above them."""
    own = variables(like if like is not None else os.getpid())
    job = {name: own[name] for name in (*_JOB, "SLURM_JOB_ID") if name in own}
    if job.keys() & set(_JOB):
        return ranks_of_job(job)
    if "PMI_RANK" not in own:
        return []
    return find_ranks(psutil.Process(like).ppid())  # MPICH's launcher gives the job no name, but is the parent


def hosts(environment: Mapping[str, str]) -> list[str]:
    """Return a job's hosts as its scheduler lists them in the environment or in a file named there."""
    for name in _HOST_FILES:
        if file := environment.get(name):
            try:
                lines = named_files.read_file(file, _HOST_FILE).decode(errors="replace").splitlines()
            except OSError:
                continue
            return list(dict.fromkeys(line.split()[0] for line in lines if line.split()))[:_MOST_HOSTS]
    for name in _HOST_LISTS:
        if text := environment.get(name):
            named = text.split() if name == "LSB_HOSTS" else _expand_hosts(text)
            return list(dict.fromkeys(islice(named, _MOST_HOSTS)))
    return []


def _expand_hosts(text: str) -> Iterator[str]:
    """Yield the hosts of `a[1-3,07],b`."""
    for before, ranges, after in _RANGES.findall(text[: 1 << 16]):
        if not ranges:
            yield before + after
        for part in ranges.split(","):
            for number in _numbers(part):
                yield f"{before}{number}{after}"


def _numbers(part: str) -> Iterator[str]:
    first, _, last = part.partition("-")
    if first.isdecimal() and (last or first).isdecimal() and len(first) < 10 and len(last) < 10:
        for number in range(int(first), int(last or first) + 1):
            yield str(number).zfill(len(first))


def _silent(found: RankProcess) -> RankState:
    return RankState(rank=found.rank, pid=found.pid, roads={"py-spy": "no answer until the deadline"})
