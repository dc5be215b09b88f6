"""Reads how ranks ended from the output of the ranks and their launcher.

Patterns run in linear time, and only on lines with a characteristic word: the text is untrusted.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import NamedTuple

from dtdebug_taxonomy.logs.child_processes import child_of
from dtdebug_taxonomy.logs.events import Events, PrintedException
from dtdebug_taxonomy.logs.lines import Line
from dtdebug_taxonomy.logs.tasks import NO_SURROUNDINGS, EndedTask, Surroundings, are_ranks
from dtdebug_taxonomy.model.ranks import Frame
from dtdebug_taxonomy.text.lazy_re import lazy_re

_RANK = 9_999_999
_MOST = 1 << 16
"""Maximum number of ends: a line of a few bytes can name thousands."""


class Exit(NamedTuple):
    """End of a rank or process, as one passage reports it."""

    rank: int | None = None
    pid: int | None = None
    code: int | None = None
    signal: str = ""
    line: int = 0
    """Line of the output that reports it."""
    memory: bool = False
    """True if it reports that memory ran out."""
    host: str = ""
    """Host of the rank, if the launcher names it."""
    time: float = 0.0
    """Time by the launcher's clock, in seconds since the epoch; 0 if unknown."""
    task: int | None = None
    """Number of the task that ended, rank or not."""


class Exits(NamedTuple):
    """All ends that the output reports."""

    exits: tuple[Exit, ...]
    exceptions: dict[int, str]
    """Rank -> the last line of its traceback."""
    named: int | None
    """Rank that torchrun calls the root cause."""
    enforced: frozenset[int]
    """Ranks that gloo aborted because their arguments differ from their peers'; empty if no rank is named."""
    enforce: bool
    """True if gloo aborted a rank for that reason."""
    sizes: str = ""
    """Byte counts of the first such abort, as `396 vs 388`: received, and available room."""
    lines: dict[int, int] = {}
    """Rank -> line of the output in which its exception ends."""
    stacks: dict[int, tuple[Frame, ...]] = {}
    """Rank -> frames of its exception, innermost last."""
    children: dict[int, PrintedException] = {}
    """Rank -> exception of a child process that caused the rank's own."""
    processes: dict[str, PrintedException] = {}
    """Name of a multiprocessing process -> its exception, if only one process has that name."""
    closed: frozenset[int] = frozenset()
    """PIDs of processes that were still alive when the launcher ended them."""
    watchdogs: dict[int, str] = {}
    """Rank -> message of its NCCL watchdog about the failure for which it ends the process."""
    unopened: str = ""
    """Python's message, with exit status 2, about a missing program: `can't open file '/job/train.py': ...`."""

    @property
    def signalled_from_outside(self) -> frozenset[int]:
        """Rank ended by a signal like the launcher's, which the launcher sent only to the others; empty without one.

        https://github.com/pytorch/pytorch/blob/main/torch/distributed/elastic/multiprocessing/api.py, `_close`
        """
        ended = [e for e in self.exits if e.signal in LAUNCHER and e.rank is not None and e.pid]
        outside = frozenset(e.rank for e in ended if e.pid not in self.closed and e.rank is not None)
        return outside if len(outside) == 1 and len(ended) > 1 else frozenset()

    def was_forced(self, end: Exit) -> bool:
        """True if torchrun killed it because it was still alive half a minute after another's end, see `_close`."""
        first = next((e for e in self.exits if e.rank == self.named and e.code and e.time), None)
        return first is not None and end.signal == "SIGKILL" and end.time - first.time >= _FORCED


