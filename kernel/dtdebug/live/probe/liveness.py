"""Watches a running job from outside: progress of its ranks, and how ranks ended."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import socket
import struct
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from dtdebug.storage import state_dir
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.model.ranks import RankState

_ERROR_FILE = "TORCHELASTIC_ERROR_FILE"
_ERROR_LIMIT = 1 << 20
_GET_INFO, _INFO, _INFO_EXIT = 0xC040FF0B, struct.Struct("=Q52xi"), 8
"""PIDFD_GET_INFO, the parts of its `struct pidfd_info` that are used, and PIDFD_INFO_EXIT."""


class Death(msgspec.Struct, frozen=True, kw_only=True):
    """End of a rank's process; later ones have later times."""

    pid: int
    time: float
    status: int | None = None
    """Exit code, or the negated signal; None if its parent reaped it first."""
    host: str = ""
    """Host of the process, as ids repeat between hosts; empty for this one."""

    def of(self, state: RankState) -> bool:
        """True if it is the end of that rank."""
        return self.pid == state.pid and self.host in ("", state.host)


class _Error(msgspec.Struct):
    """Contents of torchelastic's error file."""

    message: msgspec.Raw


class Progress:
    """Measures the time since any rank has moved."""

    def __init__(self, now: float) -> None:
        self._looked = self._moved = self._printed = now
        self._counters: dict[int | None, tuple[object, ...]] = {}
        self._steps: dict[int | None, int] = {}
        """Only a full record has a step, so a record without one has not gone back."""
        self._passed = 0

    def look(self, records: Sequence[RankState], passed: int, now: float) -> bool:
        """Compare the records with the last ones; True if a counter of any rank has moved."""
        self._looked = now
        counters = {record.pid: _counters(record) for record in records}
        steps = {record.pid: record.step for record in records if record.step is not None}
        moved = counters != self._counters or any(self._steps.get(pid, step) != step for pid, step in steps.items())
        self._steps |= steps
        if moved:
            self._moved, self._counters = now, counters
        if passed != self._passed:
            self._printed, self._passed = now, passed
        return moved

    def restart(self, now: float) -> None:
        """Restart the measurement: the user had stopped the job until now, which is not a hang."""
        self._looked = self._moved = self._printed = now

    def standing(self, records: Iterable[RankState]) -> float:
        """Return the seconds without movement; output counts as movement if no rank waits for another."""
        if any(waits(record) for record in records):
            return self._looked - self._moved
        return self._looked - max(self._moved, self._printed)


def waits(record: RankState) -> bool:
    """True if the rank has begun an operation that has not ended."""
    begun = (g.enqueued is not None and g.completed is not None and g.enqueued > g.completed for g in record.groups)
    return record.pending is not None or any(begun)


def _counters(record: RankState) -> tuple[object, ...]:
    return record.initialized, tuple((g.name, g.enqueued, g.completed) for g in record.groups)


