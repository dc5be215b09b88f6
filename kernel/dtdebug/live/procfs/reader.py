"""Bounded readers of /proc: state, system call, open files, memory of a thread's arguments.

If reading requires more rights than we have, the result states that instead of the value.
"""

from __future__ import annotations

import os
import platform
import re
import stat
import struct
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil

from dtdebug.privacy.sanitize import one_line

_LIMIT = 4 << 20
_PATH = 1024
_FILES = 4096
"""Maximum number of open files of a process that are read."""
_POLLED = 64
DENIED = "needs the rights of a debugger: CAP_SYS_PTRACE, or the same user with yama's ptrace_scope at 0"

_X86_64 = {
    0: "read", 1: "write", 7: "poll", 17: "pread64", 18: "pwrite64", 19: "readv", 20: "writev", 23: "select",
    35: "nanosleep", 42: "connect", 43: "accept", 44: "sendto", 45: "recvfrom", 46: "sendmsg", 47: "recvmsg",
    61: "wait4", 72: "fcntl", 73: "flock", 74: "fsync", 75: "fdatasync", 202: "futex", 230: "clock_nanosleep",
    232: "epoll_wait", 247: "waitid", 257: "openat", 2: "open", 270: "pselect6", 271: "ppoll", 281: "epoll_pwait",
    288: "accept4", 34: "pause", 128: "rt_sigtimedwait", 262: "newfstatat", 4: "stat", 65: "semop", 220: "semtimedop",
    40: "sendfile", 275: "splice", 16: "ioctl", 219: "restart_syscall",
}  # fmt: skip
_AARCH64 = {
    63: "read", 64: "write", 73: "ppoll", 67: "pread64", 68: "pwrite64", 65: "readv", 66: "writev", 72: "pselect6",
    101: "nanosleep", 203: "connect", 202: "accept", 206: "sendto", 207: "recvfrom", 211: "sendmsg", 212: "recvmsg",
    260: "wait4", 25: "fcntl", 32: "flock", 82: "fsync", 83: "fdatasync", 98: "futex", 115: "clock_nanosleep",
    22: "epoll_pwait", 95: "waitid", 56: "openat", 242: "accept4", 137: "rt_sigtimedwait", 79: "newfstatat",
    193: "semop", 192: "semtimedop", 71: "sendfile", 76: "splice", 29: "ioctl",
    128: "restart_syscall",
}  # fmt: skip
_NUMBERS = {"x86_64": _X86_64, "aarch64": _AARCH64}.get(platform.machine(), {})
_OPENED = {"openat": 1, "open": 0}
"""Index of the argument that is the path."""


class ThreadNow(msgspec.Struct, frozen=True, kw_only=True):
    """One thread at one moment."""

    state: str = ""
    """R: runs; S: sleeps; D: sleeps in the kernel and can't be interrupted; T: stopped; Z: ended."""
    where: str = ""
    """Kernel function in which it sleeps."""
    call: str = ""
    """System call that it is in; empty while it runs, and if unreadable."""
    arguments: tuple[int, ...] = ()
    ticks: int = 0
    """CPU time so far, in clock ticks."""
    faults: int = 0
    """Number of pages read from a disk so far."""
    denied: bool = False
    """True if the system call may not be read."""
    line: str = ""
    """Content of /proc/.../syscall."""


def thread(pid: int, tid: int) -> ThreadNow:
    """Return a thread's current state; with defaults if it has ended."""
    fields = file_start(f"/proc/{pid}/task/{tid}/stat").rpartition(")")[2].split()
    where = file_start(f"/proc/{pid}/task/{tid}/wchan").strip()
    denied, line = False, ""
    try:
        line = Path(f"/proc/{pid}/task/{tid}/syscall").read_text()[:300].strip()
    except PermissionError:
        denied = True
    except OSError:
        pass
    call, arguments = parse_syscall(line)
    return ThreadNow(
        state=fields[0] if fields else "",
        where="" if where == "0" else where[:80],
        call=call,
        arguments=arguments,
        ticks=int(fields[11]) + int(fields[12]) if len(fields) > 12 else 0,
        faults=int(fields[9]) if len(fields) > 9 else 0,
        denied=denied,
        line=line,
    )


