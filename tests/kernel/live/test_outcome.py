"""The verdict that is said: none needs progress, what works is slow, what nothing explains is not understood."""

import socket
import time

import msgspec
import pytest

from dtdebug.live.job import progress as job_progress
from dtdebug.live.job.coverage import coverage, following, unread
from dtdebug.live.job.coverage import next_host as next_step
from dtdebug.live.job.failed_threads import with_failed_child, with_gone_threads
from dtdebug.live.job.judge import analyse_records
from dtdebug.live.job.observe import before_interrupt
from dtdebug.live.job.proof import OPEN, limit_to_proof, with_time_out
from dtdebug.live.job.reconcile import TwoLooks, reconcile_verdict
from dtdebug.live.job.restarts import verdict_without_ranks
from dtdebug.live.probe.ask_all_ranks import one_each
from dtdebug.live.probe.init_verdict import arrival
from dtdebug.live.probe.liveness import Death
from dtdebug.storage.run_folder import Run
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.logs.events import PrintedException
from dtdebug_taxonomy.model.claims import Record
from dtdebug_taxonomy.model.ranks import FINISHED, TWICE, Frame, Group, Operation, RankState, SurvivedException, Verdict
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.model.waiting import ALONE, REMOTE, Waiting

NOW = 1_760_000_000.0
LIB = "/x/site-packages/torch"
SAVE = (Frame("/job/train.py", 30, "checkpoint"), Frame(f"{LIB}/serialization.py", 900, "save"))
IMPORT = (
    Frame("/job/train.py", 3, "main"),
    Frame("<frozen importlib._bootstrap>", 100, "_find_and_load"),
    Frame(f"{LIB}/distributed/pipelining/_IR.py", 9, "<module>"),
)
INIT = (Frame("/job/train.py", 5, "main"), Frame(f"{LIB}/distributed/distributed_c10d.py", 9, "init_process_group"))


def rank(n, *, op="", age=0.0, counts=(5, 5), stack=(), **more):
    """A living rank of two, in an operation or not."""
    pending = Operation(op=op, group="0", seq=6, since=NOW - age) if op else None
    group = Group(name="0", ranks=(0, 1), enqueued=counts[0], completed=counts[1])
    known = {"alive": True, "world_size": 2, "pid": 100 + n, "initialized": True, "groups": (group,), "time": NOW}
    stack = stack or (Frame("/job/train.py", 10 + n, "main"),)
    return RankState(rank=n, pending=pending, stack=stack, **{**known, **more})


def absent(*culprits, waiting=(0,)):
    """What the records say where a rank is waited for."""
    return Verdict(
        kind="not_arrived", culprits=culprits, waiting=waiting, confidence=0.9, summary="Rank 1 never arrived."
    )


@pytest.mark.parametrize(
    ("progress", "kind"),
    [
        ({0: "slow", 1: "busy"}, "none"),
        ({0: "stuck", 1: "stuck"}, "not_understood"),
        ({0: "busy", 1: "unknown"}, "not_understood"),
        ({}, "not_understood"),
    ],
)
def test_none_needs_every_rank_to_have_made_progress(progress, kind):
    """Neither a rank that was read once nor one that did not move is well."""
    found = reconcile_verdict(Verdict(kind="none"), TwoLooks([rank(0), rank(1)], progress))

    assert kind == found.kind
    assert found.evidence == tuple(claim.text for claim in found.claims)


def test_what_is_not_understood_says_who_is_where_since_when():
    """Ranks in one place together, how counters differ, and where they came from."""
    place = (Frame("/job/train.py", 20, "step"),)
    states = [rank(0, op="all_gather", age=40, stack=place, counts=(7, 5)), rank(1, counts=(6, 6))]
    found = reconcile_verdict(None, TwoLooks(states, {0: "stuck", 1: "stuck"}, moving=False, seconds=44.0))

    assert ("not_understood", (), (0, 1), 0.0) == (found.kind, found.culprits, found.waiting, found.confidence)
    assert "Rank 0 waits in all_gather #6 of world, at /job/train.py:20 in step for 40 s." in found.evidence
    assert "Ranks 0-1 made no progress: the same place and counters in two looks for 44 s." in found.evidence
    assert {"Rank 0 has begun 7 operations of world.", "Rank 1 has begun 6 operations of world."} <= {*found.evidence}
    assert all(claim.record.source in ("stack", "agent") for claim in found.claims)


def test_cpu_time_is_no_progress_of_a_rank_with_an_operation_under_way_for_the_whole_limit():
    """Libraries poll while they wait in C code, where no stack shows it."""
    states = [rank(0, counts=(7, 6)), rank(1, counts=(7, 6))]
    busy = {0: "busy", 1: "busy"}

    assert "not_understood" == reconcile_verdict(None, TwoLooks(states, busy, moving=False)).kind
    assert "none" == reconcile_verdict(None, TwoLooks(states, busy)).kind


