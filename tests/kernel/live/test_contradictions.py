"""Statements that a record contradicts, met in programs with unforeseen faults; each as the records it came from."""

import os
import pickle

import msgspec
import pytest

from dtdebug.cli import main
from dtdebug.live.job.conclude import conclude, load_case
from dtdebug.live.job.first_death import ends
from dtdebug.live.job.observe import LiveRanks, merge_states
from dtdebug.live.job.reconcile import TwoLooks, reconcile_verdict
from dtdebug.recorded.flight_recorder import analyse
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.logs import log as logs
from dtdebug_taxonomy.model.account import Account, Place
from dtdebug_taxonomy.model.claims import Record
from dtdebug_taxonomy.model.ranks import FINISHED, Frame, Group, Operation, RankState, Verdict
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.model.waiting import Waiting
from dtdebug_taxonomy.presentation.case_json import Case
from dtdebug_taxonomy.stacks.wait_operations import operation
from dtdebug_taxonomy.verdicts.from_log import verdict_of_log

NOW = 1_760_000_000.0
LOST = "RuntimeError: [pair.cc:553] Connection closed by peer [127.0.0.1]:1"
LIB = "/x/site-packages/torch"
ASLEEP = Waiting(kind="sleep", op="time.sleep", record=Record(source="system", path="/proc/101/syscall"))


@pytest.fixture(autouse=True)
def _state(monkeypatch, tmp_path):
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))


def place(line, function="main"):
    """A line of the user's program."""
    return (Frame("/job/train.py", line, function),)


def rank(n, world, *, op="", stack=(), **more):
    """A rank that has begun an operation or not."""
    pending = Operation(op=op, group="0", seq=6, since=NOW - 5) if op and op != "recv" else None
    if op == "recv":
        pending = Operation(op=op, group="0", peer=1)
    group = Group(name="0", ranks=tuple(range(world)), enqueued=6 if op else 5, completed=5)
    known = {"alive": True, "pid": 100 + n, "initialized": True, "time": NOW, "groups": (group,), **more}
    return RankState(rank=n, world_size=world, pending=pending, stack=stack, **known)


def test_a_rank_that_moved_and_sleeps_now_is_not_said_to_compute():
    """The look at its counters and the one at its system call are of two moments."""
    states = [rank(0, 2, op="barrier", stack=place(19)), rank(1, 2, stack=place(18), waiting=ASLEEP)]
    late = Verdict(kind="not_arrived", culprits=(1,), waiting=(0,), confidence=0.9, summary="Rank 1 never arrived.")

    for moving in (None, False):
        found = reconcile_verdict(late, TwoLooks(states, {0: "stuck", 1: "slow"}, moving))
        said = " ".join((found.summary, *found.evidence))
        assert "comput" not in said
        assert "uses the CPU" not in said
        assert "counters or stacks changed" in said


def test_a_dump_of_an_attempt_before_is_not_compared_with_the_ranks_of_this_one(tmp_path):
    """A rank that was ended before it came to its first collective did not call those in an old file of its name."""
    steps = [("all_reduce", 8, 3)] * 3
    program = tmp_path / "train.py"
    folder = written(tmp_path / "f", {0: dump(steps, program), 1: dump(steps[:2], program)})
    os.utime(folder / "rank_0", (1_000.0, 1_000.0))

    found = analyse(folder, states=[rank(0, 2, stack=place(3)), rank(1, 2, stack=place(4))], since=999.5)
    assert found.ranks == (1,)
    assert "rank 0: its dump is of an attempt before, and was left out" in found.notes
    assert analyse(folder, states=[rank(0, 2), rank(1, 2)]).ranks == (0, 1)


def test_the_answer_of_ranks_that_stood_stays_when_their_job_is_ended(tmp_path):
    """Ended ranks show less, and the launcher's last lines say nothing of the hang: unless one failed by itself."""
    (folder := RunFolder(tmp_path)).ranks.mkdir()
    stood = (rank(0, 2, op="all_reduce", stack=place(9), pid=7), rank(1, 2, stack=place(8), pid=8))
    hang = conclude(folder, LiveRanks(states=stood, progress={0: "stuck", 1: "stuck"}, seconds=60.0), moving=False)
    told = msgspec.structs.replace(
        hang, accounts=(Account(place=Place(file="/job/a.py", line=8)),), notes=("as it stood",)
    )
    ended = tuple(msgspec.structs.replace(s, alive=False, signal="SIGTERM") for s in stood)
    seen = LiveRanks(states=ended, verdict=hang.verdict, measured=True)

    found = conclude(folder, seen, standing=told)
    assert (found.accounts, found.diagnosis, found.verdict) == (told.accounts, hang.diagnosis, hang.verdict)
    assert found.notes[0] == "as it stood"
    assert {s.alive for s in found.ranks} == {False}
    assert load_case(folder) == found
    failed = msgspec.structs.replace(ended[1], signal="", exit_code=1, exception="KeyError: 'x'", time=2e9)
    assert conclude(folder, msgspec.structs.replace(seen, states=(ended[0], failed)), standing=told).accounts == ()


