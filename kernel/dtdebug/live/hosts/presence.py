"""Shares the state of several hosts in one folder, and elects the host that reports.

Hosts communicate only through files, each written by one host and replaced whole; exclusive roles are files that only
one host can create. Ages use the file system's clock, as the clocks of hosts differ.

hosts/PLACE.json    a `Host`, rewritten every few seconds while its job runs
hosts/PLACE.seen    what that host observed of its own ranks
hosts/PLACE.log     output of its job; that of the first host is output.log
hosts/reporter-N    the place that reports; the next number if that one has gone
"""

from __future__ import annotations

import os
import re
import socket
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from dtdebug.live.hosts import launcher_state
from dtdebug.live.hosts.job_plan import plan
from dtdebug.live.probe.liveness import Death
from dtdebug.privacy.sanitize import clean_command
from dtdebug.storage import state_dir as files
from dtdebug.storage.run_folder import RunFolder
from dtdebug.storage.untrusted import clean_struct
from dtdebug_taxonomy.model.hosts import Host, Plan, WaitingLauncher
from dtdebug_taxonomy.model.ranks import MOST_RANKS, RankState

_BEAT, _LOOK = 4.0, 1.0
"""Seconds between two writes of the own file, and two reads of the others'."""
GONE = 15.0
"""Seconds without an update after which a host counts as gone."""
_LIMIT, _SEEN_LIMIT = 256 << 10, 64 << 20
_MOST = 4096
_REPORTERS = 64
_JOB = ("SLURM_JOB_ID", "SLURM_STEP_ID", "TORCHELASTIC_RUN_ID", "KUBERNETES_JOB_NAME")


class HostView(msgspec.Struct, frozen=True, kw_only=True):
    """Observation of a host's own ranks."""

    final: bool = False
    """True if its job has ended."""
    states: tuple[RankState, ...] = ()
    deaths: tuple[Death, ...] = ()
    starved: tuple[int, ...] = ()
    progress: dict[int, str] = {}


def own_file_name() -> str:
    """Return the name of this run's files on this host, without extension."""
    return f"{re.sub(r'[^A-Za-z0-9_.]', '_', socket.gethostname())[:100]}-{os.getpid()}"


def read_hosts(folder: RunFolder) -> list[Host]:
    """Return the hosts of a run from their files, by name; `silent` is the age of each file in seconds."""
    now = _now(folder)
    found = []
    for path in sorted(folder.hosts.glob("*.json"))[:_MOST]:
        with suppress(OSError, ValueError):
            host = clean_struct(msgspec.json.decode(files.read_start(path, _LIMIT), type=Host))
            silent = max(0.0, now - path.stat().st_mtime)
            found.append(msgspec.structs.replace(host, place=path.stem, silent=silent))
    return sorted(found, key=lambda h: (h.plan.node is None, h.plan.node or 0, h.name, h.place))