@pytest.mark.parametrize(
    ("stack", "now", "moving", "kind"),
    [
        ((), "stuck", False, "not_arrived"),
        ((), "busy", False, "not_arrived"),
        ((), "busy", None, "none"),
        (SAVE, "busy", False, "none"),
        (SAVE, "stuck", False, "not_arrived"),
        (IMPORT, "stuck", False, "not_arrived"),
    ],
)
def test_a_rank_that_works_is_slow(stack, now, moving, kind):
    """And one at rest, whatever it is in, may only be slow: nothing proves that it will not come."""
    states = [rank(0, op="barrier", age=5), rank(1, stack=stack)]
    progress = {0: "stuck", 1: now}
    found = reconcile_verdict(absent(1), TwoLooks(states, progress, moving=moving))

    assert (kind, kind != "none") == (found.kind, limit_to_proof(found, states, {}, progress, moving=moving).open)
    assert (found.kind == "none") == (found.stragglers == (1,))


STUCK = {0: "stuck", 1: "stuck"}
HELD = Record(source="system", path="/proc/locks")


def locked(n, holder):
    """A rank that waits for a lock which another one is holding."""
    return rank(n, waiting=Waiting(kind="lock", path="/a", rank=holder, record=HELD))


def at_set_up(n):
    """A rank that makes a group, for which every rank of the job has to come."""
    return rank(n, waiting=Waiting(kind="rendezvous", op="new_group", record=HELD))


def alone(code):
    """A rank that waits for a thread of its own, of which there is none."""
    waits = Waiting(kind="thread", op="get", record=HELD, words=ALONE)
    return rank(1, waiting=waits, stack=(Frame("/lib/threading.py", 355, "wait", code),))


@pytest.mark.parametrize(
    ("states", "awaits", "proven"),
    [
        ([rank(0, op="all_reduce"), rank(1, waiting=Waiting(kind="child", record=HELD))], {0: frozenset({1})}, False),
        ([rank(0, op="all_reduce"), rank(1, waiting=Waiting(kind="stopped", record=HELD))], {0: frozenset({1})}, True),
        ([rank(0, op="recv"), rank(1, op="recv")], {0: frozenset({1}), 1: frozenset({0})}, True),
        ([rank(0, op="recv"), rank(1, op="recv")], {0: frozenset({1}), 1: frozenset()}, False),
        ([rank(0, op="all_reduce"), rank(1, op="barrier")], {}, True),
        ([rank(0, op="all_reduce"), rank(1, op="all_reduce")], {}, False),
        ([locked(0, 1), locked(1, 0)], {}, True),
        ([rank(0, op="all_reduce"), locked(1, 0)], {0: frozenset({1})}, True),
        ([rank(0, op="all_reduce"), locked(1, 7)], {0: frozenset({1})}, False),
        ([rank(0, op="all_reduce"), alone("waiter.acquire()")], {0: frozenset({1})}, True),
        ([rank(0, op="all_reduce"), alone("gotit = waiter.acquire(True, timeout)")], {0: frozenset({1})}, False),
        ([rank(0, op="all_reduce"), alone("")], {0: frozenset({1})}, False),
        ([rank(0, op="all_gather"), at_set_up(1)], {0: frozenset({1})}, True),
        ([at_set_up(0), at_set_up(1)], {}, False),
        ([rank(0, waiting=Waiting(kind="child", record=HELD)), at_set_up(1)], {}, False),
    ],
)
def test_ranks_hang_for_certain_only_if_what_they_wait_for_waits_for_them_or_has_ended(states, awaits, proven):
    """All else may come back, however long it takes; so may ranks of which nobody knows whether they rest."""
    found = limit_to_proof(absent(1), states, awaits, STUCK, moving=None)

    assert (not proven, not proven) == (found.open, found.summary.startswith(OPEN))
    assert limit_to_proof(absent(1), states, awaits, {}, moving=None).open
    assert limit_to_proof(absent(1), states, awaits, {0: "slow", 1: "slow"}, moving=False).open


def test_a_rank_that_others_waited_for_up_to_their_limit_was_not_slow():
    """Their time-out ends the doubt; an end by the user does not."""
    states = [rank(0, op="all_reduce"), rank(1, waiting=Waiting(kind="sleep", record=HELD))]
    found = limit_to_proof(absent(1), states, {}, STUCK, moving=False)
    failed = [msgspec.structs.replace(states[0], alive=False, exception="RuntimeError: Timed out"), states[1]]
    ended = [msgspec.structs.replace(state, alive=False, signal="SIGTERM") for state in states]

    assert absent(1) == with_time_out(found, failed)
    assert found == with_time_out(found, ended)


LOCK = Waiting(kind="lock", path="/data/index.lock", record=Record(source="system", path="/proc/locks"))
GIL = Waiting(kind="gil", op="inflate", record=Record(source="native"))
STORE = Waiting(kind="store", op="TCPStore.wait", record=Record(source="stack"))


@pytest.mark.parametrize(("there", "kind"), [(LOCK, "not_arrived"), (GIL, "gil_held")])
@pytest.mark.parametrize(
    "before", [None, Verdict(kind="none"), Verdict(kind="not_arrived", culprits=(0, 1), confidence=0.8)]
)
def test_a_rank_held_up_outside_of_the_job_is_the_culprit_where_all_others_wait_in_communication(there, kind, before):
    """Whatever operations are known, and though those that wait seem to wait for each other."""
    states = [rank(0, op="recv", world_size=3), rank(1, waiting=STORE, world_size=3), rank(2, waiting=there)]
    found = reconcile_verdict(before, TwoLooks(states, dict.fromkeys(range(3), "stuck")))

    assert (kind, (2,), (0, 1)) == (found.kind, found.culprits, found.waiting)
    assert found.summary.startswith("Rank 2 ")
    assert found.evidence == tuple(claim.text for claim in found.claims)
    assert "" == next_step(found, states, ())