def test_what_a_rank_was_in_is_over_once_it_is_elsewhere():
    """An earlier operation does not stand beside a later place."""
    early = rank(1, 2, op="all_reduce", stack=place(18), native=("c10d::Work::wait",))
    late = rank(1, 2, stack=place(30), waiting=ASLEEP)

    (state,) = merge_states([early], [late])
    assert (state.pending, state.native, state.waiting) == (None, (), ASLEEP)
    (same,) = merge_states([early], [rank(1, 2, stack=place(18))])
    assert same.pending == early.pending


def test_ranks_at_work_have_no_symptom():
    """Where a healthy job imports, and what checks see there, is no failure."""
    stack = (*place(3), Frame("<frozen importlib._bootstrap>", 100, "_find_and_load"))
    seen = LiveRanks(states=(rank(0, 2, stack=stack), rank(1, 2, stack=stack)), progress={0: "busy", 1: "busy"})

    found = conclude(None, seen)
    assert found.verdict.kind == "none"
    assert found.diagnosis is not None
    assert not found.diagnosis.recognised


def test_what_ended_a_program_that_had_finished_is_not_its_failure(tmp_path):
    """The launcher ends a rank that shuts down, because its peer has failed without it."""
    failed = rank(0, 2, op="barrier", stack=place(20), alive=False, exit_code=1, exception=LOST)
    done = rank(1, 2, alive=False, signal="SIGTERM", facts={FINISHED: "no failure"})

    found = analyse(tmp_path, states=[failed, done]).verdict
    assert (found.kind, found.culprits) == ("left", (1,))
    assert "exit status 0" not in " ".join((found.summary, *found.evidence))


def test_the_one_that_goes_on_where_most_have_finished_made_an_extra_call(tmp_path):
    """Three of four have not left out what only the fourth calls; of two nobody knows."""
    done = [rank(n, 4, alive=False, exit_code=0) for n in range(3)]
    last = rank(3, 4, op="barrier", stack=place(40), alive=False, exit_code=1, exception=LOST)

    found = analyse(tmp_path, states=[*done, last]).verdict
    assert (found.kind, found.culprits, found.sites[0].line) == ("extra", (3,), 40)
    assert found.alternatives[0].culprits == (0, 1, 2)
    two = analyse(tmp_path, states=[rank(0, 2, alive=False, exit_code=0), of_two(last)]).verdict
    assert (two.kind, two.culprits) == ("left", (0,))


def of_two(state):
    """The same as the second of two ranks."""
    return rank(1, 2, op="barrier", stack=state.stack, alive=False, exit_code=1, exception=state.exception)


def test_a_bare_exit_status_is_explained_by_another_ranks_own_exception():
    """1 is what any exception ends with; other numbers are the program's own, if they came first."""
    own = RankState(rank=1, pid=11, exception="FileNotFoundError: /nope", alive=False)

    def roots(code):
        return ends("", [RankState(rank=0, pid=10, exit_code=code, alive=False), own]).roots

    assert roots(1) == (1,)
    assert roots(7) == (0, 1)
    assert ends("", [RankState(rank=0, pid=10, exit_code=1, alive=False), rank(1, 2)]).roots == (0,)


def test_a_rank_before_the_collective_in_the_source_has_not_passed_it_by(tmp_path):
    """It waits for a message of a rank that is there already; behind it, it has."""
    there = [rank(n, 3, op="barrier", stack=place(26)) for n in (0, 1)]

    found = analyse(tmp_path, states=[*there, rank(2, 3, op="recv", stack=place(25))], moving=False).verdict
    assert (found.culprits, found.waiting) == ((), (0, 1, 2))
    assert {a.culprits for a in found.alternatives} == {(1,), (2,)}
    behind = analyse(tmp_path, states=[*there, rank(2, 3, op="recv", stack=place(27))], moving=False).verdict
    assert (behind.kind, behind.culprits) == ("skipped", (2,))


