"""The agent of a rank: a thread that keeps its record fresh in the run's folder and answers requests.

It never speaks to other ranks, never blocks the end of the process for long, and falls silent where the folder can't be
written. A process that is no rank has at most a thread that looks now and then whether it has become one.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import msgspec

from dtdebug import state as files
from dtdebug.clean import clean
from dtdebug.ranks import lastwords, membership, recorder
from dtdebug.ranks.endpoint import TOKEN, Endpoint, WorkerServer, announce, token
from dtdebug.ranks.folder import VARIABLE, Run, RunFolder
from dtdebug.ranks.frames import raised_at
from dtdebug.ranks.observe import counted, observe
from dtdebug_taxonomy.ranks import Frame, RankState

_BOOTSTRAP = str(Path(__file__).parent / "bootstrap")
_TICK = 0.5
"""Seconds between looks for a request."""
_POLL = 1.0
"""Seconds between two readings; a job of many ranks writes into one folder, so there it is longer."""
_RANKS_PER_SECOND = 256
_SLOWEST = 10.0
_HEARTBEAT = 5.0
"""Seconds after which a record is written though nothing has changed."""
_HOLD = 3.0
"""Seconds for which the full record that was asked for is not replaced by a plain one."""
_FAREWELL = 3.0
"""Seconds that the last record and dump may delay the end of the process."""

_agent: Agent | None = None
_hooked = False


def environment(folder: RunFolder) -> dict[str, str]:
    """The variables that arm all child processes of who sets them; they tell where, and what readers must show.

    Raises:
        OSError: the folder can't be written.

    """
    variables = {
        VARIABLE: str(folder.path.absolute()),
        TOKEN: token(folder.path),
        "PYTHONPATH": os.pathsep.join([_BOOTSTRAP, *_python_path()]),
    }
    if not os.environ.keys() & {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"}:
        variables["TORCH_FR_DUMP_TEMP_FILE"] = str(folder.flight.absolute() / "rank_")
    return variables


def arm(folder: RunFolder | Path | str | None = None) -> Path | None:
    """Watches this process and its Python children from now on; the folder of the run, or None if there can't be one.

    Without a folder it is the one that the environment names, else one that all ranks of the launch find alike.
    """
    if _agent is not None and folder is None:
        return _agent.folder.path
    try:
        chosen = _existing(folder) if folder is not None else RunFolder.of_environment() or _shared()
        for name, value in environment(chosen).items():
            if name == "PYTHONPATH" or not os.environ.get(name):
                os.environ[name] = value
        _watch(chosen)
    except OSError:
        return None
    return chosen.path


def arm_child() -> None:
    """Watches this process if the environment says where; for the bootstrap."""
    folder = RunFolder.of_environment()
    if folder is not None and _agent is None:
        _watch(folder)


def disarm() -> None:
    """Ends the watching of this process; its record stays as it is."""
    global _agent
    if _agent is not None:
        _agent.finish(last=False)
    _agent = None


def _python_path() -> list[str]:
    return [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry and entry != _BOOTSTRAP]


def _existing(folder: RunFolder | Path | str) -> RunFolder:
    chosen = folder if isinstance(folder, RunFolder) else RunFolder(Path(folder))
    for part in (chosen.path, chosen.ranks, chosen.flight, chosen.stacks, chosen.errors):
        part.mkdir(mode=0o700, parents=True, exist_ok=True)
    return chosen


def _shared() -> RunFolder:
    """A folder whose name all ranks of a launch find without talking; one of its own for what is no rank."""
    if not membership.is_named():
        made = RunFolder.make()
    else:
        names = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "SLURM_STEP_ID")
        launch = [os.environ.get(name, "") for name in names]
        if os.environ.get("LOCAL_WORLD_SIZE") == os.environ.get("WORLD_SIZE"):  # one host, one launcher
            launch.append(str(os.getppid()))
        digest = hashlib.sha256("\n".join(launch).encode()).hexdigest()[:16]
        made = _existing(files.folder() / "runs" / f"run-{digest}")
    if not (made.path / "run.json").exists():
        top = os.getppid() if membership.is_named() else os.getpid()
        made.save_run(Run(command=tuple(sys.orig_argv), started=time.time(), host=socket.gethostname(), pid=top))
    return made


def _watch(folder: RunFolder) -> None:
    global _agent, _hooked
    if _agent is not None:
        if _agent.folder.path == folder.path:
            return
        disarm()
    _agent = Agent(folder, named=membership.is_named())
    _agent.start()
    if not _hooked:
        _hooked = True
        os.register_at_fork(after_in_child=_forked)
        atexit.register(_ended)  # registered early, so it runs late: what others do at the end can still be watched
        sys.excepthook = _chained(sys.excepthook)


Hook = Callable[[type[BaseException], BaseException, TracebackType | None], object]


def _chained(previous: Hook) -> Hook:
    """The hook that was there, always and first; then the record says what ended the main thread."""

    def hook(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        try:
            previous(kind, value, trace)
        finally:
            if _agent is not None and threading.current_thread() is threading.main_thread():
                _agent.fails(value)

    return hook


def _ended() -> None:
    if _agent is None:
        return
    last = getattr(sys, "last_value", None)
    if (
        last is not None and not hasattr(sys, "ps1") and "IPython" not in sys.modules
    ):  # another hook took the place of ours
        _agent.fails(last)
    _agent.finish(last=True)


def _forked() -> None:
    """A child has no thread of its parent's; one that may become a rank gets its own."""
    global _agent
    parent = _agent
    if parent is None:
        return
    parent.left_by_child()
    _agent = Agent(parent.folder, named=False)
    if membership.default_group() is None and _is_by_multiprocessing():
        _agent.start()


