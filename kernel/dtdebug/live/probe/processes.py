"""Processes of a job as the operating system shows them: which are ranks, which are alive, which ran out of memory.

OOM kills come from the kernel's counters and log, if readable. A rank has its number in its environment, but so do its
helpers (they inherit it) and, under Slurm, its launcher.
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

from dtdebug.privacy.sanitize import allowed_variables
from dtdebug_taxonomy.model.launch_variables import LOCAL_RANK, LOCAL_WORLD_SIZE, RANK, WORLD_SIZE, read_number

_PYTHON = re.compile(r"(?:python|pypy|pt_main_thread)[\w.-]*(?:\.exe)?\Z")
_LAUNCHER = re.compile(
    r"(?:\A|[/\\])(?:torchrun|accelerate|deepspeed|horovodrun|mpirun|mpiexec|srun|colossalai|dtdebug|fabric|ipcluster"
    r"|ipcontroller)(?:\.exe)?\Z"
    r"|\A(?:torch\.distributed\.(?:run|launch)|accelerate\.commands\.\w+|deepspeed\.launcher\.\w+|dtdebug"
    r"|ipyparallel\.(?:cluster|controller|engine\.nanny))\Z"
)
HELPER = re.compile(r"multiprocessing\.(?:resource_tracker|forkserver|managers)|from multiprocessing\.resource_tracker")
"""Helper processes of multiprocessing, which no rank waits for."""
_KILLED = re.compile(r"(?:Killed process|\boom_reaper: reaped process|oom-kill:.{0,2000}[, ]pid=)\s*(?P<pid>\d{1,9})")
_COUNTER = re.compile(r"(?m)^oom_kill (?P<count>\d{1,18})$")
_LINES = 20_000


class RankProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process that is a rank."""

    pid: int
    parent: int | None = None
    rank: int | None = None
    """None if spawned by multiprocessing: only its stack shows the number."""
    world_size: int | None = None
    local_rank: int | None = None
    local_world_size: int | None = None
    environment: dict[str, str] = {}


class _Process(msgspec.Struct, frozen=True, kw_only=True):
    """Properties of a process from the operating system."""

    pid: int
    parent: int
    name: str
    command: tuple[str, ...]
    variables: Mapping[str, str]


def find_ranks(pid: int) -> list[RankProcess]:
    """Return the ranks among a process and its descendants, by rank; empty if it has ended or may not be read."""
    try:
        top = psutil.Process(pid)
        family = [top, *top.children(recursive=True)]
    except psutil.Error:
        return []
    return ranks_among([seen for process in family if (seen := see(process)) is not None])


def ranks_below(pid: int) -> list[int]:
    """Return the process ids of the ranks that a process has started, directly or not."""
    return [found.pid for found in find_ranks(pid) if found.pid != pid]


def ranks_of_job(job: Mapping[str, str]) -> list[RankProcess]:
    """Return the ranks on this host that have all these variables in their environment, by rank."""
    named = (process for process in psutil.process_iter() if job.items() <= variables(process.pid).items())
    return ranks_among([seen for process in named if (seen := see(process)) is not None])


def ranks_with(variable: str) -> list[RankProcess]:
    """Return the ranks on this host that have this variable in their environment, whatever its value."""
    named = (process for process in psutil.process_iter() if variable in variables(process.pid))
    return ranks_among([seen for process in named if (seen := see(process)) is not None])


def ranks_among(family: Sequence[_Process]) -> list[RankProcess]:
    """Return the ranks among a process and its descendants; `family` has parents first."""
    by_pid = {process.pid: process for process in family}
    ranks: dict[int, RankProcess] = {}
    for process in family:
        if process.pid in ranks:
            continue
        if led := _self_launched_ranks(process, family):
            ranks |= led
            continue
        if not _is_program(process) or any(up in ranks for up in _ancestors(process, by_pid)):
            continue
        spawned = _is_spawned(process, by_pid.get(process.parent))
        named = read_number(process.variables, RANK)
        if spawned or (named is not None and not _only_launches(process, family, by_pid)):
            ranks[process.pid] = _rank_process(process, named)
    return sorted(ranks.values(), key=lambda found: (found.rank is None, found.rank or 0, found.pid))


def describe(pid: int) -> RankProcess:
    """Return a process treated as a rank, with the values in its environment."""
    with suppress(psutil.Error):
        seen = see(psutil.Process(pid))
        if seen is not None:
            return _rank_process(seen, read_number(seen.variables, RANK))
    return RankProcess(pid=pid)


def variables(pid: int) -> dict[str, str]:
    """Return the environment that a process was started with; empty if unreadable."""
    try:
        return dict(psutil.Process(pid).environ())
    except (psutil.Error, OSError):
        return {}


def liveness(pid: int, seen: float | None = None) -> str:
    """Return `running`, `stopped` or `ended`; a process younger than `seen` is a different one with the same id."""
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