def test_the_holder_of_a_lock_is_the_culprit_where_all_others_wait_for_the_lock():
    """No rank needs to be in an operation: the system says who holds what the others wait for."""
    pipe = Waiting(kind="pipe", op="a read", path="pipe:[7]", record=Record(source="system", path="/proc/102/syscall"))
    queue = [rank(n, world_size=3, waiting=msgspec.structs.replace(LOCK, rank=2, pid=102)) for n in (0, 1)]
    stuck = dict.fromkeys(range(3), "stuck")
    found = reconcile_verdict(None, TwoLooks([*queue, rank(2, world_size=3, waiting=pipe)], stuck, moving=False))

    assert ("not_arrived", (2,), (0, 1)) == (found.kind, found.culprits, found.waiting)
    assert found.summary.startswith("Rank 2 waits in a read of pipe:[7]")
    assert found.summary.endswith("; ranks 0-1 wait for it to release /data/index.lock.")
    circle = [queue[0], rank(2, waiting=msgspec.structs.replace(LOCK, rank=0, path="/data/other.lock"))]
    assert (0, 2) == reconcile_verdict(None, TwoLooks(circle, stuck, moving=False)).culprits
    stranger = rank(2, world_size=3, waiting=msgspec.structs.replace(LOCK, pid=77))
    assert "not_understood" == reconcile_verdict(None, TwoLooks([stranger], stuck, moving=False)).kind


def test_ranks_that_hold_each_others_locks_are_named_each_with_its_lock():
    """Who is holding which is said of each: what one waits for is not what the other does."""

    def waits(n, path, holder):
        record = Record(source="system", path="/proc/locks", words="2: -> FLOCK")
        return rank(n, waiting=Waiting(kind="lock", path=path, pid=100 + holder, rank=holder, record=record))

    states = [waits(0, "/b", 1), waits(1, "/a", 0), rank(2, op="barrier", age=20.0)]
    found = reconcile_verdict(absent(0, 1), TwoLooks(states, dict.fromkeys(range(3), "stuck"), moving=False))

    assert ("not_arrived", (0, 1), (2,)) == (found.kind, found.culprits, found.waiting)
    for said in ("lock of /b, which rank 1", "lock of /a, which rank 0", "Rank 2 waits for them"):
        assert said in found.summary
    assert found.evidence == tuple(claim.text for claim in found.claims)
    named = diagnose(load(), Snapshot(ranks=tuple(states), verdict=found))
    assert ["lock-kept-while-waiting"] == [advice.cause for advice in named.advice]


def test_a_lock_that_is_kept_over_a_collective_is_told_with_both_ranks():
    """The one that wants it never comes to what the one that is holding it waits in."""
    record = Record(source="system", path="/proc/locks", words="2: -> POSIX")
    wants = rank(0, waiting=Waiting(kind="lock", path="/runs.db", pid=101, rank=1, record=record))
    verdict = msgspec.structs.replace(absent(0), waiting=(1,))
    found = reconcile_verdict(
        verdict, TwoLooks([wants, rank(1, op="all_reduce", age=20.0)], {0: "stuck", 1: "stuck"}, moving=False)
    )

    assert (0, 1) == found.culprits
    for said in (
        "rank 0 waits for the lock of /runs.db, which rank 1",
        "rank 1 waits in all_reduce #6 of world for rank 0",
    ):
        assert said in found.summary
    named = diagnose(load(), Snapshot(ranks=(wants,), verdict=found))
    assert ["lock-kept-while-waiting"] == [advice.cause for advice in named.advice]


def test_the_thread_that_has_not_answered_a_remote_call_is_told():
    """Its rank's main thread waits as the others do."""
    waits = Waiting(kind="rpc", op="rpc_sync", record=LOCK.record)
    answers = Waiting(kind="sleep", thread="Thread-4", file="/job/ps.py", line=9, words=REMOTE, record=LOCK.record)
    states = [rank(0, waiting=waits), rank(1, op="all_reduce", age=20.0, beside=(answers,))]
    told = reconcile_verdict(absent(0), TwoLooks(states, {0: "stuck", 1: "stuck"}, moving=False))

    assert (0,) == told.culprits
    assert (
        "Rank 1: its thread Thread-4 at /job/ps.py:9 waits in a sleep (it runs a call of another rank)" in told.summary
    )
    assert told.evidence == tuple(claim.text for claim in told.claims)