def dump(calls, program):
    """A dump of calls (operation, elements, line of the program), the last of them open."""
    entries = [
        {
            "frames": [{"name": "main", "filename": str(program), "line": line}], "record_id": n, "pg_id": 0,
            "process_group": ("0", "default_pg"), "collective_seq_id": n + 1, "p2p_seq_id": 0, "op_id": n + 1,
            "profiling_name": f"gloo:{op}", "time_created_ns": int(NOW * 1e9) + n, "input_sizes": [[size]],
            "input_dtypes": ["Float"], "output_sizes": [[size]], "output_dtypes": ["Float"],
            "state": "completed" if n + 1 < len(calls) else "scheduled", "retired": n + 1 < len(calls),
            "timeout_ms": 300_000, "is_p2p": False, "time_discovered_started_ns": None,
            "time_discovered_completed_ns": None,
        }
        for n, (op, size, line) in enumerate(calls)
    ]  # fmt: skip
    status = {"last_enqueued_collective": len(calls), "last_started_collective": -1,
              "last_completed_collective": len(calls) - 1}  # fmt: skip
    group = {"name": "", "desc": "", "ranks": "[0, 1, 2]"}
    return {"version": "2.10", "pg_config": {"": group}, "pg_status": {"0": status}, "entries": entries}


def written(folder, dumps, when=NOW + 100):
    """The folder of these dumps, written at that time."""
    folder.mkdir(parents=True, exist_ok=True)
    for n, content in dumps.items():
        (folder / f"rank_{n}").write_bytes(pickle.dumps(content, protocol=2))
        os.utime(folder / f"rank_{n}", (when, when))
    return folder


def test_a_call_behind_that_of_the_others_in_the_source_has_skipped_theirs(tmp_path):
    """Unless the rank has been at the others' place before: then nobody knows what it left out."""
    program = tmp_path / "train.py"
    program.write_text("def main():\n    step()\n    if rank != 2:\n        gather()\n    reduce()\n")
    steps = [("all_reduce", 8, 2)] * 3
    all_but_one = dict.fromkeys((0, 1), dump([*steps, ("all_gather", 1, 4)], program))

    skipped = written(tmp_path / "a", {**all_but_one, 2: dump([*steps, ("all_reduce", 3, 5)], program)})
    found = analyse(skipped).verdict
    assert (found.kind, found.culprits, found.collective.op) == ("skipped", (2,), "all_gather")
    before = written(tmp_path / "b", {**all_but_one, 2: dump([*steps, ("all_reduce", 3, 3)], program)})
    assert analyse(before).verdict.kind == "extra"


def test_a_dump_from_before_all_were_asked_is_left_out(tmp_path):
    """A stopped process writes none: where an earlier one shows it, it no longer is."""
    program = tmp_path / "train.py"
    steps = [("broadcast", 8, 2), ("all_reduce", 8, 3), ("all_reduce", 8, 3)]
    folder = written(tmp_path / "f", dict.fromkeys((0, 2), dump(steps, program)))
    written(folder, {1: dump(steps[:1], program)}, when=NOW + 50)
    stopped = Waiting(kind="stopped", op="a signal", record=Record(source="system", path="/proc/101/stat"))
    ok = {"dump": "ok"}
    states = [rank(n, 3, op="all_reduce", stack=place(3), roads=ok) for n in (0, 2)]
    states.append(rank(1, 3, stack=place(19), waiting=stopped, roads={"dump": "none came"}))

    found = analyse(folder, states=states, moving=False)
    assert (found.verdict.kind, found.verdict.culprits) == ("not_arrived", (1,))
    assert "stopped by a signal" in found.verdict.summary
    assert any("rank 1: its dump is from before" in note for note in found.notes)


def test_dumps_of_a_run_are_answered_with_what_was_found_of_the_run(tmp_path, capsys):
    """Alone they tell less: a rank without a dump is not dead for that."""
    run = RunFolder(tmp_path)
    run.ranks.mkdir()
    written(run.flight, {0: dump([("all_reduce", 8, 2)], tmp_path / "train.py")})
    verdict = Verdict(kind="dead", culprits=(1,), confidence=0.95, summary="Rank 1 raised KeyError: 'x'.")

    assert main.main(["flight", str(run.flight)]) == 1
    assert "KeyError" not in capsys.readouterr().out
    saved(run, Case(verdict=verdict))
    assert main.main(["flight", str(run.flight)]) == 1
    out = capsys.readouterr().out
    assert "Rank 1 raised KeyError: 'x'." in out
    assert "Note this is what was found of the run" in " ".join(out.split())


