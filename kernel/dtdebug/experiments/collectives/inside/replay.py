"""Replays this rank alone: its collectives return the recorded results, and their inputs are compared."""

from __future__ import annotations

import atexit
import os
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import msgspec

from dtdebug.experiments.collectives import recording_format
from dtdebug.experiments.collectives.inside import call_sites, dispatcher_hook, fake_groups, object_hash
from dtdebug.experiments.collectives.inside.record import call_key, thread_name
from dtdebug.storage import state_dir


def begin(told: dict[str, Any], torch: Any) -> None:
    """Start the replay; if that fails, exit, since the program must not run as a normal rank."""
    try:
        _begin(told, torch)
    except Exception as error:
        why = f"the replay can't begin: {error}"
        Path(told["folder"], "result.json").write_bytes(msgspec.json.encode({"why": why[:500]}))
        raise SystemExit(3) from None


def _begin(told: dict[str, Any], torch: Any) -> None:
    dispatcher_hook.install(torch)
    course = recording_format.load(Path(told["recording"]), str(told["name"]))
    fake_groups.prepare(torch, course.header.rank, course.header.world)
    if course.header.seed is not None:
        torch.manual_seed(course.header.seed)
    player = Player(course, told, torch)
    dispatcher_hook.instead(player.play)
    atexit.register(player.finish)


class Player:
    """Replacement of every collective of the program."""

    def __init__(self, course: recording_format.Course, told: dict[str, Any], torch: Any) -> None:
        self._course, self._torch, self._told = course, torch, told
        self._records = {record.number: record for record in course.records}
        self._threads = recording_format.by_thread(course.records)
        self._calls = Counter[str]()
        self._result = Path(told["folder"]) / "result.json"
        self._from, self._pdb = int(told["begin"]), bool(told["pdb"])
        self._inputs = self._identical = self._last = 0
        self._first: dict[str, Any] | None = None
        self._why, self._pid = "", os.getpid()

    def play(self, call: dispatcher_hook.OwnCall) -> Any:
        """Compare the inputs with the recording, and return the recorded outputs."""
        record = self._next(call)
        self._last = max(self._last, call.number)
        if record is None:
            last = self._course.records[-1].number if self._course.records else 0
            why = f"collective #{call.number} was not recorded; the recording goes to #{last}"
            if self._course.end is None or self._course.broken_off:  # the recording ended early
                self._leave(why)
            self._end(call, why, "missing")
        key = call_key(call)
        theirs = record.key
        kind = ""
        if key[:3] != (theirs.op, theirs.group, theirs.ordinal) or key[5] != theirs.peer:
            kind = "order"
        elif key[3] != theirs.shapes or key[4] != theirs.dtypes:
            kind = "shape" if key[3] != theirs.shapes else "dtype"
        if kind:
            self._end(
                call, f"collective #{call.number} is {call.op}{key[3]}, recorded is {theirs.op}{theirs.shapes}", kind
            )
        if call.number >= self._from:
            self._compare(call, record)
        if self._pdb and call.number == self._from and self._from > 1:
            self._stop_here(f"collective #{call.number}, {call.op}")
        self._give(call, record)
        return fake_groups.answer(call, self._torch)

    def _next(self, call: dispatcher_hook.OwnCall) -> recording_format.RecordedCollective | None:
        """Return the record of a call: by its number, or with several threads by its number in the thread."""
        if len(self._threads) < 2:
            return self._records.get(call.number)
        thread = thread_name()
        known, at = self._threads.get(thread, []), self._calls[thread]
        self._calls[thread] += 1
        return known[at] if at < len(known) else None

    def finish(self) -> None:
        """Write the result."""
        if os.getpid() != self._pid:
            return
        if not self._why and self._course.records and self._last < self._course.records[-1].number:
            self._why = f"the program ended after collective #{self._last} of {self._course.records[-1].number}"
        found = {
            "inputs": self._inputs,
            "identical": self._identical,
            "first_difference": self._first,
            "why": self._why,
        }
        self._result.write_bytes(msgspec.json.encode(found))

    def _compare(self, call: dispatcher_hook.OwnCall, record: recording_format.RecordedCollective) -> None:
        mine = object_hash.fingerprints(call, call.inputs, self._torch)
        for index, (ours, theirs) in enumerate(zip(mine, record.prints, strict=False)):
            if theirs is None:
                continue
            self._inputs += 1
            if ours == theirs:
                self._identical += 1
            elif self._first is None:
                self._note(call, "value", index)
                if self._pdb:
                    self._stop_here(f"the first difference: collective #{call.number}, {call.op}, tensor {index}")

    def _note(self, call: dispatcher_hook.OwnCall, what: str, tensor: int | None = None) -> None:
        if self._first is None:
            file, line = call.site()
            self._first = {
                "index": call.number, "op": call.op, "what": what, "tensor": tensor, "file": file, "line": line,
            }  # fmt: skip

    def _end(self, call: dispatcher_hook.OwnCall, why: str, what: str) -> NoReturn:
        self._note(call, what)
        self._leave(why)

    def _leave(self, why: str) -> NoReturn:
        self._why = why
        self.finish()
        print(f"dtdebug replay: {why}", file=sys.stderr)
        raise SystemExit(3)

    def _give(self, call: dispatcher_hook.OwnCall, record: recording_format.RecordedCollective) -> None:
        outputs = call.outputs
        if not outputs:
            return
        if record.data is None:
            self._leave(f"what collective #{call.number} gave was not kept (`run --data`): replayed up to there")
        with state_dir.open_regular(self._course.data) as file, self._torch.no_grad():
            for tensor, (begin, size) in zip(outputs, record.data, strict=False):
                if size != tensor.numel() * tensor.element_size():
                    self._end(
                        call, f"collective #{call.number}: {size} bytes were kept of a tensor of another size", "shape"
                    )
                if not size:
                    continue
                file.seek(begin)
                data = bytearray(file.read(size))
                if len(data) != size:
                    self._leave(f"{self._course.data} ends before what collective #{call.number} gave")
                value = self._torch.frombuffer(data, dtype=self._torch.uint8).view(tensor.dtype).view(tensor.shape)
                tensor.detach().copy_(value)

    def _stop_here(self, where: str) -> None:
        """Open the debugger in the program's frame, and continue as the user says; never step into torch or dtdebug."""
        import bdb
        import pdb  # noqa: T100 - that is asked for

        print(f"dtdebug replay: stopped at {where}", file=sys.stderr)
        debugger = pdb.Pdb(nosigint=True, skip=["dtdebug.*", "torch", "torch.*"])
        debugger.reset()
        here = call_sites.user_frame()
        frame: FrameType | None = here
        while frame is not None:  # like Pdb.set_trace, which would stop in our next line, not in the program's
            frame.f_trace = debugger.trace_dispatch
            debugger.botframe, frame = frame, frame.f_back
        debugger.interaction(here, None)
        if debugger.quitting:
            raise bdb.BdbQuit
        if debugger.stoplineno != -1 or debugger.breaks:  # anything but "continue" to the end
            sys.settrace(debugger.trace_dispatch)