LAUNCHER = frozenset({"SIGTERM", "SIGINT", "SIGHUP"})
"""Signals that launchers send to surviving ranks."""
_FORCED = 25
"""Seconds: torchrun waits 30, and polls for ends."""
_CLOSED = lazy_re(r"Sending process (\d{1,9}) closing signal")
_FAILED = lazy_re(r" *(?P<key>rank|exitcode) *: *(?P<value>-?\d{1,9})(?!\d)(?: *\(pid: *(?P<pid>\d{1,9})\))?")
_TIME = lazy_re(r" *time {1,10}: (\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d)$")
_LOCAL = lazy_re(r"failed \(exitcode: (?P<code>-?\d{1,9})\) local_rank: (?P<rank>\d{1,7}) \(pid: (?P<pid>\d{1,9})\)")
_MPI_SIGNAL = lazy_re(
    r"process rank (?P<rank>\d{1,7}) with PID (?P<pid>\d{1,9}) on node \S{1,255} exited on signal (?P<signal>\d{1,3})"
)
_MPI_NAME = lazy_re(r"Process name: \[[^\s,@]{1,200}[,@]\d{1,9}\]?,(?P<rank>\d{1,7})\]")
_MPI_CODE = lazy_re(r"Exit code: *(?P<code>\d{1,9})")
_SRUN = lazy_re(
    r"srun: error: (?P<host>[^\s:]{1,255}): tasks? (?P<ranks>[\d,-]{1,500}): (?:\[[^\]]{1,100}\] )?"
    r"(?:Exited with exit code (?P<code>\d{1,9})|(?P<words>Killed|Terminated|Aborted|Segmentation fault|Bus error"
    r"|Out Of Memory))"
)
_WORDS = {
    "Killed": "SIGKILL", "Out Of Memory": "SIGKILL", "Terminated": "SIGTERM", "Aborted": "SIGABRT",
    "Segmentation fault": "SIGSEGV", "Bus error": "SIGBUS",
}  # fmt: skip
_SPAWN = lazy_re(
    r"process (?P<rank>\d{1,7}) terminated with (?:signal (?P<signal>SIG[A-Z]{2,9})|exit code (?P<code>\d{1,9}))"
)
_SHELL = lazy_re(r"line \d{1,9}: +(?P<pid>\d{1,9}) (?P<words>Killed|Terminated|Aborted|Segmentation fault|Bus error)\b")
_HOROVOD = lazy_re(r"Process (?P<rank>\d{1,7}) exit with status code (?P<code>\d{1,9})")
_DEEPSPEED = lazy_re(r"--local_rank=(?P<rank>\d{1,7})\b.{0,2000} exits with return code = (?P<code>-?\d{1,9})")
"""Whichever process ended, the launcher prints the command of the last one that it started, so that its rank only
gives the number of processes. https://github.com/deepspeedai/DeepSpeed/blob/master/deepspeed/launcher/launch.py"""
UNOPENED = 2
"""Exit status of a Python that can't open its program: https://github.com/python/cpython/blob/main/Modules/main.c"""
_UNOPENED = lazy_re(r"python[\d.]{0,6}(?:\.exe)?: (can't open file .{1,300})")
_WATCHDOG = lazy_re(
    r"(?:watchdog thread terminated with exception: (?:\[Rank \d{1,7}\] (?:Collective .{1,300} raised the following "
    r"async exception: )?)?|raised the following async exception: )(.{1,600})"
)
"""Source: https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp"""
_BELOW = 6
"""Maximum number of lines below it that may contain NCCL's last error."""
_SIZES = lazy_re(r"\b\d{1,12} vs\.? \d{1,12}\b")


def exits_in(output: str, around: Surroundings = NO_SURROUNDINGS) -> Exits:
    """Return the ends that the output reports."""
    from dtdebug_taxonomy.logs import event_reader, lines

    printed = lines.split_lines(output)
    return rank_tasks(of_lines(printed, event_reader.find_events(printed)), printed, around)


def rank_tasks(said: Exits, printed: Sequence[Line], around: Surroundings = NO_SURROUNDINGS) -> Exits:
    """Give ended tasks their ranks, if the output or what surrounds it shows that tasks are ranks."""
    ended = [EndedTask(e.task, e.host) for e in said.exits if e.task is not None]
    if not ended:
        return said
    shown = are_ranks(printed, ended, around)
    return said._replace(exits=tuple(e._replace(rank=_rank_of_task(e, shown)) for e in said.exits))


def _rank_of_task(end: Exit, shown: bool | None) -> int | None:
    """The rank of an end: mpirun speaks of its ranks unless each starts others, Slurm of its tasks."""
    if end.task is None:
        return end.rank
    return end.task if shown or (shown is None and not end.host) else None


def of_lines(printed: Sequence[Line], happened: Events) -> Exits:
    """Return the ends that lines, and the exceptions in them, report."""
    exits: list[Exit] = []
    enforced: set[int] = set()
    named, block, summary, enforce = None, None, False, False
    mpi: int | None = None
    sizes = ""
    unopened = ""
    closed: set[int] = set()
    time = 0.0
    for line in printed:
        words = line.body
        time = _time(words, time)
        summary = summary or words.startswith("Root Cause (first observed failure)")
        if found := _FAILED.match(words):
            if found["key"] == "rank":
                block = min(int(found["value"]), _RANK)
                if summary and named is None:
                    named = block
            elif block is not None:
                exits.append(_exit(block, found["pid"], int(found["value"]), line.number)._replace(time=time))
                block = None
            continue
        if found := _MPI_NAME.search(words):
            mpi = int(found["rank"])
        elif mpi is not None and (found := _MPI_CODE.search(words)):
            exits.append(Exit(rank=mpi, code=int(found["code"]), line=line.number, task=mpi))
            mpi = None
        found_here: Iterable[Exit] = islice(_line(words, line.number), max(0, _MOST - len(exits)))
        if line.host and "--local_rank=" in words:  # with several hosts, a host's only process may have any rank
            found_here = (e._replace(rank=None) for e in found_here)
        exits += found_here
        if "closing signal" in words and len(closed) < _MOST and (found := _CLOSED.search(words)):
            closed.add(int(found[1]))
        if "gloo::EnforceNotMet" in words:
            enforce = True
            enforced |= {line.rank} if line.rank is not None else set()
        if not unopened and "can't open file" in words and (found := _UNOPENED.search(words)):
            unopened = found[1].rstrip()
        if enforce and not sizes and (found := _SIZES.search(words)):
            sizes = found[0]
    raised = {r.rank: r for r in happened.raised if r.rank is not None and not r.unheeded}
    children = {rank: child for rank, r in raised.items() if (child := child_of(r)) is not None}
    return Exits(
        tuple(exits),
        {rank: r.text[:500] for rank, r in raised.items()},
        named,
        frozenset(enforced),
        enforce,
        sizes,
        {rank: r.line for rank, r in raised.items()},
        {rank: r.frames for rank, r in raised.items()},
        children,
        _processes(happened),
        frozenset(closed),
        _watchdogs(printed),
        unopened,
    )


