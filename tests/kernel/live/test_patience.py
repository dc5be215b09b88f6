"""Whether ranks that wait hang is told within one question: by looks at them now, not by older records."""

import os
import socket
import time
from array import array

import msgspec
import pytest

from dtdebug.notebook import second_look
from dtdebug.notebook.ranks_seen import Conclusion
from dtdebug.notebook.second_look import LastSeen, watch
from dtdebug.recorded.flight_recorder import verdict_input
from dtdebug.recorded.flight_recorder.rank_program import Program
from dtdebug.recorded.flight_recorder.wait_graph import Wait
from dtdebug_taxonomy.model.ranks import Operation, RankState, Verdict

NOW = 1_760_000_000.0
HANG = Conclusion(Verdict(kind="not_arrived", culprits=(1,), waiting=(0,), summary="Rank 1 never arrived."))
NOTHING = Conclusion(Verdict(kind="none", summary="No hang so far."))


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(second_look, "_PAUSE", 0.0)


def job(age, seq=2, at=0.0):
    """Rank 0 waits for rank 1, for so many seconds."""
    pending = Operation(op="all_reduce", group="0", seq=seq, since=NOW + at - age)
    return (RankState(rank=0, alive=True, time=NOW + at, pending=pending), RankState(rank=1, alive=True, time=NOW + at))


def looked(first, *later, found=lambda states, moving: NOTHING, seconds=60):
    """What is concluded in the end, and how many further looks that took."""
    rows, count = iter(later), []

    def again(left):
        count.append(left)
        return next(rows)

    def follows(states, *, moving=None):
        return found(states, moving)

    seen = watch(LastSeen(first, Conclusion(), None), again, follows, time.monotonic() + seconds)
    return seen, len(count)


def older(seconds):
    """Accuses a rank once the other has waited for so long."""

    def found(states, moving):
        waits = states[0].pending
        return HANG if not moving and waits and states[0].time - waits.since >= seconds else NOTHING

    return found


def test_a_wait_that_is_long_is_told_at_once():
    """As of a hang of some seconds: one look is enough."""
    seen, more = looked(job(74), found=older(3))

    assert (HANG, 0) == (seen.found, more)


def test_a_hang_that_has_just_begun_is_told_by_the_first_answer():
    """It is looked at until its wait is longer than those of a job that moves."""
    looks = [job(1.5 + t, at=t) for t in (0.0, 0.7, 1.4, 2.1)]
    seen, more = looked(*looks, found=older(3))

    assert (HANG, 3, None) == (seen.found, more, seen.moved)


@pytest.mark.parametrize("accused", [True, False])
def test_a_job_that_moves_is_never_called_a_hang(accused):
    """Rank 0 waits in each look, but not in the same operation: whatever the first look seems to show."""
    found = older(0) if accused else older(3)
    seen, more = looked(job(0.5), job(0.5, seq=3, at=0.5), found=found)

    assert (NOTHING, 1, True) == (seen.found, more, seen.moved)


def test_what_a_look_at_a_young_wait_accuses_is_confirmed_by_a_second_one():
    """Records of ranks that call different things show it at once; that they stand there, the next look."""
    seen, more = looked(job(0.5), job(1.0, at=0.5), found=older(0))

    assert (HANG, 1) == (seen.found, more)


def test_a_rank_that_computes_is_not_waited_for(monkeypatch):
    """It may come at any time, so that nothing hangs yet."""
    monkeypatch.setattr(second_look._Work, "goes_on", lambda self: True)
    seen, more = looked(job(1.0), job(1.5, at=0.5), job(9, at=8), found=older(3))

    assert (NOTHING, 1) == (seen.found, more)


def test_work_is_the_cpu_time_of_ranks_that_do_not_wait(monkeypatch):
    """Of this host; a process that has gone has none."""
    mine = RankState(rank=1, pid=os.getpid(), host=socket.gethostname())
    waits = msgspec.structs.replace(mine, pending=Operation(op="barrier"))
    works = [second_look._Work([s]) for s in (mine, waits, msgspec.structs.replace(mine, pid=2**22 + 1))]
    monkeypatch.setattr(second_look, "_BUSY", 0.0)
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass

    assert [True, False, False] == [work.goes_on() for work in works]


def test_looking_ends_when_the_time_is_up():
    """A wait that stays young by the clocks of the ranks, as of one that is wrong."""
    assert 0 == looked(job(1.0), found=older(3), seconds=0)[1]


@pytest.mark.parametrize("kind", ["dead", "gil_held"])
def test_what_no_further_look_can_change_is_told_at_once(kind):
    """A rank that has ended, or is holding the GIL."""
    assert 0 == looked(job(0.5), found=lambda states, moving: Conclusion(Verdict(kind=kind)))[1]


@pytest.mark.parametrize(("paused", "alive", "expected"), [(0.1, True, 0.0), (4.0, True, 5.0), (4.0, False, 0.0)])
def test_a_pause_that_the_job_makes_in_each_step_is_no_hang(paused, alive, expected):
    """A wait of 5 s, after pauses of 4 s between the calls before; once the rank has ended, it was one."""
    programs = {0: Program(0), 1: Program(1)}
    programs[0].order = array("H", [0] * 20)
    programs[0].created = array("d", [NOW - 5 - paused * n for n in reversed(range(20))])
    programs[1].taken = NOW
    state = RankState(rank=0, alive=alive, pending=Operation(op="all_reduce") if alive else None)
    wait = Wait(0, "0", "all_reduce", 21, 19, frozenset({1}))
    seen = verdict_input.Records(programs, {0: state}, None, None, (0, 1))

    assert expected == pytest.approx(verdict_input.in_flight(seen, wait))
