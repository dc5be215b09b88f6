"""Asks one rank where it is, channel by channel, and records which channels answered."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from dtdebug.live.probe import channels, pyspy, pyspy_output
from dtdebug.live.probe.channels import Request, stamp
from dtdebug.live.probe.processes import RankProcess, liveness, variables
from dtdebug.live.probe.wait_explanation import Subject, WaitExplanation, explain
from dtdebug.storage import state_dir
from dtdebug.storage.run_folder import read_record
from dtdebug_taxonomy.model.ranks import Frame, Operation, RankState
from dtdebug_taxonomy.stacks.wait_operations import operation

TOKEN = "DTDEBUG_TOKEN"  # noqa: S105 - the name of the variable
"""Environment variable with the token that endpoints require."""
_PAUSE, _MOMENT = 0.05, 0.1
_LOOKS = 3
"""Number of later looks after which an owner of the GIL that has not moved is holding it."""
_RESERVE = 0.3
"""Seconds reserved for fetching a trace if no dump comes."""
_POLL = 0.01
_AGENT = "dtdebug-"
"""Prefix of the agent's own threads, which may hold the GIL for a moment to write an answer."""
_LOOPBACK = ("127.", "localhost:", "[::1]:")


class Inquiry:
    """Questions to one rank and the answers so far; its state can be read at any time."""

    def __init__(self, request: Request, found: RankProcess | None, record: RankState | None) -> None:
        self._request = request
        self._found = found
        self._record = record
        self._answer: RankState | None = None
        self._seen = pyspy_output.ProcessLook()
        self._explained = WaitExplanation()
        self._roads: dict[str, str] = {}
        self._status = "unknown"
        self._held = False
        self._helper = False
        host = record.host if record else ""
        self._pid = found.pid if found and host in {"", socket.gethostname()} else None

    def run(self) -> None:
        """Ask the rank; returns by the deadline."""
        if self._pid is not None:
            self._status = self._liveness(self._pid)
        if self._status == "ended":
            self._roads["process"] = "has ended"
            return
        if self._status == "stopped":
            self._roads["process"] = "is stopped by a signal or a debugger"
        if not self._interpreter():
            self._without_interpreter()
        if self._helper:
            return
        if self._pid is not None and self._status in ("running", "stopped"):
            self._explain(self._pid)
        if self._request.dumps and self._request.folder is not None:
            self._dump()
        if self._request.native and self._pid is not None and not self._explained.native:
            self._native(self._pid)

    def _liveness(self, pid: int) -> str:
        seen = self._record.time if self._record else None
        status = liveness(pid, seen)
        if status == "stopped":  # briefly, if an earlier inspection has just ended
            time.sleep(_MOMENT)
            status = liveness(pid, seen)
        return status

    def state(self) -> RankState | None:
        """Return the current state; None for a process that turned out not to be a rank."""
        if self._helper:
            return None
        found = self._found
        base = self._answer or self._record
        said = True if self._answer else (False if base and base.alive is False else None)
        alive = {"ended": False, "unknown": said}.get(self._status, True)
        if base is None:
            base = RankState(rank=found.rank, world_size=found.world_size) if found else RankState()
        if found is not None:
            base = msgspec.structs.replace(
                base,
                rank=found.rank if base.rank is None else base.rank,
                world_size=base.world_size or found.world_size,
                local_rank=found.local_rank if base.local_rank is None else base.local_rank,
                local_world_size=base.local_world_size or found.local_world_size,
                pid=base.pid or found.pid,
                parent=base.parent or found.parent,
                environment=base.environment or found.environment,
                host=base.host or socket.gethostname(),
            )
        native = self._seen.native or self._explained.native or base.native
        if self._seen.stack:
            base = msgspec.structs.replace(base, stack=self._seen.stack, pending=None, time=time.time())
        pending = base.pending or self._operation(base.stack, native, base.world_size, base.rank)
        facts = {**base.facts, "GIL": f"owned by {self._seen.lock}"} if self._seen.lock else base.facts
        return msgspec.structs.replace(
            base,
            alive=alive,
            gil_held=self._held,
            roads=dict(self._roads),
            native=native,
            facts=facts,
            pending=pending,
            waiting=self._explained.waiting or base.waiting,
            beside=self._explained.beside or base.beside,
            system=self._explained.system or base.system,
        )

    def _operation(
        self, stack: Sequence[Frame], native: Sequence[str], world: int | None, rank: int | None
    ) -> Operation | None:
        """Return the operation in the frames; between two ranks, the other one is the peer."""
        found = operation(stack, native) if self._pid is not None else None
        if found is not None and self._seen.in_world:
            found = msgspec.structs.replace(found, group="")
        if found is None or found.op not in pyspy_output.PAIRS:
            return found
        if self._seen.peer is not None:
            return msgspec.structs.replace(found, peer=self._seen.peer)
        return msgspec.structs.replace(found, peer=1 - rank) if world == 2 and rank in (0, 1) else found

    def _interpreter(self) -> bool:
        """Try the channels through the rank's interpreter: its endpoint, then its record."""
        if self._status == "stopped" or self._record is None:
            return False
        return self._endpoint(self._record) or self._files()

    def _without_interpreter(self) -> None:
        """Try the worker server, py-spy and faulthandler, which distinguish a held GIL from a hanging process."""
        server = self._status != "stopped" and self._worker_server()
        seen = self._pid is not None and (self._spy(self._pid) or self._faulthandler(self._pid))
        silent = bool(self._roads.keys() & {"endpoint", "files"}) and self._status == "running"
        if self._roads.get("py-spy") == "ok":
            others = bool(self._seen.lock) and not self._seen.lock.startswith(_AGENT)
            suspect = others and self._status == "running" and (silent or self._seen.lock_idle)
            self._held = suspect and self._pid is not None and not self._runs_python(self._pid)
        else:
            self._held = silent and (server or seen)

    def _endpoint(self, record: RankState) -> bool:
        address = record.facts.get("endpoint", "")
        if not address or (self._pid is None and address.startswith(_LOOPBACK) and record.host):
            return False
        asked = time.time()
        with self._road("endpoint"):
            answer = channels.endpoint(address, self._token(), self._request.interpreter_deadline)
            if self._pid is None and answer.time is not None:
                offset = (asked + time.time()) / 2 - answer.time
                answer = msgspec.structs.replace(answer, clock_offset=offset)
            self._answer = answer
        return self._answer is not None

    def _token(self) -> str:
        """Return the endpoint's token: from the rank's environment, else from the folder or our environment."""
        given = variables(self._pid).get(TOKEN, "") if self._pid is not None else ""
        if not given and self._request.folder is not None:
            with suppress(OSError):
                given = state_dir.read_start(self._request.folder.path / "token", 200).decode("latin-1").strip()
        return given or os.environ.get(TOKEN, "")

    def _files(self) -> bool:
        folder, record = self._request.folder, self._record
        if folder is None or record is None or record.pid is None:
            return False
        if self._request.number is None:
            self._roads["files"] = self._request.refused
            return False
        with self._road("files"):
            path, last = folder.record_path(record.pid, record.host), (0, 0)
            while path is not None:
                with suppress(OSError):
                    if (now := stamp(path)) != last:
                        last, new = now, read_record(path)
                        if new is not None and self._is_fresh(new, record):
                            self._answer = new
                            return True
                if time.monotonic() > self._request.interpreter_deadline:
                    raise channels.RoadError("no record newer than the request")
                time.sleep(_POLL)
            raise channels.RoadError("its record has gone")
        return False

    def _is_fresh(self, new: RankState, before: RankState) -> bool:
        """True if the record answers this request: by its number, else if it is newer and has a full record's stack."""
        asked = new.facts.get("asked", "")
        if asked.isdecimal():
            return int(asked) >= (self._request.number or 0)
        return bool(new.stack) and (new.time or 0.0) > (before.time or 0.0)

    def _worker_server(self) -> bool:
        path = self._socket()
        if path is None:
            return False
        with self._road("worker server"):
            channels.ping(path, min(self._request.deadline, time.monotonic() + 1.0))
        return self._roads["worker server"] == "ok"

    def _spy(self, pid: int) -> bool:
        with self._road("py-spy"):
            unnamed = self._record is None and self._found is not None and self._found.rank is None
            look = pyspy.spy(pid, self._request.deadline, local=unnamed)
            if look.lock_idle and self._record is None:  # once may be chance
                time.sleep(_PAUSE)
                look = pyspy.spy(pid, self._request.deadline, local=unnamed)
            if not unnamed and self._names_others(look):
                with suppress(pyspy.OutsideError):
                    again = pyspy.spy(pid, self._request.deadline, local=True)
                    look = again if again.stack == look.stack else look
            self._seen = look
            if unnamed and self._found is not None:
                self._helper = pyspy.is_helper(look)
                self._found = msgspec.structs.replace(self._found, rank=pyspy.spawned_rank(look))
        return bool(self._seen.stack)

    def _runs_python(self, pid: int) -> bool:
        """True if a later look finds another line: a rank that is short of CPU time answers late, too."""
        first = _stacks(self._seen)
        with suppress(pyspy.OutsideError):
            for _ in range(_LOOKS):
                time.sleep(_PAUSE)
                if _stacks(pyspy.spy(pid, self._request.deadline)) != first:
                    return True
        return False

    @staticmethod
    def _names_others(look: pyspy_output.ProcessLook) -> bool:
        """True if local variables name the ranks that it waits for."""
        found = operation(look.stack)
        return found is not None and bool(found.op in pyspy_output.PAIRS or found.group)

    def _explain(self, pid: int) -> None:
        """Explain what the process waits in, with its other threads and children."""
        look = self._seen
        if self._roads.get("py-spy") is None:
            with suppress(pyspy.OutsideError):
                look = pyspy.spy(pid, self._request.deadline)
        with self._road("system"):
            stack = self._seen.stack or (self._answer.stack if self._answer else ()) or look.stack
            subject = Subject(
                pid=pid,
                stack=stack,
                others=look.others,
                native=look.native,
                held=self._held,
                owns=look.owns,
                may_spy=bool(look.stack),
            )
            self._explained = explain(subject, self._request.deadline - _RESERVE)

    def _native(self, pid: int) -> None:
        """Read native frames; last, as large libraries take seconds to read."""
        with self._road("py-spy --native"):
            native = pyspy.spy(pid, self._request.deadline, native=True).native
            self._seen = msgspec.structs.replace(self._seen, native=native)

    def _faulthandler(self, pid: int) -> bool:
        folder, record = self._request.folder, self._record
        announced = record.facts.get("faulthandler", "") if record else ""
        if folder is None or record is None or not announced or self._status == "stopped":
            return False
        with self._road("faulthandler"):
            file = folder.announced_stack(record)
            if file is None:
                raise channels.RoadError("announced a file that is not of this process")
            self._seen = pyspy_output.ProcessLook(stack=channels.traceback(pid, file, self._request.deadline))
        return bool(self._seen.stack)

    def _dump(self) -> None:
        """Wait for the rank's dump; without one, save the worker server's trace instead."""
        base = self._answer or self._record
        if base is None or base.rank is None or (self._answer is not None and not base.initialized):
            return
        source = self._source(base)
        reserve = _RESERVE if source else 0.0
        while self._answer is not None and self._request.seconds_left() > reserve:
            if self._request.has_dump(base.rank):
                self._roads["dump"] = "ok"
                return
            time.sleep(_POLL)
        if not source or self._status == "stopped":
            self._roads["dump"] = "none came"
            return
        with self._road("trace"):
            self._save_trace(base.rank, channels.trace(source, self._request.deadline, self._token()))

    def _source(self, base: RankState) -> Path | str:
        """Return the source of the recorder's trace for a rank that writes no dump."""
        return self._socket() or (base.facts.get("endpoint", "") if self._answer else "")

    def _socket(self) -> Path | None:
        """Return the worker server's socket: as announced, else the usual path if the process hung before that."""
        if self._pid is None:
            return None
        base, folder = self._answer or self._record, self._request.folder
        if announced := base.facts.get("worker_server", "") if base else "":
            return Path(announced)
        usual = folder.socket(self._pid) if folder else None
        return usual if usual is not None and usual.is_socket() else None

    def _save_trace(self, rank: int, trace: bytes) -> None:
        folder = self._request.folder
        if folder is None or self._request.has_dump(rank):
            return
        if b'"entries"' not in trace and b'"pg_status":{}' in trace:  # nothing has been recorded yet
            return
        older = folder.flight / f"rank_{rank}"
        with suppress(OSError):  # readers would prefer it, but it is from an earlier request
            older.rename(folder.flight / f".older_rank_{rank}")
        state_dir.write(folder.flight / f"rank_{rank}.json", trace)

    @contextmanager
    def _road(self, name: str) -> Iterator[None]:
        """Record the result of a channel."""
        began = time.monotonic()
        self._roads[name] = "no answer until the deadline"  # unless the code below finishes in time
        try:
            yield
            self._roads[name] = "ok"
        except Exception as error:
            why = str(error) or type(error).__name__
            self._roads[name] = f"{why} ({time.monotonic() - began:.2f} s)"


def _stacks(look: pyspy_output.ProcessLook) -> list[tuple[Frame, ...]]:
    return [look.stack, *(each.stack for each in look.others)]