def saved(run, case):
    """A run that has ended, with its answer."""
    import msgspec

    from dtdebug.storage.run_folder import Run

    (run.path / "run.json").write_bytes(msgspec.json.encode(Run(command=("x",), started=1.0, finished=2.0, status=1)))
    run.verdict.write_bytes(msgspec.json.encode(case))


def test_classes_of_functions_and_groups_of_the_program_are_its_own_errors():
    """Their names hold what names of modules do not."""
    head = '[rank1]:   File "/job/train.py", line 20, in main\n[rank1]:     raise {0}\n[rank1]: '
    for last in ("main.<locals>.Odd: <exception str() failed>", "ExceptionGroup: two shards failed (2 sub-exceptions)"):
        text = f"[rank1]: Traceback (most recent call last):\n{head.format('it')}{last}\n"
        (raised,) = logs.read_output(Snapshot(output=text)).events.raised
        assert (raised.text, raised.rank, logs.role(raised)) == (last, 1, "own")


def test_the_check_of_parameters_when_ddp_begins_is_a_collective():
    """It waits in C++, where no Python function of an operation is."""
    inside = Frame(f"{LIB}/distributed/utils.py", 286, "_verify_param_shape_across_processes")

    assert operation((*place(101), Frame(f"{LIB}/nn/parallel/distributed.py", 9, "__init__"), inside)) == Operation(
        op="all_gather"
    )


def test_a_rank_in_an_empty_queue_holds_up_those_that_communicate():
    """Unless another of its threads communicates: then that is where it waits."""
    empty = Waiting(kind="thread", op="get", record=Record(source="stack"))
    reduce = Waiting(kind="collective", op="all_reduce", record=Record(source="stack"), thread="helper")
    states = [rank(0, 2, op="all_gather", stack=place(101)), rank(1, 2, stack=place(51), waiting=empty)]
    seen = {0: "stuck", 1: "stuck"}

    assert reconcile_verdict(None, TwoLooks(states, seen, moving=False)).culprits == (1,)
    states[1] = rank(1, 2, stack=place(51), waiting=empty, beside=(reduce,))
    assert reconcile_verdict(None, TwoLooks(states, seen, moving=False)).culprits == ()


def test_ranks_that_wait_in_another_group_do_not_call_what_one_has_left_out(tmp_path):
    """A rank that has finished left out a call of its own group; a line of source names a group that no dump has."""
    program = tmp_path / "train.py"
    steps = [("all_reduce", 8, 3)] * 3
    folder = written(tmp_path / "f", {0: dump(steps, program), 2: dump(steps[:2], program)})
    lost = {"alive": False, "exit_code": 1, "exception": LOST}
    states = [
        rank(0, 3, op="all_reduce", stack=place(3), **lost),
        msgspec.structs.replace(
            rank(1, 3, stack=place(4), **lost), pending=Operation(op="all_reduce", group='mesh["dp"]')
        ),
        rank(2, 3, alive=False, exit_code=0),
    ]

    found = analyse(folder, states=states).verdict
    assert (found.kind, found.culprits) == ("left", (2,))
    assert "without calling all_reduce #3 of world, in which rank 0 waits" in found.summary
    assert "rank 1 waits elsewhere" in found.summary


def test_what_ended_ranks_have_printed_is_their_answer_where_no_record_explains_it(tmp_path):
    """`dtdebug diagnose` says the same of the same output."""
    (folder := RunFolder(tmp_path)).ranks.mkdir()
    lost = "successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0."
    raised = {
        0: "RuntimeError: [Rank 0]: Rank 2 failed to pass monitoredBarrier in 6000 ms",
        1: f"RuntimeError: Rank 1 {lost} Please check rank 0 logs for faulty rank.",
    }
    frames = ('  File "/job/a.py", line 7, in main', "    dist.monitored_barrier()",
              f'  File "{LIB}/distributed/distributed_c10d.py", line 5, in monitored_barrier')  # fmt: skip
    folder.output.write_text(
        "".join(
            f"[rank{n}]: {line}\n"
            for n, last in raised.items()
            for line in ("Traceback (most recent call last):", *frames, last)
        )
    )
    states = [rank(n, 3, stack=place(7), alive=False, exit_code=1, exception=text) for n, text in raised.items()]
    found = conclude(folder, LiveRanks(states=(*states, rank(2, 3, alive=False, signal="SIGTERM"))))

    assert (found.verdict.kind, found.verdict.culprits) == ("not_arrived", (2,))
    assert verdict_of_log(Snapshot(output=folder.output.read_text())).summary == found.verdict.summary