def test_who_has_not_answered_is_named_where_nobody_is_in_a_collective():
    waits = Waiting(kind="rpc", op="rpc_sync", record=LOCK.record)
    answers = Waiting(kind="sleep", thread="Thread-4", file="/job/ps.py", line=9, words=REMOTE, record=LOCK.record)
    ends = Waiting(kind="rpc", op="_all_gather", record=LOCK.record)
    states = [rank(0, waiting=waits), rank(1, waiting=ends, beside=(answers,))]
    found = reconcile_verdict(None, TwoLooks(states, {0: "stuck", 1: "stuck"}, moving=False))

    assert ("not_arrived", (1,), (0,)) == (found.kind, found.culprits, found.waiting)
    assert "Rank 0 waits for the answer to a remote call in rpc_sync" in found.summary
    assert (1, "/job/ps.py", 9) == (found.sites[0].rank, found.sites[0].file, found.sites[0].line)
    assert found.evidence == tuple(claim.text for claim in found.claims)


def test_what_all_have_raised_alike_leads_the_answer():
    ended = {"alive": False, "exception": "DistStoreError: wait timeout", "exit_code": 1}
    found = reconcile_verdict(None, TwoLooks([rank(n, stack=INIT, **ended) for n in (0, 1)], {}))

    assert "not_understood" == found.kind
    assert found.summary.startswith("Ranks 0-1 raised DistStoreError: wait timeout at /job/train.py:5")


def test_a_lock_that_all_wait_for_is_named_and_nobody_accused():
    """A file that says by being there that somebody builds; who made it has ended, or is of another job."""
    states = [rank(n, waiting=msgspec.structs.replace(LOCK, op="wait")) for n in (0, 1)]
    stuck = {0: "stuck", 1: "stuck"}
    found = reconcile_verdict(None, TwoLooks(states, stuck, moving=False))

    assert ("not_understood", ()) == (found.kind, found.culprits)
    assert found.summary.startswith("Ranks 0-1 wait for the lock of /data/index.lock, and none of them holds it:")
    assert "none of them" not in reconcile_verdict(None, TwoLooks(states, {0: "stuck", 1: "busy"})).summary


def test_of_ranks_that_were_all_sent_a_signal_none_is_said_to_have_failed():
    states = [RankState(rank=n, pid=10 + n, alive=False, signal="SIGTERM") for n in range(3)]
    found = reconcile_verdict(None, TwoLooks(states, {}))

    assert found.summary == "Ranks 0-2 were ended by SIGTERM; no record shows that one of them had failed."
    killed = [*states[:2], RankState(rank=2, pid=12, alive=False, signal="SIGKILL")]
    assert "which of them failed first" in reconcile_verdict(None, TwoLooks(killed, {})).summary


def test_a_thread_that_an_exception_ended_is_why_its_rank_never_comes():
    """It is named with its place; of a rank that called something else it explains nothing."""
    stack = (Frame("/usr/lib/python3.11/threading.py", 982, "run"), Frame("/job/data.py", 31, "fill"))
    waits = Waiting(kind="thread", record=Record(source="stack"), op="get")
    lost = rank(1, broken=(SurvivedException("prefetch", "KeyError: 'x'", stack),), waiting=waits)
    states, stuck = [rank(0, op="all_reduce"), lost], {0: "stuck", 1: "stuck"}
    found = reconcile_verdict(absent(1), TwoLooks(states, stuck, moving=False))

    assert ("not_arrived", (1,)) == (found.kind, found.culprits)
    assert found.summary.startswith("Rank 1 raised KeyError: 'x' (in its thread prefetch) at /job/data.py:31 in fill")
    assert ("/job/data.py", 31) == (found.sites[0].file, found.sites[0].line)
    nobody = reconcile_verdict(None, TwoLooks(states, stuck, moving=False))
    assert ("not_arrived", (1,), (0,)) == (nobody.kind, nobody.culprits, nobody.waiting)
    sleeps = msgspec.structs.replace(lost, waiting=Waiting(kind="sleep", record=Record(source="stack")))
    besides = reconcile_verdict(absent(1), TwoLooks([states[0], sleeps], stuck, moving=False))
    assert besides.summary == absent(1).summary
    assert any("in its thread prefetch" in row for row in besides.evidence)
    skipped = msgspec.structs.replace(absent(1), kind="skipped")
    assert skipped.summary == reconcile_verdict(skipped, TwoLooks(states, stuck, moving=False)).summary


def test_a_rank_that_waits_for_its_own_thread_in_a_collective_is_not_accused():
    """It is held up as all others are."""
    record = Record(source="stack")
    inside = Waiting(kind="collective", record=record, op="all_gather", thread="metrics")
    joins = rank(1, waiting=Waiting(kind="thread", record=record, op="join"), beside=(inside,))
    found = reconcile_verdict(
        absent(1), TwoLooks([rank(0, op="barrier"), joins], {0: "stuck", 1: "stuck"}, moving=False)
    )

    assert ("not_understood", ()) == (found.kind, found.culprits)


