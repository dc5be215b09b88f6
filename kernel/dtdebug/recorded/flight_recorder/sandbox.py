"""Reads dumps in child processes with limits, so that no file can block or crash the reader.

A few bytes of pickle can ask for any amount of memory and time: nested tuples as the key of a dictionary, integers
with one hash, millions of empty containers. None of it can be interrupted from Python. So a child reads them one after
the other, each within its own limits of CPU seconds and memory; if one kills the child, only that dump is lost and
another child reads the rest.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path

from dtdebug.privacy.sanitize import clean
from dtdebug.recorded.flight_recorder import load_dump
from dtdebug.recorded.flight_recorder.group_status import reduced_program
from dtdebug.recorded.flight_recorder.load_dump import DumpError, DumpFile
from dtdebug.recorded.flight_recorder.rank_program import Program
from dtdebug.storage import budget
from dtdebug.storage.budget import Budget

_MANY = 48
"""Number of dumps that justifies another child."""
_SECONDS, _PER_SECOND = 1.0, 4 << 20
"""CPU seconds that a dump may take from the budget, and bytes that add one more second: a fifth of the usual speed."""
_FREE = 0.05
"""CPU seconds that any dump may take."""
_CRASH = 0.25
"""Seconds that a dump costs if it ends the child, which has to be replaced."""
_WALL = 20.0
"""Extra wall-clock seconds after which the file system or the machine counts as unresponsive."""
_MEMORY, _PER_BYTE = 128 << 20, 16
"""Memory in bytes for any dump, and extra bytes for each byte of it: twice the usual."""
_CHILD = "from dtdebug.recorded.flight_recorder.sandbox import main; main()"

Made = Program | str
"""Program reduced from a dump, or the reason why it can't be read."""
Shared = dict[tuple[int, ...], tuple[int, ...]]
"""Lists of ranks that are stored once, however many dumps tell them."""
UNREAD = ""
"""Reason of the dumps for which no time was left."""


def one(found: DumpFile) -> Made:
    """Read one dump, without limits."""
    name = clean(found.path.name)
    try:
        made = reduced_program(load_dump.read_dump(found.path), found.rank)
    except DumpError as error:
        return str(error)
    except MemoryError:
        return f"{name}: asks for more memory than a dump of its size has; it is damaged or hostile"
    if made.bad and not len(made.order):
        return f"{name}: none of its {made.bad} entries makes sense"
    made.taken = load_dump.modified_time(found.path)
    return made


