"""Checks this host's resources, each of which may be unreadable: shared memory, limits, memory, cores, disk space."""

from __future__ import annotations

import errno
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import psutil

from dtdebug.doctor.types import HostProblem, Launch
from dtdebug.privacy.sanitize import one_line
from dtdebug_taxonomy.model.sizes import spell_bytes

_SHM_LEAST, _FILES_LEAST = 512 << 20, 1024
_MEMLOCK_LEAST = 64 << 20
_SPACE_LEAST, _PROCESSES_LEAST = 64 << 30, 512
_WRITING = 3.0
"""Seconds to wait for a file to be written; a hung network file system never answers."""
_WRITER = """
import os, sys
place, name = sys.argv[1], ''
try:
    try:
        fd = os.open(place, os.O_TMPFILE | os.O_RDWR, 0o600)  # has no name: nothing can be left
    except OSError:
        name = os.path.join(place, '.dtdebug-doctor-%d' % os.getpid())
        fd = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        os.unlink(name)
    left = 4 << 20
    while left > 0:  # a full disk takes a part first
        left -= os.write(fd, b'x' * min(left, 1 << 16))
    os.fsync(fd)
except OSError as error:
    print(error.strerror)
"""


def resource_problems(
    launch: Launch, variables: Mapping[str, str]
) -> tuple[list[HostProblem], dict[str, float], dict[str, str]]:
    """Return (problems, figures, reasons for what was not checked)."""
    problems: list[HostProblem] = []
    figures: dict[str, float] = {}
    unread: dict[str, str] = {}
    _shm(problems, figures, unread)
    _limits(problems, figures, launch)
    _memory(figures)
    _cores(problems, figures, launch, variables)
    _disks(problems, launch, variables)
    return problems, figures, unread


def port(launch: Launch) -> list[HostProblem]:
    """Report the port of a single-host job if it is taken, by listening there for a moment."""
    if not launch.port or launch.launcher not in ("torchrun", "accelerate launch", "deepspeed"):
        return []
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as plug:
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            plug.bind(("", launch.port))
            plug.listen(1)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                return []
            held = port_holder(launch)
            text = f"port {launch.port} is taken on this host{f': {held} holds it' if held else ''}"
            return [HostProblem(id="DR202", text=text, measured=held, expected="a free port")]
    return []


def port_holder(launch: Launch) -> str:
    """Return the process that listens at the job's port, or "" if unknown."""
    from dtdebug.live.hosts import launcher_state, tcp_sockets

    try:
        inodes = {s.inode for s in tcp_sockets.sockets(os.getpid()) if s.state == "listening" and s.port == launch.port}
    except OSError:
        return ""
    return one_line(launcher_state.socket_holder(inodes), 200)


def container(variables: Mapping[str, str]) -> str:
    """Return the sign that this host is a container, or ""."""
    files = ("/.dockerenv", "/run/.containerenv", "/.singularity.d")
    names = ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER", "KUBERNETES_SERVICE_HOST", "container")
    found = next((f"{path} is there" for path in files if Path(path).exists()), "")
    return found or next((f"{name} is set" for name in names if variables.get(name)), "")


def _shm(problems: list[HostProblem], figures: dict[str, float], unread: dict[str, str]) -> None:
    try:
        free = os.statvfs("/dev/shm")  # noqa: S108 - only inspected
    except OSError as error:
        unread["shared memory"] = error.strerror or "error"
        return
    size, left = free.f_blocks * free.f_frsize, free.f_bavail * free.f_frsize
    measured = f"{spell_bytes(left)} free of {spell_bytes(size)}"
    figures |= {"shm": size, "shm_free": left}
    if left < _SHM_LEAST:
        problems.append(
            HostProblem(
                id="DR502",
                text=f"shared memory: {measured}; loaders' workers and NCCL die of that",
                measured=measured,
                expected=f"at least {spell_bytes(_SHM_LEAST)} free",
                severity="warning" if left >= 64 << 20 else "fault",
                commands=("docker run --ipc=host ...  # or --shm-size=8g",),
            )
        )


