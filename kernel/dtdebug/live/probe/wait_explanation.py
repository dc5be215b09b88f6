"""Determines from outside what a rank waits in: by its frames, its other threads and children, and /proc.

Frames name operations, locks of libraries and workers; the operating system names files, holders and other ends.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from dtdebug.live.probe import pyspy, pyspy_output
from dtdebug.live.probe.processes import HELPER, variables
from dtdebug.live.procfs import reader
from dtdebug.live.procfs.best_explanation import AMONG_RANKS, OF_PROCESSES, choose_wait, with_store
from dtdebug.live.procfs.counters import cpu, figures
from dtdebug.live.procfs.syscall_wait import RankOf, by_system, contended_lock, lock_of, rank_namer
from dtdebug.privacy.sanitize import clean
from dtdebug_taxonomy.model.claims import Record
from dtdebug_taxonomy.model.ranks import Frame
from dtdebug_taxonomy.model.waiting import ACTIVE, ALONE, REMOTE, Waiting, phrase
from dtdebug_taxonomy.stacks.frames import own_frame
from dtdebug_taxonomy.stacks.wait_operations import by_stack, function_of_c

_SAMPLE = 0.1
"""Seconds over which the CPU use is measured."""
_BUSY = 0.5
"""Minimum share of a core of a thread that counts as computing."""
_NATIVE = 0.7
"""Seconds needed to read native frames, which are skipped if less time is left."""
_CHILDREN = 8
_AGENT = "dtdebug-"
_ANSWERS = "torch/distributed/rpc/internal.py"
_POOL = "concurrent/futures/process.py"
_LOCKED = f"{ALONE}: it has the lock itself, or a thread that has ended has"
_STOPPED = {"T": "a signal", "t": "a debugger"}
"""States of a stopped process, and what stopped it."""


class WaitExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """Explanation of the waits of one process."""

    waiting: Waiting | None = None
    beside: tuple[Waiting, ...] = ()
    system: dict[str, str] = {}
    native: tuple[str, ...] = ()


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """The process to explain, with what is known of it already."""

    pid: int
    stack: tuple[Frame, ...] = ()
    """Main thread, innermost last."""
    others: tuple[pyspy_output.ThreadLook, ...] = ()
    native: tuple[str, ...] = ()
    held: bool = False
    """True if it is holding the GIL, so that its interpreter does not answer."""
    owns: bool = False
    """True if the main thread owned the GIL when observed, as every running thread does."""
    may_spy: bool = True
    """True if py-spy may inspect it; False after a refusal."""


def explain(subject: Subject, deadline: float) -> WaitExplanation:
    """Return what the main thread, other threads and children are in, by the deadline (monotonic clock)."""
    pid, began = subject.pid, time.monotonic()
    first = reader.thread(pid, pid)
    if first.state in _STOPPED:
        return WaitExplanation(waiting=_stopped_wait(pid, first.state), system=figures(pid, first, first, 0.0))
    time.sleep(max(0.0, min(_SAMPLE, deadline - began)))
    now, seconds = reader.thread(pid, pid), time.monotonic() - began
    busy = first.state == now.state == "R" or cpu(first, now, seconds) >= _BUSY
    rank_of = rank_namer(pid, variables)
    system = None if busy else by_system(pid, now, rank_of)
    inside = by_stack(subject.stack, subject.native)
    native = subject.native
    if not native and subject.may_spy and _needs_native(inside, system, busy=busy or subject.held):
        look = _native_look(pid, deadline)
        native = look.native
        inside = by_stack(subject.stack, native) if native else inside
        subject = replace(subject, others=look.others or subject.others)  # only native frames name a lock
    if inside is not None and inside.kind == "lock" and (system is None or system.kind != "lock"):
        inside = _of_library(inside, subject, rank_of, deadline)
    if (inside is None or inside.kind == "socket") and system is not None and system.kind == "sleep":
        system = contended_lock(pid, rank_of) or system  # C code that retries a lock: sqlite, HDF5
    held = subject.held or (busy and subject.owns and _holds(subject, native, deadline))
    waiting = _busy(subject, native, inside, held=held) if busy or held else choose_wait(inside, system, subject.stack)
    waiting = with_store(waiting, subject.stack, variables(pid).get("MASTER_PORT", ""))
    if waiting is not None and waiting.kind == "thread" and _is_of_a_process_pool(subject):
        waiting = replace(waiting, kind="child")
    if waiting is not None and waiting.kind in OF_PROCESSES:
        waiting = _with_child(waiting, subject, rank_of, deadline)
    beside = _thread_waits(subject, rank_of)
    if waiting is not None and waiting.kind == "thread" and len(beside) == len(_own_threads(subject)) == 1:
        other = beside[0]
        verb = "is" if other.kind in ACTIVE else "waits"
        words = f"thread {other.thread} {verb} {phrase(replace(other, file=''))}"
        waiting = replace(waiting, file=other.file, line=other.line, function=other.function, words=words)
    if waiting is not None and waiting.kind == "thread" and _is_alone(subject):
        locked = waiting.op.endswith("acquire")
        waiting = replace(waiting, kind="lock" if locked else "thread", words=_LOCKED if locked else ALONE)
    return WaitExplanation(waiting=waiting, beside=beside, system=figures(pid, first, now, seconds), native=native)


def _is_of_a_process_pool(subject: Subject) -> bool:
    """True if it waits for a child: the only thread that could help is that of a process pool."""
    return not _own_threads(subject) and any(f.file.endswith(_POOL) for t in subject.others for f in t.stack)


def _is_alone(subject: Subject) -> bool:
    """True if no other thread of its program runs Python."""
    return subject.may_spy and all(t.name.startswith(_AGENT) or not t.stack for t in subject.others)


def _stopped_wait(pid: int, state: str) -> Waiting:
    """Return the wait of a stopped process; its main thread's frames no longer matter."""
    record = Record(source="system", path=f"/proc/{pid}/stat", words=f"state {state}")
    words = f"`kill -CONT {pid}` lets it go on" if state == "T" else ""
    return Waiting(kind="stopped", op=_STOPPED[state], record=record, words=words)