class Deaths:
    """Detects ends of this host's ranks, at once and, if the kernel allows it, before their launcher reaps them."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._host = socket.gethostname()
        self._handles: dict[int, int] = {}
        self._errors: dict[int, Path] = {}
        self._ended: dict[int, Death] = {}
        self._stop = threading.Event()
        self.alarm = threading.Event()
        """Set when a rank has ended unsuccessfully."""

    def start(self) -> None:
        """Start watching in a thread."""
        threading.Thread(target=self._watch, name="dtdebug-deaths", daemon=True).start()

    def stop(self) -> list[Death]:
        """Stop watching and return the deaths, in order."""
        self._stop.set()
        return self.all_deaths()

    def all_deaths(self) -> list[Death]:
        """Return the deaths so far, in order."""
        return sorted([*self._ended.values()], key=lambda death: death.time)

    def know(self, records: Iterable[RankState]) -> None:
        """Add new ranks; a record of a failure raises the alarm."""
        for record in records:
            if record.exception or record.exit_code:
                self.alarm.set()
            if not record.pid or record.host not in ("", self._host):
                continue
            if named := record.environment.get(_ERROR_FILE):
                self._errors[record.rank if record.rank is not None else record.pid] = Path(named)
            if record.pid in self._handles or record.pid in self._ended or record.alive is False:
                continue
            with suppress(OSError, AttributeError):  # an old kernel: `_gone` detects the end
                self._handles[record.pid] = os.pidfd_open(record.pid)
                continue
            self._handles[record.pid] = -1

    def _watch(self) -> None:
        while not self._stop.is_set():
            poll = select.poll()
            handles = {handle: pid for pid, handle in list(self._handles.items()) if handle >= 0}
            for handle in handles:
                poll.register(handle, select.POLLIN)
            ended = [handles[handle] for handle, _ in poll.poll(200)] if handles else []
            ended += [pid for pid, handle in list(self._handles.items()) if handle < 0 and _is_gone(pid)]
            for pid in ended:
                self._take(pid)
            if not handles:
                self._stop.wait(0.2)

    def _take(self, pid: int) -> None:
        handle = self._handles.pop(pid, -1)
        status = zombie_status(pid)
        if handle >= 0:
            status = status if status is not None else _left_status(handle)
            os.close(handle)
        self._ended[pid] = Death(pid=pid, time=time.time(), status=status, host=self._host)
        if status != 0 and not (status is None and self._has_succeeded(pid)):
            self.alarm.set()
            self._keep_errors()

    def _has_succeeded(self, pid: int) -> bool:
        """True if its agent wrote a final record without a failure."""
        record = self._folder.record(pid)
        return record is not None and record.alive is False and not (record.exception or record.exit_code)

    def _keep_errors(self) -> None:
        """Copy torchelastic's error files: its launcher removes them with its log folder."""
        for rank, path in list(self._errors.items()):
            with suppress(OSError, msgspec.MsgspecError):
                data = state_dir.read_start(path, _ERROR_LIMIT)
                msgspec.json.decode(data, type=_Error)  # a record may name any file, and the folder may be sent
                state_dir.write(self._folder.errors / f"{rank}.json", data)


def _left_status(handle: int) -> int | None:
    """Return the status of a reaped process: newer kernels (6.15) keep it for the holder of a descriptor."""
    request = bytearray(_INFO.size)
    _INFO.pack_into(request, 0, _INFO_EXIT, 0)
    try:
        fcntl.ioctl(handle, _GET_INFO, request)
        mask, status = _INFO.unpack(request)
        return os.waitstatus_to_exitcode(status) if mask & _INFO_EXIT else None
    except (OSError, ValueError):
        return None


def zombie_status(pid: int) -> int | None:
    """Return the status of a process that is not reaped yet: exit code, or the negated signal."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return os.waitstatus_to_exitcode(int(fields[-1])) if fields[0] == "Z" else None
    except (OSError, ValueError, IndexError):
        return None


def _is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:
        return False
    return zombie_status(pid) is not None


def living(pids: Iterable[int | None]) -> list[int]:
    """Return the processes of this host that are still running."""
    return [pid for pid in pids if pid is not None and not _is_gone(pid)]


def end(pids: Iterable[int], patience: float) -> None:
    """End processes and their descendants: SIGTERM, then SIGKILL after `patience` seconds."""
    import psutil

    tree: dict[int, psutil.Process] = {}
    for pid in pids:
        with suppress(psutil.Error):
            top = psutil.Process(pid)
            for process in (top, *top.children(recursive=True)):
                tree[process.pid] = process
    for name in (signal.SIGTERM, signal.SIGKILL):
        for process in tree.values():
            with suppress(psutil.Error):
                process.send_signal(name)
        # Not psutil.wait_procs: it would reap our own child, whose status we return.
        until = time.monotonic() + patience
        while living(tree) and time.monotonic() < until:
            time.sleep(0.05)