def _time(words: str, before: float) -> float:
    """Return the time that torchrun's report gives for the ends below it; `before` if the line has none."""
    found = _TIME.match(words)
    if found is None:
        return before
    try:
        return datetime.strptime(found[1], "%Y-%m-%d_%H:%M:%S").replace(tzinfo=UTC).timestamp()
    except ValueError:  # the 31st of February
        return 0.0


def _watchdogs(printed: Sequence[Line]) -> dict[int, str]:
    """Return rank -> message of its watchdog; NCCL's last error is some lines below, without the rank."""
    found: dict[int, str] = {}
    for index, line in enumerate(printed):
        if line.rank is None or "exception: " not in line.body or not (said := _WATCHDOG.search(line.body)):
            continue
        below = [x.body for x in printed[index + 1 : index + 1 + _BELOW] if x.rank in (None, line.rank)]
        at = next((i for i, words in enumerate(below[:-1]) if words.strip() == "Last error:"), None)
        last = f"; last error: {below[at + 1].strip()}" if at is not None and "NCCL error" in said[1] else ""
        found.setdefault(line.rank, f"{said[1].strip()[:300]}{last}"[:500])
    return found


def _processes(happened: Events) -> dict[str, PrintedException]:
    rows = [r for r in happened.raised if r.process]
    names = Counter(r.process for r in rows)
    return {r.process: r for r in rows if names[r.process] == 1}


def signal_name(number: int) -> str:
    """Return `SIGKILL` for 9."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _exit(rank: int | None, pid: str | None, code: int, line: int) -> Exit:
    number = int(pid) if pid else None
    name = signal_name(-code) if code < 0 else ""
    return Exit(rank, number, None if code < 0 else code, name, line)


def _line(words: str, line: int) -> Iterator[Exit]:
    """Yield the ends that a single line of a launcher reports."""
    if "exitcode: " in words and (found := _LOCAL.search(words)):
        yield _exit(None, found["pid"], int(found["code"]), line)
    elif "exited on signal" in words and (found := _MPI_SIGNAL.search(words)):
        number, task = signal_name(int(found["signal"])), int(found["rank"])
        yield Exit(task, int(found["pid"]) or None, None, number, line, task=task)
    elif "srun: error: " in words and (found := _SRUN.search(words)):
        code = int(found["code"]) if found["code"] else None
        name, memory = _WORDS.get(found["words"] or "", ""), found["words"] == "Out Of Memory"
        for task in _ranks(found["ranks"]):
            yield Exit(None, None, code, name, line, memory, found["host"], task=task)
    elif "line " in words and (found := _SHELL.search(words)):
        yield Exit(None, int(found["pid"]), None, _WORDS[found["words"]], line)
    elif "terminated with" in words and (found := _SPAWN.search(words)):
        yield Exit(int(found["rank"]), None, int(found["code"]) if found["code"] else None, found["signal"] or "", line)
    elif "exit with status code" in words and (found := _HOROVOD.search(words)):
        yield Exit(int(found["rank"]), None, int(found["code"]), "", line, task=int(found["rank"]))
    elif "exits with return code" in words and (found := _DEEPSPEED.search(words)):
        yield _exit(None if int(found["rank"]) else 0, None, int(found["code"]), line)


def _ranks(text: str) -> Iterator[int]:
    """Yield the numbers of `0-2,5`, bounded."""
    for part in text.split(",")[:100]:
        first, _, last = part.partition("-")
        if first.isdecimal() and (not last or last.isdecimal()):
            yield from range(int(first), min(int(last or first), int(first) + 4_096) + 1)