def _needs_native(inside: Waiting | None, system: Waiting | None, *, busy: bool) -> bool:
    """True if Python frames and the system call do not show what C code waits for."""
    if busy:
        return inside is None or inside.kind not in AMONG_RANKS
    if inside is not None:
        return inside.kind == "collective" and not inside.op
    return system is None or system.kind == "socket"


def _native_look(pid: int, deadline: float) -> pyspy_output.ProcessLook:
    if deadline - time.monotonic() < _NATIVE:
        return pyspy_output.ProcessLook()
    try:
        return pyspy.spy(pid, deadline, native=True)
    except pyspy.OutsideError:
        return pyspy_output.ProcessLook()


def _holds(subject: Subject, native: Sequence[str], deadline: float) -> bool:
    """True if a C function called before the first observation has not released the GIL since."""
    if not function_of_c(native):
        return False
    try:
        again = pyspy.spy(subject.pid, deadline)
    except pyspy.OutsideError:
        return False
    return again.owns and again.stack == subject.stack


def _busy(subject: Subject, native: Sequence[str], inside: Waiting | None, *, held: bool) -> Waiting:
    """Return the state of a thread on a CPU; NCCL and gloo may spin while they wait for others."""
    if inside is not None and inside.kind in AMONG_RANKS and not held:
        return inside
    function = clean(function_of_c(native))
    inner = subject.stack[-1] if subject.stack else Frame("", 0, "")
    record = Record(
        source="native" if function else "system",
        path=inner.file if function else f"/proc/{subject.pid}/stat",
        line=inner.line if function else 0,
        words=function,
    )
    return Waiting(kind="gil" if held else "cpu", op=function, record=record)