def see(process: psutil.Process) -> _Process | None:
    """Return what the operating system shows of a process; None if it has ended or may not be read."""
    with suppress(psutil.Error, OSError):
        with process.oneshot():
            if process.status() == psutil.STATUS_ZOMBIE:
                return None
            name, command, parent = process.name(), tuple(process.cmdline()), process.ppid()
        return _Process(pid=process.pid, parent=parent, name=name, command=command, variables=process.environ())
    return None


def _is_program(process: _Process) -> bool:
    """True if it is a Python program that is neither a launcher nor a helper of multiprocessing."""
    if not process.command:
        return False
    if not (_PYTHON.match(process.name) or _PYTHON.match(Path(process.command[0]).name)):
        return False
    return not is_launcher(process.command) and not any(HELPER.search(word) for word in process.command[1:4])


def is_launcher(command: Sequence[str]) -> bool:
    """True if a Python program with this command starts ranks and is none."""
    return any(_LAUNCHER.search(word) for word in command[1:4])


def _is_spawned(process: _Process, parent: _Process | None) -> bool:
    """True if multiprocessing started it: spawned, or forked without an exec."""
    if any("multiprocessing.spawn" in word or "--multiprocessing-fork" in word for word in process.command):
        return True
    return parent is not None and len(process.command) > 1 and process.command == parent.command


def _self_launched_ranks(process: _Process, family: Sequence[_Process]) -> dict[int, RankProcess]:
    """Return all local ranks of a program that is the first one and restarted itself for the others; else empty.

    Lightning does so, and gives them only their local number.
    https://github.com/Lightning-AI/pytorch-lightning/blob/master/src/lightning/fabric/strategies/launchers/subprocess_script.py
    """
    below = [p for p in family if p.parent == process.pid and _is_program(p) and p.variables.get("NODE_RANK") == "0"]
    local = {read_number(p.variables, LOCAL_RANK): p for p in below if read_number(p.variables, RANK) is None}
    own = process.variables.get("LOCAL_RANK", "0")
    if not local or set(local) != set(range(1, len(local) + 1)) or own != "0" or not _is_program(process):
        return {}
    alike = next(iter(local.values())).variables
    first = msgspec.structs.replace(_rank_process(process, 0), world_size=read_number(alike, WORLD_SIZE), local_rank=0)
    return {process.pid: first} | {p.pid: _rank_process(p, rank) for rank, p in local.items()}


def _only_launches(process: _Process, family: Sequence[_Process], by_pid: Mapping[int, _Process]) -> bool:
    """True if its children have rank numbers that it does not have itself."""
    own = read_number(process.variables, RANK)
    below = [p for p in family if any(up == process.pid for up in _ancestors(p, by_pid))]
    return len({read_number(p.variables, RANK) for p in below if _is_program(p)} - {None, own}) > 0


def _ancestors(process: _Process, by_pid: Mapping[int, _Process]) -> Iterator[int]:
    seen = {process.pid}
    while (parent := process.parent) in by_pid and parent not in seen:
        yield parent
        seen.add(parent)
        process = by_pid[parent]


def _rank_process(process: _Process, rank: int | None) -> RankProcess:
    return RankProcess(
        pid=process.pid,
        parent=process.parent,
        rank=rank,
        world_size=read_number(process.variables, WORLD_SIZE),
        local_rank=read_number(process.variables, LOCAL_RANK),
        local_world_size=read_number(process.variables, LOCAL_WORLD_SIZE),
        environment=allowed_variables(process.variables),
    )


class MemoryKills:
    """Counts OOM kills since the start of the job."""

    def __init__(self) -> None:
        self._begun = time.clock_gettime(time.CLOCK_MONOTONIC)
        self._before = _kills()

    def count_kills(self) -> tuple[int | None, frozenset[int]]:
        """Return the number of OOM kills in our control group since then (None if unreadable) and their processes."""
        now = _kills()
        count = None if now is None or self._before is None else now - self._before
        return count, _logged_kills(self._begun)


def _kills() -> int | None:
    """Return `oom_kill` of our control group, version 2 or 1."""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers not in ("", "memory"):
                continue
            root, name = (
                ("/sys/fs/cgroup/memory", "memory.oom_control") if controllers else ("/sys/fs/cgroup", "memory.events")
            )
            for folder in (root + path, root):  # a container's own group is mounted as the root
                with suppress(OSError):
                    found = _COUNTER.search(Path(folder, name).read_text())
                    if found:
                        return int(found["count"])
    return None


def is_killed_for_memory(pid: int, seconds: float) -> bool:
    """True if the system's log lists the process as OOM-killed within these last seconds; False if it is unreadable."""
    return pid in _logged_kills(time.clock_gettime(time.CLOCK_MONOTONIC) - seconds)


def _logged_kills(since: float) -> frozenset[int]:
    """Return the processes that the kernel's log lists as OOM-killed since then; empty if unreadable."""
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