class Presence:
    """Presence of this host among those of the job."""

    def __init__(self, folder: RunFolder, command: Sequence[str]) -> None:
        self._folder = folder
        self._own = itself(command)
        self._others: list[Host] = []
        self._beaten = self._looked = 0.0

    @property
    def own(self) -> Host:
        """Return this host's own state."""
        return self._own

    @property
    def others(self) -> list[Host]:
        """Return the other hosts as last read."""
        return self._others

    def all(self) -> list[Host]:
        """Return all hosts by their current files, including this one."""
        self._look()
        return [self._own, *self._others]

    def begin(self, pid: int) -> None:
        """Record that the job has been started as that process."""
        self._say(pid=pid)

    def beat(self, records: Iterable[RankState] = ()) -> None:
        """Periodically update this host's file, and read the others'."""
        now = time.monotonic()
        if now - self._beaten >= _BEAT:
            self._say(ranks=self._mine(records) or self._own.ranks)
        if now - self._looked >= _LOOK:
            self._look()

    def meets(self, planned: Plan | None, meeting: WaitingLauncher | None) -> None:
        """Record that this host's launcher has started no rank, or (None) no longer waits."""
        if meeting != self._own.meeting:
            self._say(meeting=meeting, plan=planned or self._own.plan)

    def end(self, status: int) -> None:
        """Record that the job of this host has ended."""
        self._say(finished=time.time(), status=status)

    def stops(self) -> None:
        """Record that the job of this host is ended because it hangs."""
        self._say(stopped=True)

    def has_stopped_host(self) -> bool:
        """True if another host ends its job because it hangs."""
        self._look()
        return any(h.stopped for h in self._others)

    def has_failed_host(self) -> bool:
        """True if the job of another host has failed."""
        return any(h.status for h in self._others)

    def has_waiting_launcher(self) -> bool:
        """True if another host has found that its launcher starts no rank."""
        return any(h.meeting is not None for h in self._others)

    def gather_meetings(self, patience: float = 6.0) -> None:
        """Wait until each other host has ranks or has inspected its launcher, for at most `patience` seconds."""
        until = time.monotonic() + patience
        while time.monotonic() < until:
            self._say()
            self._look()
            if all(h.meeting or h.ranks or h.finished or _is_lost(h) for h in self._others):
                return
            time.sleep(0.2)

    def await_report(self, patience: float = 25.0) -> None:
        """Wait until the reporting host has reported: it may still need what would end here."""
        until = time.monotonic() + patience
        while not self._folder.verdict.exists() and time.monotonic() < until:
            self._say()
            time.sleep(0.2)

    def contribute(self, seen: HostView) -> None:
        """Leave this host's observation for the host that reports."""
        from dtdebug.privacy.boundary import mask_record

        here = socket.gethostname()
        own = [s for s in seen.states if s.host == here]
        with suppress(OSError):
            path = self._folder.hosts / f"{own_file_name()}.seen"
            files.write(path, msgspec.json.encode(mask_record(msgspec.structs.replace(seen, states=tuple(own)))))

    def reporter(self) -> str:
        """Return the host that reports instead of this one; empty if this one does, from now on."""
        self._look()
        for number in range(1, _REPORTERS):
            path = self._folder.hosts / f"reporter-{number}"
            with suppress(OSError):
                if make(path, own_file_name().encode()):
                    self._say(reports=True)
                    return ""
            try:
                named = files.read_start(path, 400).decode(errors="replace")
            except OSError:  # no file can be created there: better two reports than none
                return ""
            if named == own_file_name():
                return ""
            host = next((h for h in self._others if h.place == named), None)
            if host is not None and not _is_lost(host):
                return host.name
        return ""

    def silent(self) -> None:
        """Let another host report: the job of this one has succeeded."""
        if self._own.reports:
            self._say(reports=False)

    def gather(self, patience: float, *, final: bool) -> dict[str, HostView]:
        """Return the other hosts' observations, after at most `patience` seconds; if `final`, wait for their end."""
        until = time.monotonic() + patience
        while True:
            self._say()
            self._look()
            found = {h.place: seen for h in self._others if (seen := self._read_view(h, final=final)) is not None}
            late = [h for h in self._others if h.place not in found and not _is_lost(h) and h.status != 0]
            late += [h for h in self._others if final and h.finished is None and not _is_lost(h) and h not in late]
            if not late or time.monotonic() > until:
                return found
            time.sleep(0.2)

    def _read_view(self, host: Host, *, final: bool) -> HostView | None:
        path = self._folder.hosts / f"{host.place}.seen"
        try:
            if not final and _now(self._folder) - path.stat().st_mtime > 2 * GONE:
                return None
            seen = msgspec.json.decode(files.read_start(path, _SEEN_LIMIT), type=HostView)
        except (OSError, ValueError):
            return None
        return None if final and host.finished is not None and not seen.final else seen

    def _mine(self, records: Iterable[RankState]) -> tuple[int, ...]:
        here = socket.gethostname()
        return tuple(sorted({r.rank for r in records if r.host == here and r.rank is not None and r.rank < MOST_RANKS}))

    def _say(self, **changes: object) -> None:
        self._own = msgspec.structs.replace(self._own, **changes)
        self._beaten = time.monotonic()
        with suppress(OSError):
            save_host(self._folder, self._own)

    def _look(self) -> None:
        self._looked = time.monotonic()
        own = f"{self._own.place}.json"
        if not self._others and all(path.name == own for path in self._folder.hosts.glob("*.json")):
            return
        self._others = [h for h in read_hosts(self._folder) if h.place != self._own.place]


def itself(command: Sequence[str]) -> Host:
    """Return this host as it enters the job."""
    return Host(
        name=socket.gethostname(),
        place=own_file_name(),
        command=clean_command(command),
        started=time.time(),
        plan=plan(command, os.environ),
        addresses=launcher_state.addresses(),
        job=_job(),
    )


def _job(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    return {name: variables[name][:200] for name in _JOB if name in variables}


def save_host(folder: RunFolder, host: Host) -> None:
    """Write the file of a host; raises OSError."""
    files.write(folder.hosts / f"{host.place}.json", msgspec.json.encode(host))


def _is_lost(host: Host) -> bool:
    """True if the host has ended without a report, or has gone."""
    return not host.reports if host.finished is not None else host.silent > GONE


def make(path: Path, data: bytes) -> bool:
    """Create a file atomically; False if it exists. Raises OSError."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        Path(temporary).unlink(missing_ok=True)
    return True


def _now(folder: RunFolder) -> float:
    """Return the file system's time in seconds since the epoch; ours if that is unknown."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder.path, prefix=".now.") as file:
            return os.fstat(file.fileno()).st_mtime
    except OSError:
        return time.time()