def parse_syscall(line: str) -> tuple[str, tuple[int, ...]]:
    """Return (name or number of the system call, arguments) in a line of /proc/PID/syscall; ('', ()) while it runs."""
    words = line.split()
    if len(words) < 7 or not words[0].isdecimal():
        return "", ()
    try:
        arguments = tuple(int(word, 16) for word in words[1:7])
    except ValueError:
        return "", ()
    return _NUMBERS.get(int(words[0]), words[0]), arguments


def opening(pid: int, now: ThreadNow) -> str:
    """Return the path that a thread is opening, from its memory; empty if it opens none or is unreadable."""
    place = _OPENED.get(now.call)
    if place is None or len(now.arguments) <= place:
        return ""
    with suppress(OSError, ValueError, OverflowError), Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        memory.seek(now.arguments[place])
        raw = memory.read(_PATH).split(b"\0")[0]
        return absolute(pid, os.fsdecode(raw))
    return ""


def polled_files(pid: int, now: ThreadNow) -> list[int]:
    """Return the files that a thread waits for in poll, from its memory; empty if unreadable."""
    if now.call not in ("poll", "ppoll") or len(now.arguments) < 2:
        return []
    number = min(now.arguments[1], _POLLED)
    with suppress(OSError, ValueError, OverflowError), Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        memory.seek(now.arguments[0])
        raw = memory.read(number * 8)
        return [fd for fd, _, _ in struct.iter_unpack("=ihh", raw[: len(raw) // 8 * 8]) if fd >= 0]
    return []


def epoll_files(pid: int, now: ThreadNow) -> list[int]:
    """Return the files that a thread waits for in epoll."""
    if now.call not in ("epoll_wait", "epoll_pwait") or not now.arguments:
        return []
    return [int(n) for n in re.findall(r"tfd:\s{1,12}(\d{1,9})", file_start(f"/proc/{pid}/fdinfo/{now.arguments[0]}"))]


def absolute(pid: int, path: str) -> str:
    """Resolve a path relative to that process's working directory."""
    if not path or path.startswith("/"):
        return path
    with suppress(OSError):
        return str(Path(f"/proc/{pid}/cwd").readlink() / path)
    return path


def file_of(pid: int, number: int) -> str:
    """Return the target of an open file of a process: a path, `pipe:[5]`, `socket:[7]`; empty if unreadable."""
    with suppress(OSError):
        return str(Path(f"/proc/{pid}/fd/{number}").readlink())
    return ""


def files(pid: int) -> dict[int, str]:
    """Return all open files of a process, in the form of `file_of`."""
    found: dict[int, str] = {}
    with suppress(OSError):
        for entry in os.listdir(f"/proc/{pid}/fd")[:_FILES]:  # noqa: PTH208 - only names are needed
            if name := file_of(pid, int(entry)):
                found[int(entry)] = name
    return found


def is_fifo(pid: int, number: int) -> bool:
    """True if the open file is a named FIFO."""
    with suppress(OSError):
        return stat.S_ISFIFO(Path(f"/proc/{pid}/fd/{number}").stat().st_mode)
    return False


def writes(pid: int, number: int) -> bool | None:
    """True if the file is open for writing; None if unreadable."""
    flags = re.search(r"flags:\s{1,8}(\d{1,12})", file_start(f"/proc/{pid}/fdinfo/{number}"))
    return bool(int(flags[1], 8) & os.O_ACCMODE) if flags else None


def command(pid: int) -> str:
    """Return a process's command line in one line, cleaned; empty if it has ended."""
    return one_line(file_start(f"/proc/{pid}/cmdline", 4096).replace("\0", " "), 160)


def processes() -> list[int]:
    """Return the visible processes."""
    with suppress(OSError):
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208
    return []


def parent(pid: int) -> int | None:
    """Return the parent of a process."""
    fields = file_start(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return int(fields[1]) if len(fields) > 1 else None


def children(pid: int) -> list[int]:
    """Return the living children of a process."""
    found: list[int] = []
    with suppress(OSError):
        for tid in os.listdir(f"/proc/{pid}/task")[:_FILES]:  # noqa: PTH208
            found += [int(word) for word in file_start(f"/proc/{pid}/task/{tid}/children").split()]
    if not found:  # a kernel without that file
        with suppress(psutil.Error):
            found = [child.pid for child in psutil.Process(pid).children()]
    return found


def file_start(path: str, limit: int = _LIMIT) -> str:
    """Return the beginning of a file; empty if unreadable."""
    with suppress(OSError), Path(path).open("rb") as file:
        return file.read(limit).decode(errors="replace")
    return ""
