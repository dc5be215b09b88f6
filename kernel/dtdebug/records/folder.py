"""The folder of one run: everything that was collected of it, readable without us.

run.json          what was started, when, where, and how it ended
ranks/NAME.json   the record of one rank, kept fresh by its agent; NAME is the process id and a hash of its host
flight/rank_N     flight-recorder dump of rank N
stacks/NAME.txt   faulthandler's file of a process, announced in its record
errors/N.json     torchelastic's error file of rank N
hosts/            what each host says of itself, and what the job printed there (see `hosts`)
output.log        what the job printed, bounded; on the first host, if there are several
ask               a number; agents that see it grow write their dump and their stack
verdict.json      the verdict and the diagnosis
"""

from __future__ import annotations

import hashlib
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import msgspec

from dtdebug import state
from dtdebug.records import VARIABLE
from dtdebug.records.untrusted import believed
from dtdebug_taxonomy.ranks import RankState

T = TypeVar("T")
VERSION = 1
"""Version of the layout; a reader says so where it meets a newer one and reads what it knows."""
_RECORD_LIMIT = 4 << 20
"""Bytes of a record that is still read."""
_MOST_HOSTS = 4096


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What was started, and how it ended."""

    v: int = VERSION
    command: tuple[str, ...] = ()
    started: float = 0.0
    """Seconds since the epoch."""
    finished: float | None = None
    host: str = ""
    pid: int | None = None
    status: int | None = None
    """Exit status, or minus the signal."""


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
        """A new folder of 0700, below the state directory unless told otherwise.

        Raises:
            OSError: it can't be made.

        """
        if parent is None:
            parent = state.home() / "runs"
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = RunFolder(Path(tempfile.mkdtemp(dir=parent, prefix="run-")))
        for part in (made.ranks, made.flight, made.stacks, made.errors, made.hosts):
            part.mkdir(mode=0o700)
        return made

    @staticmethod
    def of_environment() -> RunFolder | None:
        """The folder that this process was told to use, if it exists."""
        named = os.environ.get(VARIABLE)
        return RunFolder(Path(named)) if named and Path(named).is_dir() else None

    def save_run(self, run: Run) -> None:
        """Writes `run.json`; raises OSError."""
        state.write(self.path / "run.json", msgspec.json.encode(run))

    def load_run(self) -> Run | None:
        """What `run.json` says, or None if it is not there or is of no use."""
        return _read(self.path / "run.json", Run)

    def save_record(self, record: RankState) -> None:
        """Writes the record of a process; raises OSError."""
        state.write(self.ranks / f"{name(record.pid or 0, record.host)}.json", msgspec.json.encode(record))

    def records(self) -> Iterator[RankState]:
        """The records that can be read."""
        for path in sorted(self.ranks.glob("*.json")):
            record = read_record(path)
            if record is not None:
                yield record

    def outputs(self) -> list[Path]:
        """What the job printed, by host; the first host's first."""
        return [self.path / "output.log", *sorted(self.hosts.glob("*.log"))[:_MOST_HOSTS]]

    def record(self, pid: int, host: str = "") -> RankState | None:
        """The record of one process, of this host unless told otherwise, if it can be read."""
        path = self.record_path(pid, host)
        return read_record(path) if path is not None else None

    def record_path(self, pid: int, host: str = "") -> Path | None:
        """Where that record is: in a container the same process has another namespace, and so another name."""
        usual = self.ranks / f"{name(pid, host)}.json"
        if usual.exists():
            return usual
        for path in sorted(self.ranks.glob(f"{pid}-*.json")):
            record = read_record(path)
            if record is not None and record.host == (host or socket.gethostname()):
                return path
        return None

    def stack(self, pid: int) -> Path:
        """Where a process of this host lets faulthandler write."""
        return self.stacks / f"{name(pid)}.txt"

    def announced_stack(self, record: RankState) -> Path | None:
        """The file that a record announces: by its name alone, for the folder may be mounted elsewhere there."""
        file = Path(record.facts.get("faulthandler", "")).name
        ours = file.endswith(".txt") and Path(file).stem.partition("-")[0] == str(record.pid)
        return self.stacks / file if ours else None

    def socket(self, pid: int) -> Path:
        """Where a process of this host has its worker server."""
        return self.ranks / f"{name(pid)}.sock"

    def requested(self) -> int:
        """How often dumps and stacks have been asked for."""
        try:
            return int(state.read_start(self.ask, 18))
        except (OSError, ValueError):
            return 0

    def request(self) -> int:
        """Asks all agents for dump and stack; the number of the request. Raises OSError."""
        number = self.requested() + 1
        state.write(self.ask, str(number).encode())
        return number


def name(pid: int, host: str = "") -> str:
    """What the files of a process are called: hosts, and containers of one host, have the same process ids."""
    return f"{pid}-{_place(host or socket.gethostname())}"


@lru_cache(maxsize=4096)
def _place(host: str) -> str:
    namespace = ""
    with suppress(OSError):
        namespace = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - pathlib's makes a path of it
    return hashlib.sha256(f"{host} {namespace}".encode(errors="replace")).hexdigest()[:8]


def read_record(path: Path) -> RankState | None:
    """The record in a file, without numbers that can't be; None if it can't be read."""
    record = _read(path, RankState)
    return believed(record) if record is not None else None


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(state.read_start(path, _RECORD_LIMIT), type=kind)
    except (OSError, ValueError):  # also of a number of thousands of digits
        return None
