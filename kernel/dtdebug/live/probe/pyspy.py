"""Inspects a process from outside: reads its stack through py-spy.

The process need not answer, so this works while the GIL is held.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from dtdebug.live.probe.processes import RankProcess, describe, liveness
from dtdebug.live.probe.pyspy_output import ProcessLook, parse_spy
from dtdebug_taxonomy.model.ranks import RankState
from dtdebug_taxonomy.stacks.wait_operations import operation


class OutsideError(Exception):
    """The process could not be inspected; the text gives the reason."""


def observe(
    found: RankProcess, timeout: float = 2.0, *, native: bool = False, thread: str = "MainThread"
) -> RankState | None:
    """Return a rank's state from outside, or None if its stack shows a helper (a worker of a data loader)."""
    roads, look, rank = {}, None, found.rank
    began = time.monotonic()
    try:
        look = spy(found.pid, began + timeout, native=native, local=rank is None, thread=thread)
        roads["py-spy"] = "ok"
    except OutsideError as error:
        roads["py-spy"] = f"{error} ({time.monotonic() - began:.2f} s)"
    stack = look.stack if look else ()
    if rank is None and look:
        if is_helper(look):
            return None
        rank = spawned_rank(look)
    return RankState(
        rank=rank,
        world_size=found.world_size,
        local_rank=found.local_rank,
        local_world_size=found.local_world_size,
        host=socket.gethostname(),
        pid=found.pid,
        parent=found.parent,
        pending=operation(stack, look.native if look else ()),
        stack=stack,
        native=look.native if look else (),
        time=time.time(),
        alive=liveness(found.pid) != "ended",
        roads=roads,
        environment=found.environment,
        facts={"GIL": f"owned by {look.lock}"} if look and look.lock else {},
    )


def observe_pid(pid: int, timeout: float = 2.0, *, thread: str = "MainThread") -> RankState:
    """Return a process's state from outside, even if it does not look like a rank."""
    return observe(describe(pid), timeout, thread=thread) or RankState(pid=pid, host=socket.gethostname(), alive=True)


def spy(
    pid: int, deadline: float, *, native: bool = False, local: bool = False, thread: str = "MainThread"
) -> ProcessLook:
    """Return the stack of a thread (by a part of its name) through py-spy, first without stopping the process.

    Raises:
        OutsideError: no py-spy, no permission, no Python process, not in time.

    """
    program = _program()
    if program is None:
        raise OutsideError("py-spy is not installed: pip install py-spy")
    command = [program, "dump", "--json", "--pid", str(pid), *(["--native"] if native else []), *["--locals"] * local]
    ways = [[]] if native else [["--nonblocking"], []]
    if liveness(pid) == "stopped":  # py-spy would continue it afterwards
        ways = ways[:-1]
        if native:
            raise OutsideError("is stopped, and py-spy would let it go on to read native frames")
    why = ""
    for quiet in ways:
        left = deadline - time.monotonic()
        if left <= 0:
            raise OutsideError(why or "py-spy was not begun: no time was left")
        try:
            done = subprocess.run(
                [*command, *quiet],
                check=False,
                capture_output=True,
                timeout=left,
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C must not end it while the process is stopped
            )
            if done.returncode == 0:
                return parse_spy(done.stdout, pid, thread)
        except subprocess.TimeoutExpired:
            if quiet != ["--nonblocking"]:
                _let_go_on(pid)
            raise OutsideError("py-spy was late") from None
        except (OSError, msgspec.MsgspecError) as error:
            why = f"py-spy: {error}"
            continue
        why = refusal(pid, done.stderr.decode(errors="replace"))
    raise OutsideError(why)


def can_spy() -> bool:
    """True if py-spy is installed; it may still lack permission."""
    return _program() is not None


def is_helper(look: ProcessLook) -> bool:
    """True if the process is a data loader's worker."""
    return any(frame.function == "_worker_loop" and "data" in frame.file for frame in look.stack)


def spawned_rank(look: ProcessLook) -> int | None:
    """Return the first argument that torch.multiprocessing gives to spawned functions."""
    value = look.variables.get("i", "")
    return int(value) if value.isdecimal() and len(value) < 10 else None


def refusal(pid: int, said: str) -> str:
    """Return why py-spy failed, in one line, with the missing permission if that is the reason."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if "ermission" not in said and "not permitted" not in said:
        return f"py-spy: {lines[0][:200]}" if lines else "py-spy said nothing"
    own, theirs = status_of("self"), status_of(str(pid))
    able = int(own.get("CapEff", "0"), 16) >> 19 & 1
    user = theirs.get("Uid", "").split()[:1]
    if not able and user and user != [str(os.geteuid())]:
        return f"no permission: the process belongs to user id {user[0]}; run as that user or with CAP_SYS_PTRACE"
    scope = _text("/proc/sys/kernel/yama/ptrace_scope").strip()
    if scope in {"1", "2"} and not able:
        return f"no permission: yama ptrace_scope is {scope}; run with CAP_SYS_PTRACE or set kernel.yama.ptrace_scope=0"
    if scope == "3":
        return "no permission: yama ptrace_scope is 3, which forbids attaching until the machine reboots"
    if not able:
        return "no permission: CAP_SYS_PTRACE is missing; give it to the container (--cap-add SYS_PTRACE)"
    if own.get("Seccomp") == "2":
        return "no permission: a seccomp filter forbids it, the container's in all likelihood"
    return "no permission: the process has rights that this one does not have, or is in another user namespace"


def _let_go_on(pid: int) -> None:
    """Continue a process that py-spy left stopped when it was killed."""
    end = time.monotonic() + 0.5
    while liveness(pid) == "stopped":
        if time.monotonic() > end:
            with suppress(OSError):
                os.kill(pid, signal.SIGCONT)
            return
        time.sleep(0.02)


def _program() -> str | None:
    beside = shutil.which("py-spy", path=str(Path(sys.executable).parent))
    return beside or shutil.which("py-spy")


def status_of(process: str) -> dict[str, str]:
    """Return the rows of /proc/PROCESS/status; empty if unreadable."""
    lines = (line.partition(":") for line in _text(f"/proc/{process}/status").splitlines())
    return {name: value.strip() for name, _, value in lines}


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
