"""Asks a kernel from a terminal, through its control channel, or from outside if it does not answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from dtdebug.notebook import cell_journal, control_channel, render_ranks
from dtdebug.notebook.cell_journal import LastCell
from dtdebug.notebook.cells import INVENTED, Cells, RunningCell
from dtdebug.notebook.observe_ranks import TIMEOUT, conclude, has_moved
from dtdebug.notebook.ranks_seen import Conclusion, Kind, RanksSeen
from dtdebug.notebook.second_look import LastSeen, watch
from dtdebug.storage import safe_open
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.model.ranks import Frame, RankState, Verdict

_NOTICE = 1.0
"""Seconds within which a kernel whose GIL is free answers a plain request."""
_SILENT = "kernel {pid} does not answer: a thread is holding the GIL, it is stopped, or dtdebug is not loaded"
_KEPT = "{} is holding the GIL while it waits: no other Python code of the kernel can run"
_PAUSE = 0.05
_CONNECTION_LIMIT = 10_000
_STRANGER = 1.5
"""Seconds to wait for a kernel without a journal, which is probably not armed."""


class KernelAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of a kernel, or of an inspection from outside."""

    ranks: tuple[RankState, ...] = ()
    verdict: Verdict | None = None
    text: str = ""
    road: str = ""
    """`control channel`, or `outside` if the kernel did not answer."""