def _of_library(inside: Waiting, subject: Subject, rank_of: RankOf, deadline: float) -> Waiting:
    """Complete a lock that a library polls: its path is in a local variable, its holder in /proc/locks."""
    if (open_one := contended_lock(subject.pid, rank_of)) is not None:
        return replace(open_one, op=inside.op)
    try:
        local = pyspy.spy(subject.pid, deadline, local=True).variables if subject.may_spy else {}
    except pyspy.OutsideError:
        return inside
    path = local.get("lock_filename") or local.get("build_directory", "")
    if path and "build_directory" in local and "lock_filename" not in local:
        path = f"{path.rstrip('/')}/lock"
    if not path:
        return inside
    held = lock_of(path, subject.pid, rank_of)
    return replace(held, op=inside.op) if held is not None else replace(inside, path=clean(path))


def _with_child(found: Waiting, subject: Subject, rank_of: RankOf, deadline: float) -> Waiting:
    """Add the awaited child, with its line and its own wait."""
    own = [c for c in reader.children(subject.pid) if (said := reader.command(c)) and not HELPER.search(said)]
    wanted = [found.pid] if found.pid else own
    idle: Waiting | None = None
    for child in wanted[:_CHILDREN]:
        now = reader.thread(child, child)
        stack = _child_stack(child, deadline) if found.kind != "subprocess" and subject.may_spy else ()
        if found.kind == "loader" and stack and not any(f.file.endswith("_utils/fetch.py") for f in stack):
            continue
        if found.kind == "loader" and not stack and subject.may_spy:
            continue  # the resource tracker and others that are not Python programs
        mine = own_frame(stack)
        its = choose_wait(by_stack(stack), by_system(child, now, rank_of), stack)
        mutual = its is not None and its.pid == subject.pid
        if its is not None and mutual:
            its = replace(its, pid=None, command="", words=its.words or "the rank itself has its other end")
        words = f"it {'is' if its.kind in ACTIVE else 'waits'} {phrase(its)}" if its is not None else ""
        if its is not None and mutual and its.kind == "child":  # a worker of a pool, for its next task
            words = "it waits for the rank itself"
        record = its.record if its is not None else found.record
        filled = replace(found, pid=child, command=reader.command(child), words=words or found.words, record=record)
        if mine is not None:
            return replace(filled, file=mine.file, line=mine.line, function=mine.function)
        idle = idle or (filled if len(wanted) == 1 or its is not None else None)
    if idle is not None:
        return idle
    return replace(found, words=found.words or ("" if own else "none of them is alive"))


def _child_stack(pid: int, deadline: float) -> tuple[Frame, ...]:
    """Return a child's own frames: a forked one has its parent's below."""
    try:
        stack = pyspy.spy(pid, deadline).stack
    except pyspy.OutsideError:
        return ()
    starts = (i for i in range(len(stack) - 1, -1, -1) if stack[i].function in ("_worker_loop", "_bootstrap"))
    return stack[next(starts, -1) + 1 :]


def _own_threads(subject: Subject) -> list[str]:
    """Return the other threads in the user's code: any of them may be the awaited one."""
    return [t.name for t in subject.others if own_frame(t.stack) is not None and not t.name.startswith(_AGENT)]


def _thread_waits(subject: Subject, rank_of: RankOf) -> tuple[Waiting, ...]:
    """Return the waits of other threads that run the user's code or wait for other ranks."""
    found = []
    for thread in subject.others:
        own = own_frame(thread.stack)
        if thread.name.startswith(_AGENT) or not thread.stack:
            continue
        inside = by_stack(thread.stack, thread.native)
        in_c = thread.stack[-1].function == "run" and thread.stack[-1].file.endswith("threading.py")
        if own is None and not in_c and (inside is None or inside.kind not in AMONG_RANKS):
            continue
        now = reader.thread(subject.pid, thread.tid) if thread.tid else reader.ThreadNow()
        its = choose_wait(inside, by_system(subject.pid, now, rank_of) if thread.tid else None, thread.stack)
        if its is None and thread.active:
            its = Waiting(kind="cpu", record=Record(source="stack", path=thread.stack[-1].file))
        if its is not None:
            its = replace(its, thread=clean(thread.name) or "without a name")
            if any(f.file.endswith(_ANSWERS) for f in thread.stack):
                its = replace(its, words=REMOTE)
            found.append(replace(its, file=own.file, line=own.line, function=own.function) if own else its)
    return tuple(found)