def test_an_exception_that_only_one_rank_still_handles_leads_the_answer():
    """It waits in its `finally`, and nothing has printed why; what all handle, or none, explains no difference."""
    raised = SurvivedException("", "KeyError: 'trunk'", (Frame("/job/train.py", 6, "schedule"),))
    states = [rank(0, op="all_reduce"), rank(1, op="barrier", handling=raised), rank(2, op="all_reduce")]
    stuck = dict.fromkeys(range(3), "stuck")
    called = Verdict(kind="extra", culprits=(1,), waiting=(0, 2), confidence=0.9, summary="Rank 1 called barrier #3.")
    found = reconcile_verdict(called, TwoLooks(states, stuck, moving=False))

    assert found.summary == (
        "Rank 1 raised KeyError: 'trunk' (which it still handles) at /job/train.py:6 in schedule; it called barrier #3."
    )
    assert ("extra", (1,), "/job/train.py", 6) == (found.kind, found.culprits, found.sites[0].file, found.sites[0].line)
    assert found.evidence == tuple(claim.text for claim in found.claims)
    everywhere = [msgspec.structs.replace(state, handling=raised) for state in states]
    assert called.summary == reconcile_verdict(called, TwoLooks(everywhere, stuck, moving=False)).summary


def test_a_process_that_does_not_end_after_its_program_is_named_with_its_thread():
    """All others have finished: nobody waits in communication, and the rank is not at work."""
    thread = Waiting(
        kind="thread", record=Record(source="stack"), op="join", file="/job/log.py", line=11, function="run"
    )
    left = rank(0, alive=False, exit_code=0)
    shut = (Frame("/usr/lib/python3.11/threading.py", 1590, "_shutdown"),)
    found = reconcile_verdict(None, TwoLooks([left, rank(1, stack=shut, waiting=thread)], {1: "stuck"}, moving=False))

    assert ("not_arrived", (1,), ()) == (found.kind, found.culprits, found.waiting)
    assert found.summary.startswith("Rank 1 has run the program to its end, and the process does not end")
    assert ("/job/log.py", 11) == (found.sites[0].file, found.sites[0].line)
    inside = (Frame("/job/train.py", 3, "<module>"), *shut)
    busy = reconcile_verdict(None, TwoLooks([left, rank(1, stack=inside, waiting=thread)], {1: "stuck"}, moving=False))
    assert "not_understood" == busy.kind


def test_ranks_are_taken_as_they_stood_before_an_interrupt_moved_them():
    """A command-line framework turns it into an exit status; a rank that raised or finished says so itself."""
    place = (Frame("/job/train.py", 8, "wait"),)
    gone = (Frame("/job/train.py", 20, "<module>"),)
    before = [rank(n, pid=n + 10, stack=place) for n in range(4)]
    now = [
        rank(0, pid=10, stack=gone, alive=False, exit_code=1),
        rank(1, pid=11, stack=place, alive=False, exception="ValueError: x"),
        rank(2, pid=12, stack=gone),
        rank(3, pid=13, stack=gone, alive=False, exit_code=0),
    ]
    deaths = [Death(pid=10, time=1.0, status=1), Death(pid=11, time=1.0, status=1), Death(pid=13, time=1.0, status=0)]
    states, left = before_interrupt(now, before, deaths)

    assert (before[0], now[1], before[2], now[3]) == states
    assert [11, 13] == [death.pid for death in left]


def test_ranks_that_the_launcher_never_starts_are_on_no_other_host():
    """The program waits for one more than torchrun has started, by torchrun's own variables."""
    names = {"GROUP_WORLD_SIZE": "1", "ROLE_WORLD_SIZE": "2"}
    shape = {"world_size": 3, "local_world_size": 2, "environment": names, "initialized": False}
    states = [rank(n, stack=INIT, **shape) for n in range(2)]
    found = arrival(states)

    assert ("not_arrived", (2,), (0, 1)) == (found.kind, found.culprits, found.waiting)
    assert found.summary.endswith("of 3 ranks, and the launcher has started 2: nothing starts rank 2.")
    assert () == unread(states, ())
    several = [msgspec.structs.replace(state, environment={}) for state in states]
    assert (2,) == unread(several, ())


def test_a_compiler_at_work_is_no_hang():
    """Whoever started it; a program of another kind may run for ever."""
    record = Record(source="system")
    for command, kind in (("/usr/bin/g++-12 -O3 k.cpp", "none"), ("./compress ninja", "not_arrived")):
        waits = Waiting(kind="subprocess", record=record, pid=9, command=command)
        states = [rank(0, op="barrier", age=60.0), rank(1, waiting=waits)]
        found = reconcile_verdict(absent(1), TwoLooks(states, {0: "stuck", 1: "busy"}, moving=False, seconds=60.0))
        assert kind == found.kind, command
        assert "child process" in found.evidence[0]


def test_nobody_is_accused_of_waiting_outside_while_another_rank_computes_or_counters_move():
    """One that computes may be what all wait for."""
    states = [rank(0, op="recv"), rank(1, waiting=LOCK)]
    computes = [rank(0), rank(1, waiting=LOCK)]

    assert "not_understood" == reconcile_verdict(None, TwoLooks(computes, {0: "stuck", 1: "stuck"})).kind
    assert not reconcile_verdict(None, TwoLooks(states, {0: "slow", 1: "stuck"})).culprits
    assert not reconcile_verdict(None, TwoLooks(states, {})).culprits


def test_a_rank_that_holds_the_gil_is_never_said_to_be_well():
    """Though it uses the CPU; nor is one that others have waited for longer than a moment."""
    held = [rank(0, op="recv"), rank(1, waiting=GIL)]
    computes = [rank(0, op="recv", age=25), rank(1)]
    gil, late = (reconcile_verdict(None, TwoLooks(states, {0: "stuck", 1: "busy"})) for states in (held, computes))

    assert ("gil_held", (1,)) == (gil.kind, gil.culprits)
    assert ("not_arrived", (1,), (0,)) == (late.kind, late.culprits, late.waiting)
    assert late.confidence <= 0.4


