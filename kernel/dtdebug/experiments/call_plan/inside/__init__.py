"""Runs in the ranks of a job: compares each collective with the plan before it begins, without communication."""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from dtdebug.experiments.call_plan.follow import Follower
from dtdebug.experiments.call_plan.make import planned_call
from dtdebug.experiments.call_plan.notes import FOLDER, Departure
from dtdebug.experiments.call_plan.outside import Outside
from dtdebug.experiments.call_plan.plan import Plan, PlannedCall, read, with_options
from dtdebug.experiments.collectives.inside import dispatcher_hook
from dtdebug.experiments.collectives.inside.groups import my_rank
from dtdebug.experiments.collectives.inside.record import call_key
from dtdebug.experiments.collectives.recording_format import Key
from dtdebug.experiments.repeat.after_import import complain

_SHOWN = 2


def begin(told: dict[str, Any], torch: Any) -> None:
    """Compare from now on."""
    dispatcher_hook.install(torch)
    plan = with_options(read(Path(told["contract"])), told.get("options") or {})
    comparer = Comparer(plan, Path(told["watched"]) / FOLDER, free=bool(told["free_loops"]))
    dispatcher_hook.add(comparer)
    atexit.register(comparer.finish)


class Comparer:
    """Listener that leaves at the first call that the plan does not have."""

    name = "the contract"

    def __init__(self, plan: Plan, folder: Path, *, free: bool) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._plan, self._folder, self._free = plan, folder, free
        self._outside = Outside(plan.head.outside)
        self._pid = os.getpid()
        self._place: Follower | None = None
        self._rank = self._world = self._compared = 0
        self._last = ""
        self._is_done = False

    def before(self, call: dispatcher_hook.OwnCall) -> None:
        """Compare a call before it begins, so that a rank that would hang in it has said so."""
        if self._is_done:
            return
        if self._place is None:
            self._rank, self._world = my_rank() or (call.group.rank, len(call.group.ranks))
            role = self._plan.role_of(self._rank, self._world)
            if role is None:
                self._leave("", 0, "the contract has no role for this rank", ())
                return
            self._place = Follower(role.calls, self._world, free_loops=self._free)
        op, group, ordinal, shapes, dtypes, peer, tag, waits, file, line = call_key(call)
        if self._outside.holds(file, line):
            return
        key = Key(k=0, op=op, group=group, ordinal=ordinal, shapes=shapes, dtypes=dtypes, file=file, line=line,
                  peer=peer, tag=tag, waits=waits)  # fmt: skip
        begun = planned_call(key, self._rank, self._world)
        if self._place.take(begun):
            self._compared += 1
            self._last = begun.line
        else:
            self._leave(file, line, str(begun), self._place.next_calls())

    def after(self, call: dispatcher_hook.OwnCall, result: Any) -> None:
        """Do nothing: a call is compared before it begins."""

    def finish(self) -> None:
        """Note a program that ended before its plan did."""
        if self._is_done or os.getpid() != self._pid:
            return
        if self._place is None or hasattr(sys, "last_value"):  # a launcher, or it ended by an exception
            return
        with suppress(Exception):
            if not self._place.can_end():
                self._leave("", 0, "", self._place.next_calls())
            else:
                self._put(Departure(rank=self._rank, world=self._world, compared=self._compared, is_kept=True))

    def _leave(self, file: str, line: int, begun: str, expected: list[PlannedCall] | tuple[()]) -> None:
        """Note the departure, say it, and compare no more: one call too many shifts all that follow."""
        self._is_done = True
        found = Departure(
            rank=self._rank,
            world=self._world,
            compared=self._compared,
            file=file,
            line=line,
            begun=begun,
            expected=tuple(str(e) for e in expected[:_SHOWN]),
            expected_line=expected[0].line if expected else "",
            rounds=self._place.rounds() if self._place is not None else "",
            last=self._last,
        )
        self._put(found)
        complain(found.sentence())

    def _put(self, found: Departure) -> None:
        handle = os.open(self._folder / f"{self._pid}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with open(handle, "ab") as file:  # noqa: PTH123 - an open handle
            file.write(msgspec.json.encode(found) + b"\n")
