"""Finds what a thread waits in by its system call: the lock and its holder, the pipe, the socket, the child."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from dtdebug.live.procfs import locks, sockets
from dtdebug.live.procfs.reader import (
    ThreadNow,
    absolute,
    children,
    command,
    epoll_files,
    file_of,
    file_start,
    files,
    is_fifo,
    opening,
    polled_files,
    processes,
    writes,
)
from dtdebug.privacy.sanitize import clean
from dtdebug_taxonomy.model.claims import Record
from dtdebug_taxonomy.model.waiting import Waiting, WaitKind

RankOf = Callable[[int], int | None]
"""Returns the rank that a process is, or works for."""

_FIRST_IS_FILE = frozenset(
    ("read", "write", "readv", "writev", "pread64", "pwrite64", "recvfrom", "recvmsg", "sendto", "sendmsg", "connect",
     "accept", "accept4", "flock", "fcntl", "fsync", "fdatasync", "splice", "sendfile", "ioctl")
)  # fmt: skip
_WRITES = frozenset(("write", "writev", "pwrite64", "sendto", "sendmsg"))
_SLEEPS = frozenset(("nanosleep", "clock_nanosleep", "pause", "rt_sigtimedwait"))
_WAITS_FOR_CHILD = frozenset(("wait4", "waitid"))
_PLACES: tuple[tuple[re.Pattern[str], WaitKind], ...] = (
    (re.compile(r"nanosleep"), "sleep"),
    (re.compile(r"\Ado_wait"), "child"),
    (re.compile(r"locks_lock|posix_lock|fcntl_setlk|flock"), "lock"),
    (re.compile(r"pipe_|wait_for_partner|fifo_open"), "pipe"),
    (re.compile(r"sk_wait|wait_woken|unix_stream|inet_|tcp_|skb_wait|unix_wait"), "socket"),
    (re.compile(r"io_schedule|folio_wait|wait_on_page|rpc_|nfs|fuse_|request_wait|ceph|lustre|ll_|xfs_|jbd2"), "disk"),
)
"""(kernel functions, kind of wait): the only source if the system call may not be read."""


def by_system(pid: int, now: ThreadNow, rank_of: RankOf | None = None) -> Waiting | None:
    """Return the thread's wait; None while it runs, and if only its stack shows the object (futex, epoll).

    Without `rank_of`, skips the search for the process at the other end, which reads the open files of all processes.
    """
    record = Record(
        source="system",
        path=f"/proc/{pid}/{'wchan' if now.denied or not now.line else 'syscall'}",
        words=clean(now.where if now.denied or not now.line else f"{now.call} {now.where}".strip()),
    )
    lock = _lock(pid, now, rank_of)
    if lock is not None:
        return lock
    if now.state == "D":
        return Waiting(kind="disk", path=clean(opening(pid, now) or _file(pid, now)), record=record)
    if now.call in _SLEEPS:
        return Waiting(kind="sleep", op="" if "nanosleep" in now.call else now.call, record=record)
    if now.call in _WAITS_FOR_CHILD:
        return _child(pid, now, record)
    if now.call in ("openat", "open"):
        path = clean(opening(pid, now))
        if now.where in ("wait_for_partner", "fifo_open"):
            return Waiting(
                kind="pipe", op="an open", path=path, record=record, words="no process has its other end open"
            )
        return Waiting(kind="disk", path=path, record=record) if now.where else None
    for number in [*now.arguments[: int(now.call in _FIRST_IS_FILE)], *polled_files(pid, now), *epoll_files(pid, now)]:
        found = _of_file(pid, number, now, record, rank_of)
        if found is not None:
            return found
    if now.denied:
        kind = next((kind for pattern, kind in _PLACES if pattern.search(now.where)), None)
        return Waiting(kind=kind, record=record) if kind else None
    return None


def rank_namer(pid: int, variables: Callable[[int], dict[str, str]]) -> RankOf:
    """Return a function that maps processes of the same job to their rank; the process's own children get None."""
    job = variables(pid)

    def rank_of(other: int) -> int | None:
        theirs = variables(other)
        same = all(theirs.get(name) == job.get(name) for name in ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID"))
        rank = theirs.get("RANK", "") if same and job.get("MASTER_PORT") else ""
        return int(rank) if rank.isdecimal() and len(rank) < 10 and rank != job.get("RANK") else None

    return rank_of


def lock_of(path: str, pid: int, rank_of: RankOf) -> Waiting | None:
    """Return the wait for a file lock that a process polls, with the holder; None if no holder is visible."""
    file = locks.identity(absolute(pid, path))
    known = locks.parse_locks(file_start("/proc/locks"))
    held = next((k for k in known if file is not None and not k.waits and k.file == file and k.pid != pid), None)
    if held is None:
        return None
    other = _holder(known, held.file, pid)
    record = Record(source="system", path="/proc/locks", words=held.line)
    return _with_process(Waiting(kind="lock", path=clean(path), record=record), other, rank_of)


def contended_lock(pid: int, rank_of: RankOf) -> Waiting | None:
    """Return the wait for an open file of the process on which another process holds a lock."""
    known = locks.parse_locks(file_start("/proc/locks"))
    held = {k.file: k for k in known if not k.waits and k.pid != pid}
    if not held:
        return None
    for number, name in files(pid).items():
        file = locks.identity(f"/proc/{pid}/fd/{number}") if name.startswith("/") else None
        if file in held:
            record = Record(source="system", path="/proc/locks", words=held[file].line)
            return _with_process(
                Waiting(kind="lock", path=clean(name), record=record), _holder(known, file, pid), rank_of
            )
    return None


def _lock(pid: int, now: ThreadNow, rank_of: RankOf | None) -> Waiting | None:
    if now.call not in ("flock", "fcntl", "") and not re.search(r"lock", now.where):
        return None
    known = locks.parse_locks(file_start("/proc/locks"))
    lock = locks.awaited_lock(known, pid)
    if lock is None:
        return None
    path = file_of(pid, now.arguments[0]) if now.arguments and now.call in ("flock", "fcntl") else ""
    if not path:
        names = files(pid)
        path = next((names[n] for n in names if locks.identity(f"/proc/{pid}/fd/{n}") == lock.file), "")
    record = Record(source="system", path="/proc/locks", words=lock.line)
    found = Waiting(kind="lock", path=clean(path), record=record)
    other = _holder(known, lock.file, pid) if rank_of else locks.held_by(known, lock.file, pid)
    return _with_process(found, other, rank_of)


def _holder(known: Iterable[locks.Lock], file: tuple[int, int, int], pid: int) -> int | None:
    """Return the lock's holder: as listed, else a process with the file open, as a lock outlives its process."""
    listed = locks.held_by([*known], file, pid)
    if listed is not None and command(listed):
        return listed
    for other in processes():
        if other != pid and any(locks.identity(f"/proc/{other}/fd/{n}") == file for n in files(other)):
            return other
    return listed


def _child(pid: int, now: ThreadNow, record: Record) -> Waiting:
    place = 1 if now.call == "waitid" else 0
    child = now.arguments[place] if len(now.arguments) > place else 0
    own = children(pid)
    child = child if child in own else (own[0] if len(own) == 1 else 0)
    kind: WaitKind = "child" if not child or command(child) == command(pid) else "subprocess"
    words = f"{len(own)} of them are alive" if not child and len(own) > 1 else ""
    return _with_process(Waiting(kind=kind, record=record, words=words), child or None, None)


def _of_file(pid: int, number: int, now: ThreadNow, record: Record, rank_of: RankOf | None) -> Waiting | None:
    name = file_of(pid, number)
    op = "a write" if now.call in _WRITES else "a read"
    if name.startswith("socket:["):
        return _socket(pid, int(name[8:-1]), record, rank_of)
    if name.startswith("pipe:[") or is_fifo(pid, number):
        other = _other_end(pid, name, writing=now.call not in _WRITES) if rank_of else None
        words = "" if other is not None or rank_of is None else "no other process has its other end"
        return _with_process(Waiting(kind="pipe", op=op, path=clean(name), record=record, words=words), other, rank_of)
    if name.startswith("/dev/") and now.call in ("read", "poll", "select"):
        return Waiting(kind="pipe", op=op, path=clean(name), record=record)
    if name.startswith("/") and now.call in _FIRST_IS_FILE and now.where:
        return Waiting(kind="disk", path=clean(name), record=record)
    return None


def _socket(pid: int, inode: int, record: Record, rank_of: RankOf | None) -> Waiting | None:
    for table in ("tcp", "tcp6"):
        listed = file_start(f"/proc/{pid}/net/{table}")
        found = sockets.parse_tcp(listed, frozenset((inode,))).get(inode)
        if found is None:
            continue
        if found.state == "LISTEN":
            return Waiting(kind="socket", path=f"a connection to {found.local}", record=record)
        other = sockets.owner_of(listed, found)
        record = replace(record, words=f"{record.words}; {found.local} -> {found.remote} {found.state}")
        words = {
            "SYN_SENT": "which has not answered",
            "CLOSE_WAIT": "which has closed the connection",
            "ESTABLISHED": "connected" if other else "connected; no process of this host has its other end",
        }.get(found.state, found.state)
        reached = Waiting(kind="socket", path=found.remote, record=record, words=words)
        return _with_process(reached, _process_with(f"socket:[{other}]", pid) if other and rank_of else None, rank_of)
    path = sockets.parse_unix(file_start(f"/proc/{pid}/net/unix"), frozenset((inode,))).get(inode)
    return Waiting(kind="socket", path=clean(path), record=record) if path is not None else None


def _other_end(pid: int, name: str, *, writing: bool) -> int | None:
    """Return another process with the pipe or FIFO open in the other direction."""
    for other in processes():
        if other == pid:
            continue
        for number, theirs in files(other).items():
            if theirs == name and writes(other, number) is writing:
                return other
    return None


def _process_with(name: str, besides: int) -> int | None:
    return next((other for other in processes() if other != besides and name in files(other).values()), None)


def _with_process(found: Waiting, pid: int | None, rank_of: RankOf | None) -> Waiting:
    return replace(found, pid=pid, rank=rank_of(pid) if rank_of else None, command=command(pid)) if pid else found


def _file(pid: int, now: ThreadNow) -> str:
    return file_of(pid, now.arguments[0]) if now.arguments and now.call in _FIRST_IS_FILE else ""