def test_what_was_seen_of_a_rank_is_over_once_it_is_elsewhere():
    """It computed then and waits now."""
    then, now = rank(0), rank(0, stack=(Frame("/job/train.py", 50, "receive"),))

    assert {0: "unknown"} == job_progress.still({0: "busy"}, [then], [now])
    assert {0: "busy"} == job_progress.still({0: "busy"}, [then], [then])


def test_ranks_that_gave_no_answer_are_not_well_unless_the_others_ended_operations_with_them():
    """A collective that has ended shows that all came."""
    dark = RankState(rank=1, alive=None)

    unseen = reconcile_verdict(None, TwoLooks([rank(0), dark], {0: "busy"}))
    assert ("not_understood", "No process of rank 1 was seen.") == (unseen.kind, unseen.summary)
    silent = reconcile_verdict(None, TwoLooks([rank(0), msgspec.structs.replace(dark, pid=101)], {0: "busy"}))
    assert "Rank 1 gave no answer." == silent.summary
    found = reconcile_verdict(None, TwoLooks([rank(0), dark], {0: "slow"}))
    assert ("none", True) == (found.kind, found.confidence < 0.5)
    assert "Rank 1 gave no answer" in found.summary


def test_all_that_have_ended_well_have_finished():
    """And where only some failed after losing another one, the first is not known."""
    good = [RankState(rank=0, alive=False, exit_code=0), RankState(rank=1, alive=False, facts={FINISHED: "no failure"})]
    lost = [RankState(rank=n, alive=False, exception="RuntimeError: Connection closed by peer") for n in (0, 1)]

    assert "none" == reconcile_verdict(None, TwoLooks(good, {})).kind
    found = reconcile_verdict(Verdict(kind="none"), TwoLooks(lost, {}))
    assert "not_understood" == found.kind
    assert {"raised"} == {claim.what for claim in found.claims}


def test_who_has_come_to_the_set_up_and_who_has_not_is_said():
    """By ranks that are elsewhere, that nobody has seen, or that go to another port."""
    inside = {"initialized": False, "groups": (), "local_world_size": 2}
    late = arrival([rank(0, stack=INIT, **inside), rank(1, **inside)])
    alone = arrival([rank(0, stack=INIT, **inside), RankState(rank=1, alive=None)])
    remote = arrival([rank(0, stack=INIT, **{**inside, "local_world_size": 1}), RankState(rank=1, alive=None)])
    apart = arrival(
        [rank(n, stack=INIT, environment={"MASTER_PORT": "29500" if n else "29501"}, **inside) for n in range(3)]
    )
    twice = arrival([rank(0, stack=INIT, facts={TWICE: "7 on h"}, **inside), RankState(rank=1, alive=None)])

    assert ((1,), (0,)) == (late.culprits, late.waiting)
    assert (
        "Rank 1 is at /job/train.py:11 in main; rank 0 waits in init_process_group of 2 ranks for it." == late.summary
    )
    assert "of which no process was seen" in alone.summary
    assert late.confidence > alone.confidence > remote.confidence
    assert ((0,), True) == (apart.culprits, "MASTER_PORT is 29501, not 29500" in apart.summary)
    assert ((0,), True) == (twice.culprits, "more than one process" in twice.summary)
    assert arrival([rank(0), rank(1)]) is None


def test_two_processes_with_one_rank_are_noticed_and_a_wrapper_is_none():
    """A wrapper is the parent of what it wraps, or in no process group."""
    one, other = rank(0, host="h"), rank(0, host="h", pid=7)
    wrapped = rank(0, pid=8, parent=100)

    assert "7 on h" == one_each([one, other])[0].facts[TWICE]
    assert not one_each([one, wrapped])[0].facts
    assert not one_each([one, rank(0, pid=9, initialized=False)])[0].facts


def test_a_process_works_by_what_the_system_counts():
    """A thread that computes does; one that sleeps does not."""
    host = socket.gethostname()
    import os
    import subprocess
    import sys

    codes = {"works": "while True: pass", "rests": "import time; time.sleep(60)"}
    jobs = {name: subprocess.Popen([sys.executable, "-c", code]) for name, code in codes.items()}
    try:
        states = [RankState(rank=n, pid=job.pid, alive=True) for n, job in enumerate(jobs.values())]
        until = time.monotonic() + 30
        works = rests = frozenset()
        while time.monotonic() < until and not (jobs["works"].pid in works and jobs["rests"].pid in rests):
            before = job_progress.sample(states, host)
            time.sleep(0.5)
            works, rests = job_progress.workers(before, job_progress.sample(states, host))
        assert ({jobs["works"].pid}, {jobs["rests"].pid}) == (works, rests)
    finally:
        for job in jobs.values():
            job.kill()
            job.wait()
    assert {} == job_progress.sample([RankState(rank=0, pid=os.getpid(), host="elsewhere")], host)


