"""Looks into a process from outside: its stack through py-spy.

The process need not answer, so this works while the GIL is held.
"""

from __future__ import annotations

import linecache
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from dtdebug.probe.processes import RankProcess, describe, liveness
from dtdebug_taxonomy.ranks import Frame, RankState
from dtdebug_taxonomy.stack_waits import named_group, operation

FRAMES = 200
"""Frames of a stack that are kept, the innermost ones."""
_THREADS, _TEXT = 64, 1000
PAIRS = {"send": "dst", "recv": "src", "send_object_list": "dst", "recv_object_list": "src"}
"""Function of torch.distributed -> its argument that holds the other side, a rank of the whole job."""
_TELLING = frozenset(("_wrap", "__call__", "acquire", "_poll_until_acquired", "_jit_compile"))
"""Functions whose local variables are kept: a spawned rank's number, the path of a lock."""


class OutsideError(Exception):
    """The process could not be looked into; the text says why."""


class ThreadLook(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen of one of its other threads."""

    name: str = ""
    tid: int | None = None
    """As the operating system numbers it."""
    stack: tuple[Frame, ...] = ()
    native: tuple[str, ...] = ()
    active: bool = False


class ProcessLook(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen in a process."""

    stack: tuple[Frame, ...] = ()
    """Main thread, innermost last."""
    native: tuple[str, ...] = ()
    lock: str = ""
    """The thread that owns the GIL, and where it is."""
    owns: bool = False
    """It is the main thread."""
    lock_idle: bool = False
    """That thread owns it while it waits in a system call."""
    variables: dict[str, str] = {}
    """Local variables of the frames that spawn a rank or try to take a lock, as py-spy prints them."""
    peer: int | None = None
    """The rank that its send or recv names, where local variables were asked for."""
    in_world: bool = False
    """The group that its line names is None, where local variables were asked for: that of all ranks."""
    others: tuple[ThreadLook, ...] = ()
    """Its other threads."""


class _SpyFrame(msgspec.Struct):
    name: str
    filename: str
    line: int = 0
    module: str | None = None
    locals: list[dict[str, msgspec.Raw]] | None = None


class _SpyThread(msgspec.Struct):
    frames: list[_SpyFrame]
    thread_id: int = 0
    os_thread_id: int | None = None
    thread_name: str | None = None
    active: bool = False
    owns_gil: bool = False


def observe(
    found: RankProcess, timeout: float = 2.0, *, native: bool = False, thread: str = "MainThread"
) -> RankState | None:
    """A rank as it looks from outside, or None if its stack shows that it is a helper (a worker of a data loader)."""
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
    """A process as it looks from outside, whether or not it seems to be a rank."""
    return observe(describe(pid), timeout, thread=thread) or RankState(pid=pid, host=socket.gethostname(), alive=True)


def spy(
    pid: int, deadline: float, *, native: bool = False, local: bool = False, thread: str = "MainThread"
) -> ProcessLook:
    """The stack of a thread (by a part of its name) through py-spy, first without stopping the process, then with.

    Raises:
        OutsideError: no py-spy, no permission, no Python process, not in time.

    """
    program = _program()
    if program is None:
        raise OutsideError("py-spy is not installed: pip install 'dtdebug[stacks]'")
    command = [program, "dump", "--json", "--pid", str(pid), *(["--native"] if native else []), *["--locals"] * local]
    ways = [[]] if native else [["--nonblocking"], []]
    if liveness(pid) == "stopped":  # stopping it again would let it go on afterwards
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
                start_new_session=True,  # Ctrl-C must not end it while it keeps the process stopped
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
    """py-spy is installed; whether it may look is another question."""
    return _program() is not None


def is_helper(look: ProcessLook) -> bool:
    """The process works for a rank: it is a worker of a data loader."""
    return any(frame.function == "_worker_loop" and "data" in frame.file for frame in look.stack)


def spawned_rank(look: ProcessLook) -> int | None:
    """The first argument that torch.multiprocessing gives to what it spawns."""
    value = look.variables.get("i", "")
    return int(value) if value.isdecimal() and len(value) < 10 else None


def parse_spy(data: bytes, pid: int, thread: str = "MainThread") -> ProcessLook:
    """What `py-spy dump --json` printed of a process; raises msgspec.MsgspecError."""
    return _look(msgspec.json.decode(data, type=list[_SpyThread]), pid, thread)


def refusal(pid: int, said: str) -> str:
    """Why py-spy could not look, in one line: which permission, if it is one."""
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
    """Continues a process that ran before py-spy stopped it, if ending py-spy has left it so."""
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


def _look(threads: Sequence[_SpyThread], pid: int, name: str) -> ProcessLook:
    main = next((t for t in threads if name in (t.thread_name or "")), None)
    main = main or next((t for t in threads if t.os_thread_id == pid), None)
    main = main or (threads[-1] if threads else _SpyThread(frames=[]))
    owner = next((thread for thread in threads if thread.owns_gil), None)
    return ProcessLook(
        stack=_stack(main),
        native=_native(main),
        lock=_owner(owner) if owner else "",
        owns=main.owns_gil,
        lock_idle=bool(owner and not owner.active),
        variables={
            str(msgspec.json.decode(entry["name"])): str(msgspec.json.decode(entry["repr"])).strip("\"'")[:_TEXT]
            for frame in main.frames
            if frame.name.rpartition(".")[2] in _TELLING
            for entry in frame.locals or ()
            if "name" in entry and "repr" in entry
        },
        peer=_peer(main),
        in_world=_in_world(main),
        others=tuple(
            ThreadLook(
                name=(t.thread_name or "")[:80], tid=t.os_thread_id, stack=_stack(t), native=_native(t), active=t.active
            )
            for t in threads[:_THREADS]
            if t is not main
        ),
    )


def _peer(thread: _SpyThread) -> int | None:
    for frame in thread.frames:
        name = PAIRS.get(frame.name.rpartition(".")[2], "")
        if not name or not frame.filename.endswith("torch/distributed/distributed_c10d.py"):
            continue
        for entry in frame.locals or ():
            if "repr" in entry and msgspec.json.decode(entry.get("name", b'""')) == name:
                value = str(msgspec.json.decode(entry["repr"]))
                return int(value) if value.isdecimal() and len(value) < 8 else None
    return None


def _in_world(thread: _SpyThread) -> bool:
    """The group that the program's own line names is None: a function's `group=None`, which means all ranks."""
    frames = [f for f in thread.frames if not f.module]
    inner = next((n for n, f in enumerate(frames) if f.filename.endswith("torch/distributed/distributed_c10d.py")), 0)
    caller = next((f for f in frames[inner:] if "/torch/distributed/" not in f.filename), None)
    if caller is None or not (name := named_group(_code(caller.filename, caller.line))):
        return False
    told = (e for e in caller.locals or () if "repr" in e and msgspec.json.decode(e.get("name", b'""')) == name)
    return any(str(msgspec.json.decode(e["repr"])) == "None" for e in told)


def _stack(thread: _SpyThread) -> tuple[Frame, ...]:
    python = [frame for frame in thread.frames if not frame.module]
    return tuple(frame_of(f.filename, f.line, f.name) for f in reversed(python[:FRAMES]))


def _native(thread: _SpyThread) -> tuple[str, ...]:
    """The native frames below the innermost Python frame, innermost last."""
    native = []
    for frame in thread.frames:
        if not frame.module:
            break
        native.append(frame.name[:200])
    return tuple(reversed(native[:FRAMES]))


def _owner(thread: _SpyThread) -> str:
    where = next((f" at {f.filename}:{f.line} in {f.name}" for f in thread.frames if not f.module), "")
    return f"{thread.thread_name or thread.thread_id}{where}"[:300]


def frame_of(file: str, line: int, function: str) -> Frame:
    """A frame with its line of the source, if that is here."""
    name = function.rpartition(".")[2]  # faulthandler and older Pythons give no class either
    return Frame(file, line, name, _code(file, line))


def _code(file: str, line: int) -> str:
    path = Path(file)
    try:
        if not path.is_absolute() or not path.is_file() or path.stat().st_size > 1 << 20:
            return ""
    except (OSError, ValueError):
        return ""
    return linecache.getline(file, line).strip()[:200]


def status_of(process: str) -> dict[str, str]:
    """The rows of /proc/PROCESS/status; empty where it can't be read."""
    lines = (line.partition(":") for line in _text(f"/proc/{process}/status").splitlines())
    return {name: value.strip() for name, _, value in lines}


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
