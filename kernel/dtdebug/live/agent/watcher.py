"""Watches one process: notices when it becomes a rank, keeps its record fresh and answers requests.

A process that is not a rank has at most a thread that checks periodically whether it has become one.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import msgspec

from dtdebug.live.agent import fatal_signals, membership, recorder_status
from dtdebug.live.agent.endpoint import Endpoint, WorkerServer, announce, token
from dtdebug.live.agent.exit_hooks import Leaving, account, branches, primary
from dtdebug.live.agent.own_state import observe, update_counts
from dtdebug.privacy.sanitize import clean
from dtdebug.process.thread_frames import frames_of
from dtdebug.storage import state_dir as files
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.model.account import Account
from dtdebug_taxonomy.model.ranks import EXITED, FINISHED, PROCESS, Frame, RankState, SurvivedException

_TICK = 0.5
"""Seconds between checks for a request."""
_FIRST = 0.05
"""Seconds until the second look at a process that may become a rank; each later pause is twice as long, up to `_POLL`:
one that ends within its first second is known as well."""
_POLL = 1.0
"""Seconds between two readings; longer in a large job, whose ranks all write into one folder."""
_RANKS_PER_SECOND = 256
_SLOWEST = 10.0
_MOVING, _HEARTBEAT = 2.0, 5.0
"""Maximum seconds between records while operations continue, and while nothing changes."""
_HOLD = 3.0
"""Seconds for which a requested full record is not replaced by a plain one."""
_BROKEN = 4
"""Maximum number of reported threads that ended by an exception."""
_FAREWELL = 3.0
"""Maximum seconds that the final record and dump may delay the end of the process."""


class Watcher:
    """Watches one process: a thread, and the channels into it."""

    def __init__(self, folder: RunFolder, *, named: bool) -> None:
        self.folder = folder
        self._named = named
        self._stop, self._done = threading.Event(), threading.Event()
        self._last = False
        self._inside = threading.Lock()
        """Held while reading torch; kept forever at the end, because torch aborts if a thread is inside then."""
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
        """True if the counters changed between the last two readings."""
        self._exception = ""
        self._ended_by: BaseException | None = None
        """Exception that ended the main thread, until its account is written."""
        self._thread_accounts: tuple[Account, ...] = ()
        self._code: int | None = None
        self._raised_at: tuple[Frame, ...] = ()
        self._broken: tuple[SurvivedException, ...] = ()
        self._leaving: Leaving | None = None
        self._left_at: object = None
        """Counters at that time, if it was known as a rank: it may catch its `SystemExit` and communicate again."""
        self._next = self._written = 0.0

    def start(self) -> None:
        """Start watching."""
        self._thread = threading.Thread(target=self._run, name="dtdebug-agent", daemon=True)
        with suppress(RuntimeError):  # no thread available
            self._thread.start()

    def fails(self, value: BaseException) -> None:
        """Record the exception that ended the main thread."""
        with suppress(Exception):
            self._code = 1 if isinstance(value, Exception) else None
            self._leaving = None
            self._exception, self._raised_at = primary(value)
            self._ended_by = value

    def loses(self, name: str, value: BaseException) -> None:
        """Record the exception that ended another thread."""
        with suppress(Exception):
            if len(self._broken) < _BROKEN:
                self._broken = (*self._broken, SurvivedException(clean(name)[:100], *primary(value)))
                self._thread_accounts = (*self._thread_accounts, account(value))

    def leaves(self, leaving: Leaving) -> None:
        """Record a call that ends the program; of a call and the library's own after it, keep the first."""
        if self._inside.acquire(timeout=1.0):
            try:
                self._left_at = self._counters() if self._record is not None else None
            finally:
                self._inside.release()
        before = self._leaving
        if self._ended_by is not None and leaving.library and leaving.handled is None:
            pass  # multiprocessing ends a process that has raised
        elif before is None or not leaving.library or leaving.handled is not None or before.code != leaving.code:
            self._leaving = leaving
        if leaving.call.startswith("os._exit"):  # nothing runs after it
            self.finish(last=True)

    def finish(self, *, last: bool) -> None:
        """Stop watching, with a final record if `last`; returns in bounded time even if the folder hangs."""
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
        """Release the parent's resources in a forked child."""
        if self._take_back is not None:
            self._take_back()
        if self._endpoint is not None:
            self._endpoint.close()

    def _run(self) -> None:
        pause = _FIRST
        try:
            while True:
                with suppress(Exception):
                    self._look()
                if self._stop.wait(_TICK if self._record else pause):
                    break
                pause = min(_POLL, 2 * pause)
            if self._last:
                with suppress(Exception):
                    self._farewell()
        finally:
            self._done.set()

    def _look(self) -> None:
        now = time.monotonic()
        asked = self.folder.request_count() if self._record is not None else 0
        if asked > self._answered:
            self._next, self._answered = now + _HOLD, asked
            self._read(asked)
            self._dump()
        elif now >= self._next:
            self._next = now + self._pace() if self._record is not None else now
            self._read()

    def _read(self, asked: int = 0) -> None:
        """Read the state, in full if requested, and write it if it changed or the last one is old."""
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
        if not fatal_signals.is_offered():  # the program has set its own handler since
            self._roads.pop("faulthandler", None)
        self._moves = before is None or _counters(state) != _counters(before)
        answered = {"asked": str(self._answered)} if self._answered else {}
        self._record = msgspec.structs.replace(
            state,
            device_memory=state.device_memory or (before.device_memory if before else None),
            facts={**_known_facts(before), **state.facts, **self._roads, **answered},
            exception=self._exception,
            broken=self._broken,
        )
        now = time.monotonic()
        news = before is None or detail or _makeup(self._record) != _makeup(before) or self._exception
        if news or now - self._written >= max(self._pace(), _MOVING if self._moves else _HEARTBEAT):
            self._written = now
            self.folder.save_record(self._record)

    def _is_rank(self) -> bool:
        if self._named or membership.default_group() is not None:
            return True
        return membership.joining(frames_of(threading.main_thread().ident)) is not None

    def _become_rank(self) -> None:
        loaded = sys.modules.get("multiprocessing.process")
        name = loaded.current_process().name if loaded is not None else "MainProcess"
        if name != "MainProcess":
            self._roads[PROCESS] = clean(name)[:100]
        path = self.folder.stack(os.getpid())
        self._take_back = fatal_signals.offer(path)
        if self._take_back is not None:
            self._roads["faulthandler"] = str(path)

    def _open(self, state: RankState) -> None:
        """Open the channels that are not open yet, where possible."""
        if "endpoint" not in self._tried:
            self._tried.add("endpoint")
            with suppress(Exception):
                answers = {"/state": self._state, "/flight": self._flight}
                self._endpoint = Endpoint(answers, token(self.folder.path))
                self._roads["endpoint"] = self._endpoint.address
        # The C module may be seen half initialised; the module that imports it may not.
        if "worker_server" not in self._tried and "torch.distributed.distributed_c10d" in sys.modules:
            self._tried.add("worker_server")
            with suppress(Exception):
                self._server = WorkerServer(self.folder.socket(os.getpid()))
                self._roads["worker_server"] = str(self._server.path)
        group = membership.default_group()
        if group is not None and group is not self._announced and state.rank is not None and self._endpoint is not None:
            self._announced = group
            arguments = (state.rank, self._endpoint.address)
            self._announcer = threading.Thread(target=announce, args=arguments, name="dtdebug-announce", daemon=True)
            self._announcer.start()

    def _pace(self) -> float:
        """Return the seconds until the next reading."""
        world = (self._record.world_size if self._record else None) or 1
        return min(_SLOWEST, max(_POLL, world / _RANKS_PER_SECOND))

    def _dump(self) -> None:
        """Write the flight recorder's dump."""
        record = self._record
        if record is None or record.rank is None:
            return
        with self._inside:
            data = recorder_status.dump()
        if data:
            files.write(self.folder.flight / f"rank_{record.rank}", data)

    def _farewell(self) -> None:
        """Write the final record and dump."""
        if self._record is None:  # it may have become a rank since the last check, and ended at once
            self._read()
        before = self._record
        if before is None:
            return
        with self._inside:
            state = observe(False, before) or before
            groups = state.groups or update_counts(before.groups)
            again = None not in (self._leaving, self._left_at) and self._counters() != self._left_at
        facts = before.facts | self._last_words(again=again)
        last = msgspec.structs.replace(
            state,
            groups=groups,
            stack=self._raised_at,
            device_memory=before.device_memory,
            facts=facts,
            exception=self._exception,
            accounts=self._thread_accounts,
            broken=self._broken,
            exit_code=self._code,
            alive=False,
        )
        self.folder.save_record(last)
        self._dump()
        if (value := self._ended_by) is not None:  # last, because a launcher may end this process meanwhile
            self._ended_by = None
            with suppress(Exception):
                last = msgspec.structs.replace(last, accounts=(account(value), *self._thread_accounts))
                self.folder.save_record(last)
                if (last.world_size or 1) > 1:
                    self.folder.save_record(msgspec.structs.replace(last, branches=branches(value)))

    def _last_words(self, *, again: bool) -> dict[str, str]:
        """Return the facts on the end, by the main thread's last action; `again`: it communicated after it left."""
        leaving = self._leaving
        if leaving is not None and not again:
            self._code = leaving.code
            if leaving.handled is not None:
                self._exception, self._raised_at = primary(leaving.handled)
                self._ended_by = leaving.handled
            elif leaving.message:
                self._exception, self._raised_at = f"SystemExit: {leaving.message}", leaving.frames
            else:
                self._raised_at = leaving.frames
            if not self._exception:
                left = {EXITED: leaving.call} if leaving.frames else {}
                return left if self._code else {**left, FINISHED: "no failure"}
        return {} if self._exception or not _has_begun() else {FINISHED: "no failure"}

    def _counters(self) -> object:
        """Return the number of operations begun so far, by the recorder, which outlives the groups."""
        groups = update_counts(self._record.groups) if self._record is not None else ()
        return [(group.name, group.enqueued) for group in groups]

    def _state(self) -> bytes:
        """Return the full state now, for the endpoint."""
        if not self._inside.acquire(timeout=1.0):
            raise TimeoutError
        try:
            state = observe(True, self._record)
        finally:
            self._inside.release()
        if state is None:
            raise LookupError
        return msgspec.json.encode(
            msgspec.structs.replace(
                state,
                exception=self._exception,
                broken=self._broken,
                accounts=self._thread_accounts,
                facts={**state.facts, **self._roads},
            )
        )

    def _flight(self) -> bytes:
        """Return the flight recorder's JSON now, for the endpoint."""
        if not self._inside.acquire(timeout=1.0):
            raise TimeoutError
        try:
            return recorder_status.json() or b"{}"
        finally:
            self._inside.release()


def _has_begun() -> bool:
    """True if Python has found the program: for a missing script, `__main__` has neither file nor specification."""
    main: object = sys.modules.get("__main__")
    named = getattr(main, "__file__", None) or getattr(main, "__spec__", None)
    return bool(named) or sys.argv[:1] in (["-c"], ["-"], [""])


def _known_facts(before: RankState | None) -> dict[str, str]:
    """Return the earlier facts, without a channel that may have been closed since."""
    return {key: fact for key, fact in before.facts.items() if key != "faulthandler"} if before else {}


def _counters(state: RankState) -> object:
    return [(group.name, group.enqueued, group.completed) for group in state.groups]


def _makeup(state: RankState) -> object:
    return state.initialized, len(state.broken), [group.name for group in state.groups]
