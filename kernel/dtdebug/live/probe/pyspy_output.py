"""Reads py-spy's output on a process: stacks of its threads, owner of the GIL, relevant variables."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dtdebug_taxonomy import named_files
from dtdebug_taxonomy.model.ranks import Frame
from dtdebug_taxonomy.stacks.wait_operations import named_group

FRAMES = 200
"""Maximum number of frames kept of a stack, the innermost ones."""
_THREADS, _TEXT = 64, 1000
PAIRS = {"send": "dst", "recv": "src", "send_object_list": "dst", "recv_object_list": "src"}
"""Function of torch.distributed -> its argument that holds the other side, a rank of the whole job."""
_TELLING = frozenset(("_wrap", "__call__", "acquire", "_poll_until_acquired", "_jit_compile"))
"""Functions whose local variables are kept: a spawned rank's number, the path of a lock."""


class ThreadLook(msgspec.Struct, frozen=True, kw_only=True):
    """Observation of one other thread."""

    name: str = ""
    tid: int | None = None
    """Id of the operating system."""
    stack: tuple[Frame, ...] = ()
    native: tuple[str, ...] = ()
    active: bool = False


class ProcessLook(msgspec.Struct, frozen=True, kw_only=True):
    """Observation of a process."""

    stack: tuple[Frame, ...] = ()
    """Main thread, innermost last."""
    native: tuple[str, ...] = ()
    lock: str = ""
    """Thread that owns the GIL, and where it is."""
    owns: bool = False
    """True if the main thread owns the GIL."""
    lock_idle: bool = False
    """True if the owner of the GIL waits in a system call."""
    variables: dict[str, str] = {}
    """Local variables of frames that spawn a rank or try to take a lock, as py-spy prints them."""
    peer: int | None = None
    """Rank that its send or recv names, if local variables were read."""
    in_world: bool = False
    """True if the group in its source line is None, the group of all ranks; only if local variables were read."""
    others: tuple[ThreadLook, ...] = ()
    """Other threads of the process."""


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


def parse_spy(data: bytes, pid: int, thread: str = "MainThread") -> ProcessLook:
    """Parse the output of `py-spy dump --json` on a process; raises msgspec.MsgspecError."""
    return _look(msgspec.json.decode(data, type=list[_SpyThread]), pid, thread)


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
    """True if the group in the program's own line is None: a function's `group=None`, which means all ranks."""
    frames = [f for f in thread.frames if not f.module]
    inner = next((n for n, f in enumerate(frames) if f.filename.endswith("torch/distributed/distributed_c10d.py")), 0)
    caller = next((f for f in frames[inner:] if "/torch/distributed/" not in f.filename), None)
    if caller is None or not (
        name := named_group(named_files.source_line(caller.filename, caller.line, anywhere=True))
    ):
        return False
    told = (e for e in caller.locals or () if "repr" in e and msgspec.json.decode(e.get("name", b'""')) == name)
    return any(str(msgspec.json.decode(e["repr"])) == "None" for e in told)


def _stack(thread: _SpyThread) -> tuple[Frame, ...]:
    python = [frame for frame in thread.frames if not frame.module]
    return tuple(frame_of(f.filename, f.line, f.name, live=True) for f in reversed(python[:FRAMES]))


def _native(thread: _SpyThread) -> tuple[str, ...]:
    """Return the native frames inside the innermost Python frame, innermost last."""
    native = []
    for frame in thread.frames:
        if not frame.module:
            break
        native.append(frame.name[:200])
    return tuple(reversed(native[:FRAMES]))


def _owner(thread: _SpyThread) -> str:
    where = next((f" at {f.filename}:{f.line} in {f.name}" for f in thread.frames if not f.module), "")
    return f"{thread.thread_name or thread.thread_id}{where}"[:300]


def frame_of(file: str, line: int, function: str, *, live: bool = False) -> Frame:
    """Return a frame with its source line, if available here; `live` if a running process has told it, not a text."""
    name = function.rpartition(".")[2]  # faulthandler and older Pythons omit the class
    if live:
        named_files.note_running(file)
    return Frame(file, line, name, named_files.source_line(file, line)[:200])