def _limits(problems: list[HostProblem], figures: dict[str, float], launch: Launch) -> None:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    locked, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    figures["open_files"] = files
    needed = max(256, 16 * (launch.ranks or 1))
    if files != resource.RLIM_INFINITY and files < needed:
        problems.append(
            HostProblem(
                id="DR503",
                text=f"at most {files} files can be open; each rank opens a connection to each other one",
                measured=f"ulimit -n {files}",
                expected=f"at least {max(needed, _FILES_LEAST)}",
                commands=("ulimit -n 65536",),
            )
        )
    space, _ = resource.getrlimit(resource.RLIMIT_AS)
    processes, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    for value, least, flag, words in (
        (space, _SPACE_LEAST, "-v", "of address space a process; a device's driver alone maps more than its memory"),
        (processes, _PROCESSES_LEAST, "-u", "processes and threads of this user"),
    ):
        if value != resource.RLIM_INFINITY and value < least:
            shown = spell_bytes(value) if flag == "-v" else str(value)
            text = f"at most {shown} {words}"
            problems.append(
                HostProblem(id="DR511", text=text, measured=f"ulimit {flag}: {shown}", expected="unlimited")
            )
    if Path("/sys/class/infiniband").is_dir() and locked != resource.RLIM_INFINITY and locked < _MEMLOCK_LEAST:
        problems.append(
            HostProblem(
                id="DR504",
                text=f"only {spell_bytes(locked)} can be locked; InfiniBand registers more",
                measured=f"ulimit -l {locked // 1024}",
                expected="unlimited",
                commands=("ulimit -l unlimited",),
            )
        )


def _memory(figures: dict[str, float]) -> None:
    figures["memory"] = psutil.virtual_memory().total
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(path).read_text(encoding="ascii")[:32].strip()
        except (OSError, UnicodeError):
            continue
        if text.isdecimal() and int(text) < figures["memory"]:
            figures["memory"] = int(text)


def _cores(
    problems: list[HostProblem], figures: dict[str, float], launch: Launch, variables: Mapping[str, str]
) -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    figures["cores"] = cores
    threads = variables.get("OMP_NUM_THREADS", "")
    if launch.per_node and threads.isdecimal() and int(threads) * launch.per_node > 4 * cores:
        problems.append(
            HostProblem(
                id="DR507",
                text=f"{launch.per_node} ranks with {threads} threads each share {cores} cores",
                measured=f"OMP_NUM_THREADS={threads}, {launch.per_node} ranks, {cores} cores",
                expected="about one thread a core",
                severity="hint",
                export={"OMP_NUM_THREADS": str(max(1, cores // launch.per_node))},
            )
        )


def _disks(problems: list[HostProblem], launch: Launch, variables: Mapping[str, str]) -> None:
    """Write 4 MiB to each disk and remove them, in child processes, since a hung file server would block this one."""
    places = {variables.get("TMPDIR", "/tmp"): "temporary files"}  # noqa: S108
    for name, path in _outputs(launch.arguments):
        places.setdefault(path, name)
    started = []
    for path, use in list(places.items())[:4]:
        words = [sys.executable, "-I", "-S", "-c", _WRITER, path]
        try:
            started.append(
                (
                    path,
                    use,
                    subprocess.Popen(
                        words,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.DEVNULL,
                        stdin=subprocess.DEVNULL,
                        start_new_session=True,
                    ),
                )
            )
        except OSError:
            continue
    for path, use, child in started:
        try:
            said = child.communicate(timeout=_WRITING)[0].decode(errors="replace").strip()
        except subprocess.TimeoutExpired:
            child.kill()
            problems.append(
                HostProblem(
                    id="DR508",
                    text=f"{path} ({use}) takes no 4 MiB in {_WRITING:g} s: it hangs",
                    measured=f"no answer in {_WRITING:g} s",
                    expected="a file written and on disk",
                )
            )
            continue
        if said:
            problems.append(
                HostProblem(
                    id="DR505",
                    text=f"{path} ({use}) can't take 4 MiB: {said[:100]}",
                    measured=said[:100],
                    expected="room for 4 MiB, writable",
                )
            )


def _outputs(arguments: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the existing folders that the program's options name for output."""
    found = []
    for index, word in enumerate(arguments[:400]):
        name, equals, value = word.lstrip("-").partition("=")
        value = value if equals else (arguments[index + 1] if index + 1 < len(arguments) else "")
        if (
            any(part in name.lower() for part in ("output", "save", "checkpoint", "ckpt", "cache"))
            and Path(value).is_dir()
        ):
            found.append((name, value))
    return found