def _is_by_multiprocessing() -> bool:
    """Other forks mostly become another program, and some of them may have no second thread before."""
    frame = sys._getframe()  # noqa: SLF001 - documented
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_globals.get("__name__") in ("multiprocessing.popen_fork", "multiprocessing.forkserver"):
            return True
    return False


class Agent:
    """The watch over one process."""

    def __init__(self, folder: RunFolder, *, named: bool) -> None:
        self.folder = folder
        self._named = named
        self._stop, self._done = threading.Event(), threading.Event()
        self._last = False
        self._inside = threading.Lock()
        """Held by who reads torch; kept for ever at the end, because torch aborts where a thread is inside then."""
        self._thread: threading.Thread | None = None
        self._record: RankState | None = None
        self._roads: dict[str, str] = {}
        self._tried: set[str] = set()
        self._endpoint: Endpoint | None = None
        self._server: WorkerServer | None = None
        self._take_back: Callable[[], None] | None = None
        self._announced: object = None
        self._announcer: threading.Thread | None = None
        self._answered = 0
        self._moves = True
        """The counters changed between the last two readings."""
        self._exception = ""
        self._code: int | None = None
        self._raised_at: tuple[Frame, ...] = ()
        self._next = self._written = 0.0

    def start(self) -> None:
        """Begins to watch."""
        self._thread = threading.Thread(target=self._run, name="dtdebug-agent", daemon=True)
        with suppress(RuntimeError):  # no thread can be had
            self._thread.start()

    def fails(self, value: BaseException) -> None:
        """The main thread has ended by that exception."""
        with suppress(Exception):
            text = str(value).strip().splitlines() or [""]
            self._exception = clean(f"{type(value).__qualname__}: {text[0]}".rstrip(": "))[:500]
            self._code = 1 if isinstance(value, Exception) else None
            self._raised_at = raised_at(value.__traceback__)

    def finish(self, *, last: bool) -> None:
        """Ends the watch, with a last record if so; returns in bounded time whatever the folder does."""
        self._last = last
        self._stop.set()
        if self._thread is not None and self._thread.is_alive():
            self._done.wait(_FAREWELL)
        if self._announcer is not None:
            self._announcer.join(1.0)
        self._inside.acquire(timeout=1.0)
        if self._endpoint is not None:
            self._endpoint.shut()
        if self._server is not None:
            self._server.remove()
        if not last and self._take_back is not None:
            self._take_back()

    def left_by_child(self) -> None:
        """In a forked child: lets go of what belongs to the parent."""
        if self._take_back is not None:
            self._take_back()
        if self._endpoint is not None:
            self._endpoint.close()

    def _run(self) -> None:
        try:
            while True:
                with suppress(Exception):
                    self._look()
                if self._stop.wait(_TICK if self._record else _POLL):
                    break
            if self._last:
                with suppress(Exception):
                    self._farewell()
        finally:
            self._done.set()

    def _look(self) -> None:
        now = time.monotonic()
        asked = self.folder.requested() if self._record is not None else 0
        if asked > self._answered:
            self._next, self._answered = now + _HOLD, asked
            self._read(asked)
            self._dump()
        elif now >= self._next:
            self._next = now + self._pace()
            self._read()

    def _read(self, asked: int = 0) -> None:
        """Reads the state, in full if asked for, and writes it if so, if it has changed or if the last one is old."""
        before, detail = self._record, asked > 0
        if before is None and not self._is_rank():
            return
        with self._inside:
            state = observe(detail, before, memory=before is None or self._moves)
        if state is None:
            return
        if before is None:
            self._become_rank()
        self._open(state)
        self._moves = before is None or _counters(state) != _counters(before)
        answered = {"asked": str(self._answered)} if self._answered else {}
        self._record = msgspec.structs.replace(
            state,
            device_memory=state.device_memory or (before.device_memory if before else None),
            facts={**(before.facts if before else {}), **state.facts, **self._roads, **answered},
            exception=self._exception,
        )
        now = time.monotonic()
        if self._moves or detail or self._exception or now - self._written >= max(_HEARTBEAT, self._pace()):
            self._written = now
            self.folder.save_record(self._record)

    def _is_rank(self) -> bool:
        if self._named or membership.default_group() is not None:
            return True
        main = sys._current_frames().get(threading.main_thread().ident or 0)  # noqa: SLF001 - documented
        return membership.joining(main) is not None

    def _become_rank(self) -> None:
        membership.mark()
        path = self.folder.stacks / f"{os.getpid()}.txt"
        self._take_back = lastwords.offer(path)
        if self._take_back is not None:
            self._roads["faulthandler"] = str(path)

    def _open(self, state: RankState) -> None:
        """Opens the roads that are not open yet, as far as they can be."""
        if "endpoint" not in self._tried:
            self._tried.add("endpoint")
            with suppress(Exception):
                answers = {"/state": self._state, "/flight": self._flight}
                self._endpoint = Endpoint(answers, token(self.folder.path))
                self._roads["endpoint"] = self._endpoint.address
        if "worker_server" not in self._tried and "torch._C._distributed_c10d" in sys.modules:
            self._tried.add("worker_server")
            with suppress(Exception):
                self._server = WorkerServer(self.folder.ranks)
                self._roads["worker_server"] = str(self._server.path)
        group = membership.default_group()
        if group is not None and group is not self._announced and state.rank is not None and self._endpoint is not None:
            self._announced = group
            arguments = (state.rank, self._endpoint.address)
            self._announcer = threading.Thread(target=announce, args=arguments, name="dtdebug-announce", daemon=True)
            self._announcer.start()

    def _pace(self) -> float:
        """Seconds until the next reading."""
        world = (self._record.world_size if self._record else None) or 1
        return min(_SLOWEST, max(_POLL, world / _RANKS_PER_SECOND))

    def _dump(self) -> None:
        """Writes the flight recorder's dump."""
        record = self._record
        if record is None or record.rank is None:
            return
        with self._inside:
            data = recorder.dump()
        if data:
            files.write(self.folder.flight / f"rank_{record.rank}", data)

    def _farewell(self) -> None:
        """The last record and dump."""
        before = self._record
        if before is None:
            return
        with self._inside:
            state = observe(False, before) or before
            groups = state.groups or counted(before.groups)
        self.folder.save_record(
            msgspec.structs.replace(
                state,
                groups=groups,
                stack=self._raised_at,
                device_memory=before.device_memory,
                facts=before.facts,
                exception=self._exception,
                exit_code=self._code,
                alive=False,
            )
        )
        self._dump()

    def _state(self) -> bytes:
        """The full state now, for the endpoint."""
        if not self._inside.acquire(timeout=1.0):
            raise TimeoutError
        try:
            state = observe(True, self._record)
        finally:
            self._inside.release()
        if state is None:
            raise LookupError
        return msgspec.json.encode(
            msgspec.structs.replace(state, exception=self._exception, facts={**state.facts, **self._roads})
        )

    def _flight(self) -> bytes:
        """The flight recorder's JSON now, for the endpoint."""
        if not self._inside.acquire(timeout=1.0):
            raise TimeoutError
        try:
            return recorder.json() or b"{}"
        finally:
            self._inside.release()


def _counters(state: RankState) -> object:
    return state.initialized, [(group.name, group.enqueued, group.completed) for group in state.groups]
