"""The processes of a job as the operating system shows them: which are ranks, and whether they live.

To that belongs whether the host's memory ran out: the kernel's counters and log, where they can be read. A rank names
itself in its environment, but so do its helpers (they inherit it) and, under Slurm, its launcher.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil

from dtdebug.clean import allowed_variables

_RANK = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID")
"""The nearest to the program first: torchrun's variable outranks that of the srun that started torchrun."""
_WORLD = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS")
_LOCAL = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")
_LOCAL_WORLD = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE")
_PYTHON = re.compile(r"(?:python|pypy|pt_main_thread)[\w.-]*(?:\.exe)?\Z")
_LAUNCHER = re.compile(
    r"(?:\A|[/\\])(?:torchrun|accelerate|deepspeed|horovodrun|mpirun|mpiexec|srun|colossalai|dtdebug|fabric|ipcluster"
    r"|ipcontroller)(?:\.exe)?\Z"
    r"|\A(?:torch\.distributed\.(?:run|launch)|accelerate\.commands\.\w+|deepspeed\.launcher\.\w+|dtdebug"
    r"|ipyparallel\.(?:cluster|controller|engine\.nanny))\Z"
)
HELPER = re.compile(r"multiprocessing\.(?:resource_tracker|forkserver|managers)|from multiprocessing\.resource_tracker")
"""What multiprocessing starts for itself: nobody waits for one of these."""
_KILLED = re.compile(r"(?:Killed process|\boom_reaper: reaped process|oom-kill:.{0,2000}[, ]pid=)\s*(?P<pid>\d{1,9})")
_COUNTER = re.compile(r"(?m)^oom_kill (?P<count>\d{1,18})$")
_LINES = 20_000


class RankProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process that is a rank."""

    pid: int
    parent: int | None = None
    rank: int | None = None
    """None where it was spawned by multiprocessing: only its stack tells."""
    world_size: int | None = None
    local_rank: int | None = None
    local_world_size: int | None = None
    environment: dict[str, str] = {}


class _Process(msgspec.Struct, frozen=True, kw_only=True):
    """What the operating system shows of a process."""

    pid: int
    parent: int
    name: str
    command: tuple[str, ...]
    variables: Mapping[str, str]


def find_ranks(pid: int) -> list[RankProcess]:
    """The ranks among a process and its descendants, by rank; empty if it has ended or belongs to another user."""
    try:
        top = psutil.Process(pid)
        family = [top, *top.children(recursive=True)]
    except psutil.Error:
        return []
    return ranks_among([seen for process in family if (seen := _look(process)) is not None])


def ranks_below(pid: int) -> list[int]:
    """Process ids of the ranks that a process has started, directly or not."""
    return [found.pid for found in find_ranks(pid) if found.pid != pid]


def ranks_of_job(job: Mapping[str, str]) -> list[RankProcess]:
    """The ranks on this host that have all these variables in their environment, by rank."""
    named = (process for process in psutil.process_iter() if job.items() <= variables(process.pid).items())
    return ranks_among([seen for process in named if (seen := _look(process)) is not None])


def ranks_with(variable: str) -> list[RankProcess]:
    """The ranks on this host that have this variable in their environment, whatever its value."""
    named = (process for process in psutil.process_iter() if variable in variables(process.pid))
    return ranks_among([seen for process in named if (seen := _look(process)) is not None])


def ranks_among(family: Sequence[_Process]) -> list[RankProcess]:
    """The ranks among a process and its descendants, parents first."""
    by_pid = {process.pid: process for process in family}
    ranks: dict[int, RankProcess] = {}
    for process in family:
        if process.pid in ranks:
            continue
        if led := _led(process, family):
            ranks |= led
            continue
        if not _is_program(process) or any(up in ranks for up in _ancestors(process, by_pid)):
            continue
        spawned = _is_spawned(process, by_pid.get(process.parent))
        named = _number(process.variables, _RANK)
        if spawned or (named is not None and not _only_launches(process, family, by_pid)):
            ranks[process.pid] = _found(process, named)
    return sorted(ranks.values(), key=lambda found: (found.rank is None, found.rank or 0, found.pid))


def describe(pid: int) -> RankProcess:
    """A process taken for a rank, with what its environment says of it."""
    with suppress(psutil.Error):
        seen = _look(psutil.Process(pid))
        if seen is not None:
            return _found(seen, _number(seen.variables, _RANK))
    return RankProcess(pid=pid)


def variables(pid: int) -> dict[str, str]:
    """The environment that a process was started with; empty if it may not be read."""
    try:
        return dict(psutil.Process(pid).environ())
    except (psutil.Error, OSError):
        return {}


def liveness(pid: int, seen: float | None = None) -> str:
    """`running`, `stopped` or `ended`; a process that began after it was `seen` is another one with its number."""
    try:
        process = psutil.Process(pid)
        status = process.status()
        if seen is not None and process.create_time() > seen + 2.0:  # both are rounded, clocks are adjusted
            return "ended"
    except psutil.NoSuchProcess:
        return "ended"
    except psutil.Error:
        return "running"
    if status in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}:
        return "ended"
    return "stopped" if status in {psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP} else "running"


def _look(process: psutil.Process) -> _Process | None:
    with suppress(psutil.Error, OSError):
        with process.oneshot():
            if process.status() == psutil.STATUS_ZOMBIE:
                return None
            name, command, parent = process.name(), tuple(process.cmdline()), process.ppid()
        return _Process(pid=process.pid, parent=parent, name=name, command=command, variables=process.environ())
    return None


def _is_program(process: _Process) -> bool:
    """It is a Python program that is neither a launcher nor a helper of multiprocessing."""
    if not process.command:
        return False
    if not (_PYTHON.match(process.name) or _PYTHON.match(Path(process.command[0]).name)):
        return False
    words = process.command[1:4]
    return not any(_LAUNCHER.search(word) or HELPER.search(word) for word in words)


def _is_spawned(process: _Process, parent: _Process | None) -> bool:
    """It was started by multiprocessing: spawned, or forked without becoming another program."""
    if any("multiprocessing.spawn" in word or "--multiprocessing-fork" in word for word in process.command):
        return True
    return parent is not None and len(process.command) > 1 and process.command == parent.command


def _led(process: _Process, family: Sequence[_Process]) -> dict[int, RankProcess]:
    """A program that started itself anew for all ranks of its host but the first, which it is; empty if it did not.

    Lightning does so, and gives them their number on the host alone.
    https://github.com/Lightning-AI/pytorch-lightning/blob/master/src/lightning/fabric/strategies/launchers/subprocess_script.py
    """
    below = [p for p in family if p.parent == process.pid and _is_program(p) and p.variables.get("NODE_RANK") == "0"]
    local = {_number(p.variables, ("LOCAL_RANK",)): p for p in below if _number(p.variables, _RANK) is None}
    own = process.variables.get("LOCAL_RANK", "0")
    if not local or set(local) != set(range(1, len(local) + 1)) or own != "0" or not _is_program(process):
        return {}
    alike = next(iter(local.values())).variables
    first = msgspec.structs.replace(_found(process, 0), world_size=_number(alike, _WORLD), local_rank=0)
    return {process.pid: first} | {p.pid: _found(p, rank) for rank, p in local.items()}


def _only_launches(process: _Process, family: Sequence[_Process], by_pid: Mapping[int, _Process]) -> bool:
    """Its children were given ranks of their own, several, by a variable that it does not have or has otherwise."""
    own = _number(process.variables, _RANK)
    below = [p for p in family if any(up == process.pid for up in _ancestors(p, by_pid))]
    return len({_number(p.variables, _RANK) for p in below if _is_program(p)} - {None, own}) > 0


def _ancestors(process: _Process, by_pid: Mapping[int, _Process]) -> Iterator[int]:
    seen = {process.pid}
    while (parent := process.parent) in by_pid and parent not in seen:
        yield parent
        seen.add(parent)
        process = by_pid[parent]


def _found(process: _Process, rank: int | None) -> RankProcess:
    return RankProcess(
        pid=process.pid,
        parent=process.parent,
        rank=rank,
        world_size=_number(process.variables, _WORLD),
        local_rank=_number(process.variables, _LOCAL),
        local_world_size=_number(process.variables, _LOCAL_WORLD),
        environment=allowed_variables(process.variables),
    )


def _number(variables: Mapping[str, str], names: Sequence[str]) -> int | None:
    for name in names:
        value = variables.get(name, "")
        if value.isdecimal() and len(value) < 10:
            return int(value)
    return None


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
