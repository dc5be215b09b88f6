"""Observes launchers (torchrun, accelerate) that have started no rank: how far they got in connecting to other hosts.

Read from outside: the process, its sockets, the name that it resolves, and its stack if py-spy may read it. A port that
the launcher itself polls is tried once; nothing is sent there.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil

from dtdebug.live.hosts import tcp_sockets
from dtdebug.live.hosts.job_plan import is_launcher, plan
from dtdebug.live.probe import pyspy
from dtdebug.live.probe.deadline_threads import begin
from dtdebug.live.probe.processes import find_ranks
from dtdebug.privacy.sanitize import clean, one_line
from dtdebug_taxonomy.model.hosts import Plan, WaitingLauncher

_CHILDREN = 256
_RESOLVING, _CONNECTING, _LOOKING = 2.0, 1.0, 2.0
"""Seconds for a name, for a connection, and for py-spy."""
_RENDEZVOUS = "torch/distributed/elastic/rendezvous/"
_PEERS = 4096


def waiting(pid: int) -> tuple[Plan, WaitingLauncher] | None:
    """Return the launcher at or below a process that has started no rank, with its plan; None if there is none.

    Also None if its stack was read and is in no rendezvous: it is starting or ending.
    """
    launcher = _innermost(pid)
    if launcher is None or find_ranks(launcher.pid):
        return None
    try:
        command, variables = launcher.cmdline(), launcher.environ()
        seconds = max(0.0, time.time() - launcher.create_time())
    except psutil.Error:
        return None
    place, unread = _stack(launcher.pid)
    if not place and not unread:
        return None
    planned = plan(command, variables)
    found = _way(launcher.pid, planned)
    return planned, msgspec.structs.replace(
        found, seconds=seconds, place=place, unread="; ".join(filter(None, (unread, found.unread)))
    )


def addresses() -> tuple[str, ...]:
    """Return the addresses of this host's interfaces, without those that every host has."""
    found = (a.address.partition("%")[0] for each in psutil.net_if_addrs().values() for a in each
             if a.family in (socket.AF_INET, socket.AF_INET6))  # fmt: skip
    return tuple(dict.fromkeys(a for a in found if not a.startswith(("127.", "fe80:")) and a != "::1"))[:64]


def _innermost(pid: int) -> psutil.Process | None:
    """Return the launcher that has no launcher below it."""
    found = None
    with suppress(psutil.Error):
        top = psutil.Process(pid)
        for process in (top, *top.children(recursive=True)[:_CHILDREN]):
            with suppress(psutil.Error):
                if process.status() != psutil.STATUS_ZOMBIE and is_launcher(process.cmdline()):
                    found = process
    return found


def _stack(pid: int) -> tuple[str, str]:
    """Return (function of torch's rendezvous that the launcher is in, why its stack was not read)."""
    try:
        stack = pyspy.spy(pid, time.monotonic() + _LOOKING).stack
    except pyspy.OutsideError as error:
        return "", f"stack of process {pid}: {one_line(clean(str(error)), 200)}"
    inside = [f.function for f in stack if _RENDEZVOUS in f.file or f.function == "_rendezvous"]
    name = "next_rendezvous"  # frames below it are helpers that pause
    return (name if name in inside else inside[-1] if inside else ""), ""


def _way(pid: int, planned: Plan) -> WaitingLauncher:
    """Return the launcher's progress towards the rendezvous endpoint, by its sockets and names."""
    if not planned.port or not planned.address:
        return WaitingLauncher(pid=pid)
    try:
        table, own = tcp_sockets.sockets(pid), tcp_sockets.socket_inodes(pid)
        same = os.stat(f"/proc/{pid}/ns/net").st_ino == os.stat("/proc/self/ns/net").st_ino  # noqa: PTH116
    except OSError as error:
        return WaitingLauncher(pid=pid, unread=f"sockets of process {pid}: {error.strerror}")
    found = _resolve(planned.address) if same else ()
    if not same:
        return WaitingLauncher(pid=pid, unread=f"process {pid} is in another network namespace; ask there")
    ours = {*addresses(), "127.0.0.1", "::1", "0.0.0.0"}  # noqa: S104 - compared, not bound
    local = any(address in ours or address.startswith("127.") for address in found)
    here = [s for s in table if s.port == planned.port]
    listening = [s for s in here if s.state == "listening"]
    listens = local and any(s.inode in own for s in listening)
    connected = any(
        s.state == "connected" and s.inode in own and s.far_port == planned.port and s.far in found for s in table
    )
    peers = dict.fromkeys(s.far for s in here if s.state == "connected" and s.far not in ours) if listens else {}
    held = socket_holder({s.inode for s in listening}) if local and listening and not listens else ""
    trouble = "" if listens or connected else _trouble(planned, found)
    return WaitingLauncher(
        pid=pid,
        local=local,
        listens=listens,
        holder=held,
        connected=connected,
        peers=tuple(peers)[:_PEERS],
        trouble=trouble,
    )


def _resolve(name: str) -> tuple[str, ...]:
    """Return the addresses of a name; empty if there are none, or none in time."""

    def ask() -> tuple[str, ...]:
        return tuple(dict.fromkeys(str(row[4][0]) for row in socket.getaddrinfo(name, None)))

    try:
        return begin([ask], time.monotonic() + _RESOLVING)[0].result(timeout=_RESOLVING)
    except Exception:  # a name may hold anything; a resolver may be late
        return ()


def _trouble(planned: Plan, found: tuple[str, ...]) -> str:
    """Describe why the rendezvous endpoint can't be reached, to follow a host's name."""
    if not found:
        return f"the name {planned.address} does not resolve there"
    why = f"{planned.endpoint} does not answer"
    for address in found[:4]:
        try:
            socket.create_connection((address, planned.port), timeout=_CONNECTING).close()
        except ConnectionRefusedError:
            why = f"nothing listens at {planned.endpoint} (connection refused)"
        except TimeoutError:
            continue
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else "error"
            why = f"{planned.endpoint} can't be reached ({reason})"
        else:
            return ""
    return why


def socket_holder(inodes: set[int]) -> str:
    """Describe the process that has one of these sockets; it may belong to a user whose processes are unreadable."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and tcp_sockets.socket_inodes(int(entry.name)) & inodes:
            with suppress(psutil.Error):
                words = psutil.Process(int(entry.name)).cmdline()
                return f"process {entry.name} ({one_line(clean(' '.join(words)), 120)})"
            return f"process {entry.name}"
    return "a process that could not be looked at"