def test_what_polls_at_two_lines_of_one_function_does_not_move():
    """Unless it uses the CPU; a rank in an operation does not move by using it."""
    loop = [rank(1, stack=(Frame("/job/train.py", line, "wait"),)) for line in (7, 8)]
    inside = rank(0, op="barrier", stack=(Frame("/job/train.py", 9, "main"),))

    assert {1: "stuck"} == job_progress.progress(loop[:1], loop[1:], rests=[101])
    assert {1: "busy"} == job_progress.progress(loop[:1], loop[1:])
    assert {1: "busy"} == job_progress.progress(loop[:1], loop[:1], works=[101])
    assert {0: "stuck"} == job_progress.progress([inside], [inside], works=[100])


def test_coverage_says_what_was_read_and_what_was_not():
    """By road, with the reason of those that gave no answer."""
    host = socket.gethostname()
    states = [rank(0, host=host, roads={"endpoint": "ok"}), RankState(rank=1, alive=None, roads={"files": "nothing"})]
    found = coverage(states, "a\nb\n", (1,))

    assert (1, 2, 1) == (found.ranks, found.expected, found.hosts)
    assert ("stacks of rank 0 by the agents inside", "output, 2 lines") == found.read
    assert ("rank 1: files: nothing", "no flight-recorder dump of rank 1") == found.unread
    assert following(Verdict(kind="not_understood"), states, None).startswith("dtdebug attach --native")
    assert "" == following(Verdict(kind="none"), states, None)


TYPO = """Traceback (most recent call last):
  File "/env/bin/torchrun", line 6, in <module>
    sys.exit(main())
  File "/env/lib/python3.11/site-packages/torch/distributed/run.py", line 755, in determine_local_world_size
    raise ValueError(f"Unsupported nproc_per_node value: {nproc_per_node}")
ValueError: Unsupported nproc_per_node value: two
"""
OWN = """Traceback (most recent call last):
  File "/job/launch.py", line 3, in <module>
    import trainr
ModuleNotFoundError: No module named 'trainr'
"""


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        (TYPO, "ValueError: Unsupported nproc_per_node value: two; no rank was seen."),
        (OWN, "ModuleNotFoundError: No module named 'trainr' at /job/launch.py:3 in <module>; no rank was seen."),
        (
            "go\nlaunch: error: unrecognized arguments: --nodes\n",
            "The program refuses its arguments: launch: unrecognized arguments: --nodes; no rank was seen.",
        ),
        ("", "The command ended with exit status 2 and printed nothing; no rank was seen."),
    ],
)
def test_a_command_that_failed_before_any_rank_says_itself_why(printed, said):
    """The first line is what was printed, with its line of the output; of a job that runs nothing is said so."""
    unseen = reconcile_verdict(None, TwoLooks((), {}))
    found = verdict_without_ranks(unseen, (), Snapshot(output=printed), Run(status=2))

    assert found.summary.startswith(said)
    assert [bool(printed)] == [bool(found.claims and found.claims[0].record.line)]
    assert unseen == verdict_without_ranks(unseen, (), Snapshot(output=printed), Run(status=None))


def test_two_looks_at_two_processes_of_one_rank_show_no_progress():
    """Each look read another one of the two."""
    twice = {"facts": {TWICE: "101 on a"}}
    first, second = rank(0, pid=100, **twice), rank(0, pid=101, **twice)

    assert "unknown" == job_progress.progress([first], [second])[0]


def receiving(*sources):
    """Each rank waits for a message of another one, or for some of a batch."""
    return [
        rank(
            n, world_size=len(sources),
            groups=(Group(name="0", ranks=tuple(range(len(sources))), enqueued=0, completed=0),),
        )
        for n, _ in enumerate(sources)
    ]  # fmt: skip


def test_who_waits_for_a_message_of_a_rank_that_has_gone_on_to_a_barrier_is_in_no_circle_of_messages(tmp_path):
    """Of three ranks one has left the part with the messages: nobody sends first, or in another order."""
    file = tmp_path / "rollout.py"
    file.write_text("recv(0)\nrecv(2)\nbarrier()\n")
    rows = (("recv", 2, 2), ("recv", 1, 0), ("barrier", 3, None))
    states = [
        msgspec.structs.replace(
            state,
            stack=(Frame(str(file), line, "<module>"),),
            groups=(msgspec.structs.replace(state.groups[0], enqueued=int(op == "barrier")),),
            pending=Operation(op=op, group="0", seq=1 if op == "barrier" else None, peer=peer),
        )
        for state, (op, line, peer) in zip(receiving(0, 1, 2), rows, strict=True)
    ]
    found = analyse_records(None, states, moving=False)[0].verdict

    assert ("skipped", ()) == (found.kind, found.culprits)
    assert "Rank 0 waits in recv for rank 2, which is further on in the source" in found.summary
    told = diagnose(load(), Snapshot(verdict=found))
    assert "ranks-wait-in-a-circle" not in {r.evidence for s in told.symptoms for r in s.why}


