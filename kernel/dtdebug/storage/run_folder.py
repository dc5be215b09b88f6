"""The folder of one run: everything that was collected about it, readable without dtdebug.

run.json          what was started, when, where, and how it ended
ranks/NAME.json   the record of one rank, kept fresh by its agent; NAME is the process id and a hash of its host
flight/rank_N     flight-recorder dump of rank N
stacks/NAME.txt   faulthandler's file of a process, announced in its record
errors/N.json     torchelastic's error file of rank N
hosts/            state and output of each host (see `hosts`)
output.log        what the job printed, bounded; on the first host, if there are several
ask               a number; agents that see it grow write their dump and their stack
verdict.json      the verdict and the diagnosis
"""

from __future__ import annotations

import hashlib
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import msgspec

from dtdebug.storage import VARIABLE, budget, state_dir
from dtdebug.storage.untrusted import drop_impossible
from dtdebug_taxonomy.model.ranks import RankState

T = TypeVar("T")
VERSION = 1
"""Version of the layout; a reader reports a newer one and reads what it knows."""
_RECORD_LIMIT = 4 << 20
"""Maximum size in bytes of a record."""
_TICK = 100_000_000
"""Nanoseconds within which two changes of a folder may have one time."""
_MOST_HOSTS = 4096


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """Command, start and end of a run."""

    v: int = VERSION
    command: tuple[str, ...] = ()
    started: float = 0.0
    """Seconds since the epoch."""
    finished: float | None = None
    host: str = ""
    pid: int | None = None
    status: int | None = None
    """Exit status, or the negated signal."""


class RunFolder:
    """Paths and records of one run."""

    def __init__(self, path: Path, output: Path | None = None) -> None:
        self.path = path
        self.ranks = path / "ranks"
        self.flight = path / "flight"
        self.stacks = path / "stacks"
        self.errors = path / "errors"
        self.hosts = path / "hosts"
        self.output = output or path / "output.log"
        self.ask = path / "ask"
        self.verdict = path / "verdict.json"

    @staticmethod
    def make(parent: Path | None = None) -> RunFolder:
        """Return a new folder with mode 0700, by default below the state directory.

        Raises:
            OSError: it can't be created.

        """
        if parent is None:
            parent = state_dir.home() / "runs"
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = RunFolder(Path(tempfile.mkdtemp(dir=parent, prefix="run-")))
        for part in (made.ranks, made.flight, made.stacks, made.errors, made.hosts):
            part.mkdir(mode=0o700)
        return made

    @staticmethod
    def of_environment() -> RunFolder | None:
        """Return the folder named by this process's environment, if it exists."""
        named = os.environ.get(VARIABLE)
        return RunFolder(Path(named)) if named and Path(named).is_dir() else None

    def save_run(self, run: Run) -> None:
        """Write `run.json`; raises OSError."""
        state_dir.write(self.path / "run.json", msgspec.json.encode(run))

    def load_run(self) -> Run | None:
        """Return the contents of `run.json`, or None if it is missing or invalid."""
        return _read(self.path / "run.json", Run)

    def save_record(self, record: RankState) -> None:
        """Write the record of a process; raises OSError."""
        state_dir.write(self.ranks / f"{name(record.pid or 0, record.host)}.json", msgspec.json.encode(record))

    def records(self) -> Iterator[RankState]:
        """Yield the readable records, as many as fit into the memory of the budget."""
        left = budget.MEMORY
        for path in sorted(self.ranks.glob("*.json")):
            with suppress(OSError):
                data = state_dir.read_start(path, _RECORD_LIMIT)
                left -= budget.json_memory(data)
                if left < 0:
                    return
                record = _decode(data, RankState)
                if record is not None:
                    yield drop_impossible(record)

    def outputs(self) -> list[Path]:
        """Return the output files, by host; the first host's first."""
        return [self.path / "output.log", *sorted(self.hosts.glob("*.log"))[:_MOST_HOSTS]]

    def record(self, pid: int, host: str = "") -> RankState | None:
        """Return the record of one process, by default of this host, if readable."""
        path = self.record_path(pid, host)
        return read_record(path) if path is not None else None

    def record_path(self, pid: int, host: str = "") -> Path | None:
        """Return the path of that record, which has a different name if a container has another namespace."""
        usual = self.ranks / f"{name(pid, host)}.json"
        if usual.exists():
            return usual
        for path in self._record_paths().get(str(pid), ()):
            record = read_record(path)
            if record is not None and record.host == (host or socket.gethostname()):
                return path
        return None

    def _record_paths(self) -> dict[str, list[Path]]:
        """Return the files of the records by process id, listed again when the folder has changed."""
        try:
            changed = self.ranks.stat().st_mtime_ns
        except OSError:
            return {}
        # the clock of a file system ticks slowly: a record may come within the tick of the last change
        listed = _list_records if time.time_ns() - changed > _TICK else _list_records.__wrapped__
        return listed(self.ranks, changed)

    def stack(self, pid: int) -> Path:
        """Return the faulthandler file of a process of this host."""
        return self.stacks / f"{name(pid)}.txt"

    def announced_stack(self, record: RankState) -> Path | None:
        """Return the file that a record announces, by its name alone: the folder may be mounted elsewhere there."""
        file = Path(record.facts.get("faulthandler", "")).name
        ours = file.endswith(".txt") and Path(file).stem.partition("-")[0] == str(record.pid)
        return self.stacks / file if ours else None

    def socket(self, pid: int) -> Path:
        """Return the worker server's socket of a process of this host."""
        return self.ranks / f"{name(pid)}.sock"

    def request_count(self) -> int:
        """Return the number of requests for dumps and stacks so far."""
        try:
            return int(state_dir.read_start(self.ask, 18))
        except (OSError, ValueError):
            return 0

    def request(self) -> int:
        """Ask all agents for dump and stack, and return the number of the request. Raises OSError."""
        number = self.request_count() + 1
        state_dir.write(self.ask, str(number).encode())
        return number


def name(pid: int, host: str = "") -> str:
    """Return the name of a process's files: hosts, and containers of one host, reuse process ids."""
    return f"{pid}-{_place(host or socket.gethostname())}"


@lru_cache(maxsize=4)
def _list_records(folder: Path, _changed: int) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*-*.json")):
        found.setdefault(path.name.partition("-")[0], []).append(path)
    return found


@lru_cache(maxsize=4096)
def _place(host: str) -> str:
    namespace = ""
    with suppress(OSError):
        namespace = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - pathlib's makes a path of it
    return hashlib.sha256(f"{host} {namespace}".encode(errors="replace")).hexdigest()[:8]


def read_record(path: Path) -> RankState | None:
    """Return the record in a file, without impossible numbers; None if unreadable."""
    record = _read(path, RankState)
    return drop_impossible(record) if record is not None else None


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return _decode(state_dir.read_start(path, _RECORD_LIMIT), kind)
    except OSError:
        return None


def _decode(data: bytes, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(data, type=kind)
    except (ValueError, RecursionError):  # also for a number of thousands of digits
        return None
