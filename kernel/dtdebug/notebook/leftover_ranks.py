"""Finds ranks left running by a cell that was interrupted or failed, or whose kernel was restarted.

They are recognised by the folder named in the environment of all processes of a kernel, and by their records there.
Both survive the kernel, whose connection file keeps its name across a restart.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil

from dtdebug.live.probe import processes, tcp_peers
from dtdebug.live.probe.processes import liveness
from dtdebug.notebook import cell_journal, ipyparallel_engines
from dtdebug.privacy.sanitize import clean
from dtdebug.storage import VARIABLE
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.model.ranks import ranges

_PORTS, _MEMBERS = 4, 4096
_ROUNDED = 1.0
"""Tolerance in seconds of process start times reported by the operating system."""
_TICK = 0.02
"""Tolerance in seconds once the start times are corrected."""
_PATIENCE, _KILLED = 3.0, 2.0
"""Seconds from SIGTERM to SIGKILL, and from SIGKILL to giving up."""
_ENDING_TICK = 0.05


class LeftoverRanks(msgspec.Struct, frozen=True, kw_only=True):
    """Ranks of one cell that outlived it."""

    pids: tuple[int, ...]
    """Ranks and their launchers."""
    ranks: str
    """`0-3`, or empty if not every rank's number is known."""
    count: int
    cell: int | None
    """Number of the cell, or None if the kernel's journal no longer has it."""
    ports: tuple[int, ...]
    """TCP ports at which they listen: the port of their store if it is among them, else all."""
    memory: int
    """Bytes of host memory that they hold; shared memory counts for each process."""
    notebook: str = ""
    """Notebook of a kernel that has ended without a successor, or a description of it."""

    @property
    def line(self) -> str:
        """Sentence that names the running ranks and what they hold."""
        one = self.count == 1
        who = f"rank{'' if one else 's'} {self.ranks}" if self.ranks else f"{self.count} rank{'' if one else 's'}"
        where = f" of cell [{self.cell}]" if self.cell is not None else " of an earlier cell"
        where += f" of {self.notebook}, whose kernel has ended," if self.notebook else ""
        ports = f"port{'s' if len(self.ports) > 1 else ''} {ranges(self.ports, _PORTS)} and " if self.ports else ""
        verbs = ("is", "holds") if one else ("are", "hold")
        return f"{who}{where} {verbs[0]} still running and {verbs[1]} {ports}{self.memory / 1e9:.1f} GB of memory"


def find_leftovers(kernel: str) -> list[LeftoverRanks]:
    """Return the ranks that cells of this kernel left running on this host, the latest cell first."""
    return _of(row for row in cell_journal.entries() if row[1].kernel == kernel)


def find_abandoned(kernels: Collection[str]) -> list[LeftoverRanks]:
    """Return the ranks left by ended kernels outside of this collection, as after a restart of their server."""
    found: list[LeftoverRanks] = []
    for path, entry in cell_journal.entries():
        if entry.kernel not in kernels and not cell_journal.lives(entry.pid):
            for each in _of([(path, entry)]):
                named = processes.variables(each.pids[0]).get("JPY_SESSION_NAME", "")
                notebook = clean(Path(named).name) or "a notebook"
                found.append(msgspec.structs.replace(each, notebook=notebook))
    return found


def _of(entries: Iterable[tuple[Path, cell_journal.LastCell]]) -> list[LeftoverRanks]:
    found: dict[int | None, list[Member]] = {}
    kernels: set[int] = set()
    for path, entry in entries:
        kernels.add(entry.pid)
        for member in _members(path, entry):
            found.setdefault(member.cell, []).append(member)
    theirs = {port for pid in kernels for port in tcp_peers.sockets(pid).listens}
    return [
        describe_leftovers(cell, found[cell], theirs)
        for cell in sorted(found, key=lambda cell: cell or 0, reverse=True)
    ]


class Member(msgspec.Struct, frozen=True):
    """Rank that still runs."""

    pid: int
    rank: int | None
    launchers: tuple[int, ...]
    cell: int | None
    endpoint: str = ""
    """Address of dtdebug's own endpoint in that process."""


def _members(path: Path, entry: cell_journal.LastCell) -> Iterator[Member]:
    """Yield the live ranks of a kernel's folder that its running cell did not start."""
    run = RunFolder(path)
    written = {r.pid: r for r in run.records() if r.pid and r.alive is not False}
    records = {pid: r.rank for pid, r in written.items()}
    armed = processes.ranks_of_job({VARIABLE: str(path)})
    ranks = {found.pid: found.rank for found in (*processes.find_ranks(entry.pid), *armed)}
    runs = entry.running and cell_journal.lives(entry.pid)
    began = entry.begun if runs else time.time()
    shift = _shift()
    members = list({**records, **ranks})[:_MEMBERS]
    unnumbered = [pid for pid in members if records.get(pid) is None and ranks.get(pid) is None]
    no_ranks = {*unnumbered} - tcp_peers.among(unnumbered, [entry.pid])
    if not cell_journal.lives(entry.pid):
        no_ranks |= ipyparallel_engines.with_client(members)  # reachable from another notebook
    for pid in members:
        if pid in no_ranks:
            continue
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            since = process.create_time() + shift
            late = (
                pid in records and pid not in ranks and since > _record_time(run, pid) + _ROUNDED
            )  # the process number was reused
            if pid == entry.pid or process.status() == psutil.STATUS_ZOMBIE or late or since > began + _TICK:
                continue
            cell = entry.cell_at(since + _TICK)
            if runs and cell == entry.number:  # forked within the tolerance of the cell's start
                continue
            launchers = tuple(up.pid for up in process.parents() if _belongs(up, path) and up.pid != entry.pid)
            rank = records.get(pid)
            yield Member(
                pid,
                ranks.get(pid) if rank is None else rank,
                launchers,
                cell,
                written[pid].facts.get("endpoint", "") if pid in written else "",
            )