def every(found: Sequence[DumpFile]) -> list[Made]:
    """Read all dumps in children, in the order of `found`, until those that cost too much have used up the budget."""
    spending = budget.current()
    workers = max(1, min(os.cpu_count() or 1, len(found) // _MANY + 1))
    share = -(-len(found) // workers) or 1
    made: list[Made] = [UNREAD] * len(found)
    shared: Shared = {}
    running: dict[Connection, _Child] = {}
    try:
        for begin in range(0, len(found), share):
            child = _Child(found, begin, min(begin + share, len(found)), spending, shared)
            running[child.results] = child
        while running and spending.seconds > 0:
            wait(list(running), 0.5)
            for child in list(running.values()):
                if child.take(made):
                    continue
                del running[child.results]
                if child.next < child.end:  # the current dump has killed it
                    made[child.next] = child.why()
                again = child.next + 1
                child.close()
                if again < child.end and spending.seconds > 0:
                    after = _Child(found, again, child.end, spending, shared)
                    running[after.results] = after
    finally:
        for child in running.values():
            child.close()
    return made


def _share(made: Made, shared: Shared) -> None:
    """Replace the lists of ranks of a program by equal ones that are known already."""
    if isinstance(made, str):
        return
    known: dict[int, tuple[int, ...]] = {}  # within one dump equal lists are mostly one object
    for name, group in made.groups.items():
        ranks = known.get(id(group.ranks))
        if ranks is None:
            ranks = known[id(group.ranks)] = shared.setdefault(group.ranks, group.ranks)
        made.groups[name] = group._replace(ranks=ranks)


def _seconds(size: int) -> float:
    """Return the CPU seconds that a dump of this size may take without drawing on the budget."""
    return _FREE + size / _PER_SECOND


class _Child:
    """A process that reads some of the dumps and sends the result of each."""

    def __init__(self, found: Sequence[DumpFile], begin: int, end: int, spending: Budget, shared: Shared) -> None:
        self._found, self.next, self.end, self._spending, self._shared = found, begin, end, spending, shared
        left = spending.seconds
        self.results, sender = Pipe(duplex=False)
        self._late = False
        self._status: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        todo = found[begin:end]
        with sender:
            if threading.active_count() > 1:  # forking a program with threads, such as a kernel, is not safe
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-c", _CHILD, str(sender.fileno()), str(left)],
                    stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    pass_fds=[sender.fileno()], start_new_session=True,
                )  # fmt: skip
                self.pid = self._process.pid
                threading.Thread(target=_hand_over, args=(self._process, todo), daemon=True).start()
            else:
                self.pid = os.fork()
                if not self.pid:
                    _be_child(self.results, sender, todo, left)
        self._deadline = self._patience()

    def _patience(self) -> float:
        """Return the deadline of the next dump, in `time.monotonic()` seconds."""
        size = _size(self._found[self.next].path) if self.next < self.end else 0
        return time.monotonic() + _WALL + 4 * (_SECONDS + _seconds(size))

    def take(self, made: list[Made]) -> bool:
        """Store the results that have arrived; False if no more will come."""
        while self.results.poll():
            try:
                made[self.next], cost = self.results.recv()
                _share(made[self.next], self._shared)
                self._spending.seconds -= cost
            except (EOFError, OSError, ValueError):
                return False
            self.next += 1
            self._deadline = self._patience()
        self._late = time.monotonic() > self._deadline
        return not self._late

    def why(self) -> str:
        """Return why the dump that the child was reading has no result."""
        name = clean(self._found[self.next].path.name)
        if self._late:
            self._spending.seconds = 0.0
            return f"{name}: can't be read: its file system, or this machine, has not answered in time"
        self._status = self._poll_exit(5.0)
        if self._status == -signal.SIGPROF:
            self._spending.seconds -= _SECONDS
            return f"{name}: takes more time than a dump of its size does; it is damaged or hostile"
        self._spending.seconds -= _CRASH
        return f"{name}: can't be read: it ends what reads it; it is damaged or hostile"

    def _poll_exit(self, seconds: float) -> int | None:
        """Return the child's exit code, negative for a signal; None if it is still running after `seconds`."""
        if self._status is not None:
            return self._status
        until = time.monotonic() + seconds
        while True:
            if self._process is not None:
                self._status = self._process.poll()
            else:
                with suppress(ChildProcessError):
                    pid, status = os.waitpid(self.pid, os.WNOHANG)
                    self._status = os.waitstatus_to_exitcode(status) if pid else None
            if self._status is not None or time.monotonic() > until:
                return self._status
            time.sleep(0.005)

    def close(self) -> None:
        """Kill the child; one that is blocked by a file system is left behind."""
        self.results.close()
        if self._poll_exit(0.05) is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self._poll_exit(1.0)


def _size(path: Path) -> int:
    """Return the size of a file in bytes, 0 if unknown."""
    try:
        return min(path.stat().st_size, load_dump.LARGEST)
    except OSError:
        return 0


def _hand_over(process: subprocess.Popen[bytes], todo: Sequence[DumpFile]) -> None:
    rows = [(item.rank, os.fsencode(item.path).decode("latin-1"), item.prefix) for item in todo]
    with suppress(OSError, ValueError):
        process.communicate(json.dumps(rows).encode())


def _be_child(results: Connection, sender: Connection, todo: Sequence[DumpFile], left: float) -> None:
    """Run the forked child: read its dumps, and never return."""
    try:
        results.close()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _send(sender, todo, left)
    finally:
        os._exit(0)


def main() -> None:
    """Run the child of a program with threads: arguments `FD SECONDS`, the dumps on standard input."""
    sender = Connection(int(sys.argv[1]), readable=False)
    rows = json.load(sys.stdin)
    todo = [DumpFile(rank, Path(os.fsdecode(path.encode("latin-1"))), prefix) for rank, path, prefix in rows]
    try:
        _send(sender, todo, float(sys.argv[2]))
    finally:
        os._exit(0)


def _send(sender: Connection, todo: Sequence[DumpFile], left: float) -> None:
    gc.disable()  # collecting garbage among millions of new containers takes longer than reading them
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    for item in todo:
        size = _size(item.path)
        _bound_memory(size)
        signal.setitimer(signal.ITIMER_PROF, _seconds(size) + min(_SECONDS, max(left, 0.0)))
        began = time.process_time()
        made = one(item)
        cost = max(0.0, time.process_time() - began - _seconds(size))
        left -= cost
        sender.send((made, cost))


def _bound_memory(size: int) -> None:
    """Limit the memory that this process may still allocate, where the system can."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        wanted = pages * resource.getpagesize() + min(budget.MEMORY, _MEMORY + _PER_BYTE * size)
        resource.setrlimit(resource.RLIMIT_AS, (wanted if hard < 0 else min(wanted, hard), hard))
