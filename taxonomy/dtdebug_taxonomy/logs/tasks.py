"""Decides if the tasks of a scheduler, or the processes of mpirun, are ranks: each may start several ranks instead.

A number of a task is a rank only if the output shows it. Where each node has one task that runs torchrun, task 4 is the
launcher of a node, and its ranks are others.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from dtdebug_taxonomy.logs.lines import Line, is_launched_by_tasks

_OF_SLURM = re.compile(r"\bRANK=\"?\$\{?SLURM_PROCID\b|\bSLURM_PROCID\b.{0,40}\bRANK\b")
_SIZE = re.compile(r"\b(?:SLURM_NTASKS|SLURM_NPROCS)=(\d{1,6})\b|--ntasks[ =](\d{1,6})\b")
_NCCL = re.compile(
    r"(?P<host>[\w.-]{1,100}):\d{1,9}:\d{1,9} \[\d{1,3}\] NCCL INFO .{0,200}"
    r"\brank (?P<rank>\d{1,7}) nranks (?P<world>\d{1,7})\b"
)
_WORLD = re.compile(r"(?i)\bworld[ _]size['\"]? {0,10}[:=]? {0,3}'?(\d{1,6})\b")
_FEWEST = 2


class LastLine(NamedTuple):
    """Last line that a rank printed before the others reported the failure."""

    rank: int
    text: str
    line: int
    clock: str = ""
    """Time of day before or in the line; empty without one."""
    path: str = ""


class Surroundings(NamedTuple):
    """Facts about a job that its output does not contain."""

    alike: Mapping[int, Sequence[int]] = {}
    """Rank -> all ranks that tell of the failure as it does; lines of some of them may be left out of the output."""
    world: int = 0
    """Size of the job; 0 if it is unknown."""
    hosts: Mapping[int, str] = {}
    """Rank -> its host."""
    printing: Collection[int] = ()
    """All ranks that print."""
    endings: Mapping[int, LastLine] = {}
    """Rank -> its last line, of ranks that do not report the failure."""
    labelled: bool = False
    """Numbers of tasks stand before the lines of ranks and are theirs."""


NO_SURROUNDINGS = Surroundings()


class EndedTask(NamedTuple):
    """A task that a scheduler reports as ended."""

    number: int
    host: str


def are_ranks(
    printed: Sequence[Line], ended: Sequence[EndedTask], around: Surroundings = NO_SURROUNDINGS
) -> bool | None:
    """Return whether these tasks are ranks, as the output shows; None if it shows neither."""
    labels = {(line.task, line.rank) for line in printed if line.task is not None}
    if any(task for task, _ in labels):
        return all(task == rank for task, rank in labels)
    if around.labelled:
        return True
    if any(is_launched_by_tasks(line.body) for line in printed):
        return False
    world, tasks = job_size(printed, around), 0
    hosts = {rank: _short(host) for rank, host in around.hosts.items() if host}
    for line in printed:
        if "SLURM_" in line.body or "--ntasks" in line.body:
            if _OF_SLURM.search(line.body):
                return True
            tasks = max(tasks, *(int(a or b) for a, b in _SIZE.findall(line.body[:4_000])), 0)
        if "nranks" in line.body and (found := _NCCL.search(line.body[:800])):
            hosts.setdefault(int(found["rank"]), _short(found["host"]))
    world = max(world, _size({*around.printing, *(line.rank for line in printed if line.rank is not None)}))
    if (of_hosts := _by_hosts(ended, hosts)) is not None:
        return of_hosts
    if world > 1 and _FEWEST * max(tasks, *(task.number + 1 for task in ended), 0) > world:
        return True  # a launcher has at least two ranks, or is one
    if tasks and world > tasks:
        return False
    return True if _several_on_a_host(ended) else None


def job_size(printed: Sequence[Line], around: Surroundings = NO_SURROUNDINGS) -> int:
    """Return the size of the job that the output states; 0 if it states none."""
    return max(around.world, *(size for line in printed for size in _sizes_in(line.body)), 0)


def _sizes_in(text: str) -> Iterator[int]:
    if "nranks" in text and (found := _NCCL.search(text[:800])):
        yield int(found["world"])
    elif "orld" in text or "WORLD" in text:
        yield from (int(size) for size in _WORLD.findall(text[:400]))


def _size(ranks: Collection[int]) -> int:
    """The size of a job of which nearly all ranks print; 0 if that is not known."""
    most = max(ranks, default=-1) + 1
    return most if most > 1 and 4 * len(ranks) >= 3 * most else 0


def _by_hosts(ended: Iterable[EndedTask], hosts: Mapping[int, str]) -> bool | None:
    """Compare with the hosts of ranks: the launcher of a host but the first has another number than any rank there."""
    for task in ended:
        here = {rank for rank, host in hosts.items() if host == _short(task.host)}
        if task.number and here:
            return task.number in here
    return None


def _several_on_a_host(ended: Iterable[EndedTask]) -> bool:
    """A host has one launcher of ranks, and many ranks."""
    often = Counter(task.host for task in {*ended} if task.host)
    return max(often.values(), default=0) >= _FEWEST


def _short(host: str) -> str:
    return host if host.replace(".", "").isdigit() else host.split(".", maxsplit=1)[0].lower()