class _Reply(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a `dtdebug_reply`."""

    status: str
    text: str = ""
    ranks: tuple[RankState, ...] = ()
    verdict: Verdict | None = None


def ask_kernel(target: str, kind: Kind = "hang", timeout: float = TIMEOUT) -> KernelAnswer | None:
    """Ask the kernel of a connection file, kernel id or process id; None if the target is not a kernel."""
    file = connection_file(target)
    if file is None:
        return None
    pid = kernel_pid(file)
    if pid is None and target.isdecimal():
        pid = int(target)
    folder, entry = _find_armed(file, pid)
    reply = _by_channel(file, kind, timeout, armed=folder is not None)
    if reply is not None and reply.status == "ok":
        return KernelAnswer(ranks=reply.ranks, verdict=reply.verdict, text=reply.text, road="control channel")
    if pid is None:
        return KernelAnswer(
            text=f"dtdebug: the kernel of {file.name} does not answer, and its process was not found here"
        )
    seen = from_outside(pid, folder, entry, kind, timeout)
    seen = msgspec.structs.replace(seen, notes=(_SILENT.format(pid=pid), *seen.notes))
    return KernelAnswer(ranks=seen.ranks, verdict=seen.verdict, text=render_ranks.plain_text(seen), road="outside")


def connection_file(target: str) -> Path | None:
    """Return the connection file that a target names, or None."""
    path = Path(target)
    if _is_connection(path):
        return path.resolve()
    if target.isdecimal():
        return _file_of(int(target))
    try:
        from jupyter_client.connect import find_connection_file
        from jupyter_core.paths import jupyter_runtime_dir
    except ImportError:
        return None
    try:
        found = Path(find_connection_file(target, path=[".", jupyter_runtime_dir()]))  # any file of that name
    except OSError:
        return None
    return found if _is_connection(found) else None


def _is_connection(path: Path) -> bool:
    """True if the file describes how to reach a kernel; jobs also have JSON files among their arguments."""
    try:
        if path.suffix != ".json":
            return False
        with safe_open.log(path) as file:
            text = file.read(_CONNECTION_LIMIT + 1)
        content = msgspec.json.decode(text) if len(text) <= _CONNECTION_LIMIT else None
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and {"control_port", "key"} <= content.keys()


def _file_of(pid: int) -> Path | None:
    """Return the connection file among the arguments of a process."""
    import psutil

    with suppress(psutil.Error, OSError):
        for word in psutil.Process(pid).cmdline():
            path = Path(word.partition("=")[2] or word)
            if _is_connection(path):
                return path
    return None


def kernel_pid(file: Path) -> int | None:
    """Return the process that was started with a connection file."""
    import psutil

    found = None
    for process in psutil.process_iter(["cmdline", "ppid"]):
        if any(word.endswith(file.name) for word in process.info["cmdline"] or ()):
            found = process.pid if found is None or process.info["ppid"] != found else found  # its forked ranks follow
    return found


def _find_armed(file: Path, pid: int | None) -> tuple[RunFolder | None, LastCell | None]:
    """Return the folder of an armed kernel and the cell that it runs."""
    for path, entry in cell_journal.entries():
        if entry.kernel == file.name and pid in (None, entry.pid):
            return RunFolder(path), entry
    return None, None


def _by_channel(file: Path, kind: Kind, timeout: float, *, armed: bool) -> _Reply | None:
    """Return the kernel's reply; None if it does not answer, is not armed, or no client is installed."""
    try:
        from jupyter_client.blocking.client import BlockingKernelClient
    except ImportError:
        return None
    client = BlockingKernelClient(connection_file=str(file))
    try:
        client.load_connection_file()
        client.start_channels(shell=False, iopub=False, stdin=False, hb=False, control=True)
        request = client.session.msg(control_channel.REQUEST, {"kind": kind, "timeout": timeout})
        client.control_channel.send(request)
        client.control_channel.send(client.session.msg("kernel_info_request", {}))
        content = _reply(client, request["header"]["msg_id"], timeout + 2.0 if armed else _STRANGER)
        return msgspec.convert(content, _Reply) if content is not None else None
    except (OSError, ValueError, KeyError, msgspec.ValidationError):
        return None
    finally:
        client.stop_channels()


def _reply(client: Any, request: str, timeout: float) -> dict[str, Any] | None:
    """Return the content of the reply to a request; give up early if not even a plain request is answered."""
    from queue import Empty

    begin, heard = time.monotonic(), False
    while True:
        left = begin + (timeout if heard else _NOTICE) - time.monotonic()
        if left <= 0:
            return None
        try:
            message = client.control_channel.get_msg(timeout=left)
        except Empty:
            continue
        heard = True
        if message["parent_header"].get("msg_id") == request:
            content: dict[str, Any] = message["content"]
            return content


def from_outside(pid: int, folder: RunFolder | None, entry: LastCell | None, kind: Kind, timeout: float) -> RanksSeen:
    """Inspect a kernel without its cooperation: its stack, its ranks, and which rank waits for which."""
    from dtdebug.live.job import observe
    from dtdebug.live.probe import ask_all_ranks
    from dtdebug.live.probe.processes import ranks_below
    from dtdebug.notebook.observe_ranks import forget_earlier

    begin = time.monotonic()
    stack, why = _stack(pid, folder, begin + timeout / 2)
    pids = ranks_below(pid)
    if folder is not None and entry is not None:
        forget_earlier(folder, pids, entry.begun, kernel=pid)
    before = tuple(folder.records()) if folder else ()

    def look(left: float) -> tuple[RankState, ...]:
        return tuple(ask_all_ranks.gather(folder, pids=pids, timeout=left)) if folder or pids else ()

    def follows(seen: Sequence[RankState], *, moving: bool | None = None) -> Conclusion:
        return conclude(folder, seen, "", moving=moving)

    if kind == "hang" and not before:  # no record shows which rank moves
        twice = observe.ask_ranks(folder, pids, timeout=timeout / 2) if pids else observe.LiveRanks()
        watched = LastSeen(twice.states, conclude(folder, twice.states, "", progress=twice.progress), None)
    else:
        states = look(begin + timeout - time.monotonic())
        watched = LastSeen(states, Conclusion(), has_moved(before, states))
        if kind == "hang":
            watched = watch(watched, look, follows, begin + timeout)
    found = watched.found
    cells = _cells(stack, entry)
    return RanksSeen(
        kind=kind,
        here=RunningCell(stack=_from_cell(stack, cells, entry)),
        ranks=tuple(map(cells.rename_cells, watched.states)),
        verdict=cells.rename_cells(found.verdict) if found.verdict else None,
        notes=(*([cells.text(why)] if why else []), *found.notes),
        seconds=time.monotonic() - begin,
        moved=watched.moved,
        timeline=cells.rename_cells(found.timeline) if found.timeline else None,
    )


def _stack(pid: int, folder: RunFolder | None, deadline: float) -> tuple[tuple[Frame, ...], str]:
    """Return (stack, note): from py-spy, else from the announced file, since a signal can interrupt a system call."""
    from dtdebug.live.probe import channels, pyspy

    reasons = []
    try:
        look = pyspy.spy(pid, deadline)
        if look.lock_idle:  # a single sample may be chance
            time.sleep(_PAUSE)
            look = pyspy.spy(pid, deadline)
        return look.stack, _KEPT.format(look.lock) if look.lock_idle else ""
    except pyspy.OutsideError as error:
        reasons.append(str(error))
    file = folder.stack(pid) if folder else None
    if file is not None and file.is_file():
        try:
            stack = channels.traceback(pid, file, max(deadline, time.monotonic() + 0.5))
            return stack, f"{reasons[0]}; the kernel's stack was read through faulthandler"
        except pyspy.OutsideError as error:
            reasons.append(f"faulthandler: {error}")
    return (), "; ".join(reasons)


def _cells(stack: tuple[Frame, ...], entry: LastCell | None) -> Cells:
    """Return cells numbered as in the journal."""
    running = next((frame.file for frame in stack if INVENTED.fullmatch(frame.file)), "")

    def label(file: str) -> tuple[str, str] | None:
        if not INVENTED.fullmatch(file):
            return None
        earlier = entry.files.get(cell_journal.name(file), "?") if entry else "?"
        return "Cell", f"In[{entry.number if entry and file == running else earlier}]"

    return Cells(SimpleNamespace(compile=SimpleNamespace(format_code_name=label)))


def _from_cell(stack: tuple[Frame, ...], cells: Cells, entry: LastCell | None) -> tuple[Frame, ...]:
    """Return the stack from the running cell on, with source lines from the journal; empty while no cell runs."""
    begin = next((i for i, frame in enumerate(stack) if INVENTED.fullmatch(frame.file)), len(stack))
    lines = entry.source.splitlines() if entry else []

    def add_code(frame: Frame) -> Frame:
        known = frame.file == stack[begin].file and 0 < frame.line <= len(lines)
        code = lines[frame.line - 1].strip() if known else frame.code
        return Frame(cells.name(frame.file) or frame.file, frame.line, frame.function, code)

    return tuple(map(add_code, stack[begin:]))