def test_a_circle_of_receives_says_who_waits_for_whom(tmp_path):
    """Of a batch only those it is with are waited for, and its cause is the order of sends and receives."""
    (tmp_path / "flight").mkdir()
    waits = [{"op": "recv", "peer": 2}, {"op": "batch_isend_irecv", "peers": (0, 2)}, {"op": "recv", "peer": 1},
             {"op": "recv", "peer": 2}]  # fmt: skip
    states = [
        msgspec.structs.replace(state, pending=Operation(group="0", **wait))
        for state, wait in zip(receiving(*waits), waits, strict=True)
    ]
    found = analyse_records(None, states, moving=False)[0].verdict
    told = diagnose(load(), Snapshot(ranks=tuple(states), verdict=found))

    assert ("not_arrived", (0, 1, 2), (3,)) == (found.kind, found.culprits, found.waiting)
    assert "(0 in recv for 2, 1 in batch_isend_irecv for 0,2, 2 in recv for 1)" in found.summary
    assert "ranks-wait-in-a-circle" in {r.evidence for s in told.symptoms for r in s.why}
    assert "rank-did-not-come" not in {r.evidence for s in told.symptoms for r in s.why}
    assert "nobody-sends-first" == told.advice[0].cause


def test_a_receive_from_a_rank_that_does_not_exist_is_wrong_itself(tmp_path):
    (tmp_path / "flight").mkdir()
    pending = Operation(op="irecv", group="0", peer=2)
    states = [rank(0), msgspec.structs.replace(rank(1), pending=pending)]
    found = analyse_records(None, states, moving=False)[0].verdict

    assert ("wrong_root", (1,)) == (found.kind, found.culprits)
    assert found.summary == "Rank 1 waits in irecv for rank 2, and the job has ranks 0-1 only."


def test_a_rank_in_a_message_has_not_passed_by_a_batch_of_messages():
    """It may have made its own batch, of that message alone."""
    waits = [{"op": "batch_isend_irecv", "peers": (1, 2)}, {"op": "isend", "peer": 2},
             {"op": "batch_isend_irecv", "peers": (0, 1)}]  # fmt: skip
    states = [
        msgspec.structs.replace(state, pending=Operation(group="0", **wait))
        for state, wait in zip(receiving(*waits), waits, strict=True)
    ]
    found = analyse_records(None, states, moving=False)[0].verdict

    assert "not_arrived" == found.kind
    assert "passed" not in found.summary


def test_what_a_child_process_raised_is_why_its_parent_never_comes():
    """If the one rank that is waited for waits for a child; of one that waits for a lock file it explains nothing."""
    child = PrintedException(
        type="OSError", message="no tape", process="SpawnProcess-1", frames=(Frame("/job/d.py", 6, "feed"),)
    )
    waits = Waiting(kind="child", record=Record(source="stack"))
    found = with_failed_child(absent(1), [rank(0, op="all_reduce"), rank(1, waiting=waits)], [child])

    assert found.summary.startswith("Rank 1 raised OSError: no tape (in its process SpawnProcess-1) at /job/d.py:6")
    assert found.evidence[0] == found.claims[0].text
    sleeps = rank(1, waiting=msgspec.structs.replace(waits, kind="sleep"))
    assert absent(1) == with_failed_child(absent(1), [sleeps], [child])
    assert absent(1) == with_failed_child(absent(1), [rank(1, waiting=waits)], [child, child])


def test_a_thread_that_the_others_still_have_is_told_where_the_awaited_rank_has_none_left():
    """It ended in silence: nothing printed says so. Of a rank that has another thread, nothing is known."""
    stack = Record(source="stack")
    fills = Waiting(
        kind="thread", record=stack, op="put", thread="Thread-1 (fill)", file="feed.py", line=7, function="fill"
    )
    waits = Waiting(kind="thread", record=stack, op="get", words=ALONE)
    others = [rank(0, op="all_reduce", beside=(fills,)), rank(2, op="all_reduce", beside=(fills,))]
    found = with_gone_threads(absent(1, waiting=(0, 2)), [*others, rank(1, waiting=waits)])

    assert found.summary.endswith("; ranks 0,2 have a thread Thread-1 (fill), rank 1 has none of that name.")
    assert "Ranks 0,2 are at feed.py:7 in fill: there is their thread Thread-1 (fill)." == found.evidence[0]
    silent = msgspec.structs.replace(waits, words="")
    assert absent(1, waiting=(0, 2)) == with_gone_threads(absent(1, waiting=(0, 2)), [*others, rank(1, waiting=silent)])
    assert absent(1) == with_gone_threads(absent(1), [rank(0, op="all_reduce"), rank(1, waiting=waits)])


@pytest.mark.parametrize(("tag", "kind"), [(7, "replaced"), (None, "not_understood")])
def test_a_send_and_a_receive_that_never_meet_are_no_fault_of_the_links(tag, kind):
    """The recorder keeps neither; the stacks from inside have the tags."""
    states = [
        msgspec.structs.replace(rank(n, world_size=2), pending=Operation(op=op, group="0", peer=1 - n, tag=t))
        for n, op, t in ((0, "send", tag and 3), (1, "recv", tag))
    ]
    found = analyse_records(None, states)[0].verdict

    assert (kind, (), (0, 1)) == (found.kind, found.culprits, found.waiting)
    assert ("rank 1 is in recv with tag 7" in found.summary) is bool(tag)
    assert "not at the program" not in found.summary