def _shift() -> float:
    """Return by how many seconds process start times are too early: they count from a boot time in whole seconds."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return 0.0
    boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return float(min(max(boot - psutil.boot_time(), -_ROUNDED), _ROUNDED))


def _record_time(run: RunFolder, pid: int) -> float:
    record = run.record_path(pid)
    with suppress(OSError):
        return record.stat().st_mtime if record is not None else 0.0
    return 0.0


def _belongs(process: psutil.Process, path: Path) -> bool:
    with suppress(psutil.Error, OSError):
        return bool(process.environ().get(VARIABLE) == str(path))
    return False


def describe_leftovers(cell: int | None, members: Sequence[Member], kernels: Collection[int]) -> LeftoverRanks:
    """Describe the ranks of a cell; `kernels` are ports at which kernels listen."""
    pids = list(dict.fromkeys([*(m.pid for m in members), *(up for m in members for up in m.launchers)]))
    ports: set[int] = set()
    """Excludes the kernels' ports, which a forked rank inherits."""
    store: set[str] = set()
    memory = 0
    for pid in pids:
        with suppress(psutil.Error):
            memory += psutil.Process(pid).memory_info().rss
            store.add(processes.variables(pid).get("MASTER_PORT", ""))
            ports |= tcp_peers.sockets(pid).listens - {*kernels}
    ports = {port for port in ports if not any(m.endpoint.endswith(f":{port}") for m in members)}
    numbers = [m.rank for m in members if m.rank is not None]
    return LeftoverRanks(
        pids=tuple(pids),
        ranks=ranges(sorted(set(numbers)), 16) if len(set(numbers)) == len(members) else "",
        count=len(members),
        cell=cell,
        ports=tuple(sorted({port for port in ports if str(port) in store} or ports)),
        memory=memory,
    )


def wait_leftovers(kernel: str, seconds: float = 1.0) -> list[LeftoverRanks]:
    """Return the ranks that do not end by themselves in time; an interrupt reaches ranks as well as the cell."""
    end = time.monotonic() + seconds
    while (found := find_leftovers(kernel)) and time.monotonic() < end:
        time.sleep(0.1)
    return found


def end(kernel: str, pids: Sequence[int], pid: int) -> tuple[list[int], str]:
    """End those of the processes that cells of this kernel left behind, or that are ranks below its process."""
    left_by_cells = {each for found in find_leftovers(kernel) for each in found.pids}
    allowed = {*processes.ranks_below(pid), *left_by_cells} - {pid, os.getpid()}
    return end_ranks(pids, allowed)


def end_ranks(pids: Sequence[int], allowed: Collection[int], *, kernel: bool = True) -> tuple[list[int], str]:
    """Return (ended processes, sentence about the result); processes that are not allowed are left alone."""
    chosen: dict[int, psutil.Process] = {}
    for pid in dict.fromkeys(pids):
        if pid in allowed:
            with suppress(psutil.Error):
                chosen[pid] = psutil.Process(pid)
    _signal(chosen, signal.SIGTERM)
    rest = _wait(chosen, _PATIENCE)
    _signal(rest, signal.SIGKILL)
    rest = _wait(rest, _KILLED)
    ended = [pid for pid in chosen if pid not in rest]
    return ended, _ended_words(
        ended, list(rest), [pid for pid in dict.fromkeys(pids) if pid not in chosen], kernel=kernel
    )


def _signal(processes: dict[int, psutil.Process], number: signal.Signals) -> None:
    for process in processes.values():
        with suppress(psutil.Error):  # psutil does not signal another process that got the number in the meantime
            process.send_signal(number)


def _wait(processes: dict[int, psutil.Process], seconds: float) -> dict[int, psutil.Process]:
    """Return the processes still alive after this time; don't reap them, because their parents need the exit status."""
    end, left = time.monotonic() + seconds, dict(processes)
    while True:
        left = {pid: process for pid, process in left.items() if liveness(pid) != "ended"}
        if not left or time.monotonic() > end:
            return left
        time.sleep(_ENDING_TICK)


def _ended_words(ended: Sequence[int], left: Sequence[int], others: Sequence[int], *, kernel: bool) -> str:
    stays = "; the kernel and its variables are as they were" if kernel else ""

    def processes(pids: Sequence[int]) -> str:
        return f"process{'es' if len(pids) > 1 else ''} {ranges(pids, 16)}"

    rows: tuple[tuple[Sequence[int], Callable[[str], str]], ...] = (
        (ended, lambda them: f"ended {them}{stays}"),
        (left, lambda them: f"{them} can't be ended: they wait in the operating system, as for a device"),
        (others, lambda them: f"left {them} alone: no rank of this kernel"),
    )
    return "; ".join(words(processes(pids)) for pids, words in rows if pids) or "no process was named"
