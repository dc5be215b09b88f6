"""Cause before victim: how ranks ended is read from records, launchers and kernel; who ended first is not the cause."""

import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtdebug.live.agent.exit_hooks import primary
from dtdebug.live.job.first_death import Ends, ends, settle
from dtdebug.live.probe import processes
from dtdebug.live.probe.liveness import Death, Deaths, end, living, zombie_status
from dtdebug_taxonomy.logs import exits
from dtdebug_taxonomy.model.claims import Claim, Record, distinct
from dtdebug_taxonomy.model.rank_ranges import shorten_text
from dtdebug_taxonomy.model.ranks import PROCESS, CallSite, CollectiveRef, Frame, RankState, Verdict
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.presentation.case_json import Case, contract
from dtdebug_taxonomy.stacks.frames import call_site
from dtdebug_taxonomy.verdicts import from_log

LOST = "RuntimeError: [pair.cc:553] Connection closed by peer [127.0.0.1]:1"
LATE = "RuntimeError: [unbound_buffer.cc:78] Timed out waiting 10000ms for recv operation to complete"

TORCHRUN = """
E1121 14:27:43.927000 1849 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1) local_rank: 1 (pid: 11) of binary: /usr/bin/python3
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-21_14:27:43
  host      : localhost
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 10)  (SIGTERM)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 10
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-21_14:27:43
  host      : localhost
  rank      : 1 (local_rank: 1)
  exitcode  : 1 (pid: 11)
  error_file: <N/A>
============================================================
"""  # noqa: E501


def ranks(*exceptions, **more):
    """A state for each exception; an empty one is a rank without."""
    return [RankState(rank=n, pid=10 + n, exception=e, **more) for n, e in enumerate(exceptions)]


def told(text):
    """What a launcher's text says of each rank: (rank, code, signal)."""
    return [(e.rank, e.code, e.signal) for e in exits.exits_in(text).exits]


def test_torchruns_summary_is_read():
    """Rank, code or signal, and which rank it calls the root cause."""
    said = exits.exits_in(TORCHRUN)

    assert [(None, 1, ""), (0, None, "SIGTERM"), (1, 1, "")] == told(TORCHRUN)
    assert 1 == said.named


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "mpirun noticed that process rank 1 with PID 0 on node h exited on signal 9 (Killed).",
            [(1, None, "SIGKILL")],
        ),
        ("prterun noticed that process rank 3 with PID 7 on node h exited on signal 11", [(3, None, "SIGSEGV")]),
        ("  Process name: [[1234,1],2]\n  Exit code:    7", [(2, 7, "")]),
        ("  Process name: [prterun-host-99@1,0]\n  Exit code:    3", [(0, 3, "")]),
        ("srun: error: node1: task 3: Exited with exit code 1", [(None, 1, "")]),
        ("srun: error: node1: tasks 0-1,4: Killed", [(r, None, "SIGKILL") for r in (0, 1, 4)]),
        ("srun: error: node1: task 1: Segmentation fault (core dumped)", [(None, None, "SIGSEGV")]),
        ("srun: error: node1: task 0: Out Of Memory", [(None, None, "SIGKILL")]),
        ("ProcessExitedException: process 1 terminated with signal SIGKILL", [(1, None, "SIGKILL")]),
        ("ProcessExitedException: process 0 terminated with exit code 3", [(0, 3, "")]),
        ("train.sh: line 3:  1653 Killed                  python train.py", [(None, None, "SIGKILL")]),
        ("Process 2 exit with status code 5.", [(2, 5, "")]),
        ("['python', '-u', 'train.py', '--local_rank=1'] exits with return code = -9", [(None, None, "SIGKILL")]),
        ("['python', '-u', 'train.py', '--local_rank=0'] exits with return code = 1", [(0, 1, "")]),
        ("step 1 loss 0.3\nrank 1 is fine\nexit code 0", []),
    ],
)
def test_what_launchers_print_is_read(text, expected):
    """OpenMPI, Slurm, torch.multiprocessing, Horovod, DeepSpeed."""
    assert expected == told(text)


TASK = "srun: error: node1: task 3: Exited with exit code 1"
NCCL = "{0}:4000:4900 [0] NCCL INFO ncclCommInitRank comm 0x55 rank {1} nranks {2} cudaDev 0 - Init COMPLETE"


@pytest.mark.parametrize(
    "shows",
    [
        "3: loading\n2: loading\n1: loading\n3: loading\n0: loading",
        "+ export RANK=$SLURM_PROCID",
        "initialised, world size 4",
        NCCL.format("node1.local", 3, 512),
        "srun: error: node1: task 2: Exited with exit code 1",
    ],
)
def test_a_task_is_a_rank_where_the_output_shows_it(shows):
    """By a prefix, the variable that the program takes, the number of ranks, a rank's host, or a second task there."""
    assert (3, 1, "") in told(f"{shows}\n{TASK}")


@pytest.mark.parametrize(
    "shows",
    [
        "3: [rank24]: loading\n2: [rank16]: loading\n3: loading",
        "3: world size 32\n2: x\n1: x\n3: loading\n0: loading",
        "initialised, world size 32",
        NCCL.format("node1", 24, 32),
        "W1126 15:10:45.428000 1680 torch/distributed/elastic/multiprocessing/api.py:1012] Sending process 1",
    ],
)
def test_a_task_that_starts_ranks_is_none(shows):
    """Nor is one of which that is not known."""
    assert [(None, 1, "")] == told(f"{shows}\n{TASK}")


@pytest.mark.parametrize(
    "prefix", ["[rank3]: ", "[default3]:", "3: ", " 3: ", "[1,3]<stderr>: ", "[3]<stderr>:", "3: [rank3]: "]
)
def test_the_traceback_of_a_rank_is_found_by_its_prefix(prefix):
    """As PyTorch, torchrun --tee, srun -l, mpirun --tag-output and horovodrun print it."""
    text = "".join(
        f"{prefix}{line}\n"
        for line in ("Traceback (most recent call last):", '  File "a.py", line 1', "ValueError: boom")
    )

    assert {3: "ValueError: boom"} == exits.exits_in("3: not a traceback: ValueError: x\n" + text).exceptions


def test_the_traceback_that_spawn_reports_is_its_ranks():
    """It has no prefix: the line above names the process."""
    text = "-- Process 1 terminated with the following error:\nTraceback (most recent call last):\nKeyError: 'loss'\n"

    assert {1: "KeyError: 'loss'"} == exits.exits_in(text).exceptions


def test_a_rank_that_ended_without_last_words_comes_before_its_victims():
    """Nobody saw how; that its program did not end it is known."""
    states = [RankState(rank=0, pid=10, exception=LOST), RankState(rank=1, pid=11, alive=False)]
    ended = ends("", states, [Death(pid=11, time=1.0)], silent=[11])

    assert (1,) == ended.roots
    assert "Rank 1 ended without last words" in settle(None, ended).summary


def test_a_rank_that_raised_comes_before_those_that_lost_it():
    """Whatever the clocks say: the victims ended first."""
    deaths = [Death(pid=10, time=1.0, status=1), Death(pid=12, time=1.1, status=1), Death(pid=11, time=9.0, status=1)]
    ended = ends("", ranks(LOST, "ValueError: boom", LATE), deaths)

    assert (1,) == ended.roots
    assert [False] * 3 == [s.alive for s in ended.states]


def test_torchruns_root_cause_is_corrected_where_it_is_a_victim():
    """It names whom it saw end first."""
    ended = ends(TORCHRUN, ranks("ValueError: boom", LATE))

    assert (0,) == ended.roots
    assert [f"torchrun names rank 1 (first observed); it is a victim: raised {LATE}"] == list(ended.notes)


def test_torchruns_root_cause_stands_where_it_is_right():
    """Then there is nothing to say."""
    ended = ends(TORCHRUN, ranks(LOST, "ValueError: boom"))

    assert ((1,), ()) == (ended.roots, ended.notes)


def test_a_killed_rank_comes_before_its_victims():
    """Those whom the launcher ended with SIGTERM are none."""
    deaths = [
        Death(pid=10, time=3.0, status=1),
        Death(pid=11, time=1.0, status=-9),
        Death(pid=12, time=4.0, status=-15),
    ]

    assert (1,) == ends("", ranks(LOST, "", ""), deaths).roots


def test_a_launchers_sigkill_is_no_cause():
    """It ends those who did not listen to SIGTERM, after the first failure."""
    deaths = [Death(pid=10, time=1.0, status=1), Death(pid=11, time=31.0, status=-9)]

    assert (0,) == ends("", ranks("KeyError: 'loss'", ""), deaths).roots


def test_the_same_is_read_from_the_times_of_torchruns_report():
    """It kills 30 s after the first end; one that was killed at once may be why the others ended."""
    text = TORCHRUN.replace("-15 (pid: 10)  (SIGTERM)", "-9 (pid: 10)")
    verdicts = [
        from_log.verdict_of_log(Snapshot(output=text.replace("_14:27:43", f"_14:{later}", 1)))
        for later in ("28:14", "27:44")
    ]

    assert [(1,), (0,)] == [v.culprits for v in verdicts if v is not None]


def test_a_rank_killed_before_another_raised_is_a_cause_too():
    """What the second raised may be a consequence that nobody knows."""
    deaths = [Death(pid=10, time=5.0, status=1), Death(pid=11, time=1.0, status=-9)]

    assert (0, 1) == ends("", ranks("KeyError: 'loss'", ""), deaths).roots


def test_an_exit_code_without_an_exception_is_a_cause():
    """As of sys.exit(7)."""
    ended = ends("", ranks(LOST, ""), [Death(pid=11, time=1.0, status=7)])

    assert (1,) == ended.roots
    assert "Rank 1 ended with exit status 7" in settle(None, ended).summary


def test_a_program_that_is_not_there_is_said_with_its_name():
    """Python says so itself, on each rank, and raises nothing."""
    words = "can't open file '/job/trian.py': [Errno 2] No such file or directory"
    told = TORCHRUN.replace("exitcode  : 1 (pid: 11)", "exitcode  : 2 (pid: 11)").replace(
        "exitcode: 1)", "exitcode: 2)"
    )
    found = settle(None, ends(f"/env/bin/python3.11: {words}\n{told}", ranks("", "")))
    read = from_log.verdict_of_log(Snapshot(output=f"python: {words}\n{told}"))

    assert f"Rank 1 ended with exit status 2: {words}" in found.summary
    assert f"Rank 1 ended with exit code 2: {words}." == read.summary


def test_what_a_worker_raised_is_said_and_not_that_its_parent_raises_it_again():
    """As torch's loader does: the message holds the worker's traceback."""
    message = """Caught KeyError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/job/data.py", line 26, in __getitem__
    return self.boxes[i]
KeyError: 37
"""
    text, frames = primary(RuntimeError(message))

    assert ("KeyError: 37", "/job/data.py", 26) == (text, frames[-1].file, frames[-1].line)
    group = ExceptionGroup("tasks", [ValueError("shard 17"), KeyError("a")])
    assert "ValueError: shard 17" == primary(group)[0]
    assert "RuntimeError: no Traceback here" == primary(RuntimeError("no Traceback here"))[0]


def test_ranks_that_only_waited_have_no_root_among_them():
    """The records must tell who was missing."""
    assert () == ends("", ranks(LATE, LATE, LOST)).roots


def test_gloos_abort_is_no_cause_by_itself():
    """It aborts ranks whose peers sent another size: the records tell which is wrong."""
    text = "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n"
    deaths = [Death(pid=10, time=1.0, status=-6)]

    assert () == ends(text, ranks("", LOST), deaths).roots
    assert (0,) == ends("", ranks("", LOST), deaths).roots


def test_the_kernels_killing_is_said():
    """By process where its log can be read, else by the counter of the control group."""
    deaths = [Death(pid=11, time=1.0, status=-9)]

    logged = ends("", ranks(LOST, ""), deaths, starved={11})
    counted = ends("", ranks(LOST, ""), deaths, starvations=2)
    for ended in (logged, counted):
        verdict = settle(None, ended)
        assert verdict.summary.startswith("Rank 1 was killed by the kernel: the memory ran out")
        assert "kernel" == verdict.claims[0].record.source
    assert "killed 2 process(es)" in counted.notes[0]
    assert () == ends("", ranks(LOST, ""), deaths).notes
    assert settle(None, ends("", ranks(LOST, ""), deaths)).summary.startswith("Rank 1 was ended by SIGKILL")


def test_ranks_that_only_the_output_knows_are_counted():
    """Nothing was armed: the launcher's text is all there is."""
    text = "[rank1]: Traceback (most recent call last):\n[rank1]: ValueError: boom\n" + TORCHRUN
    ended = ends(text, [])

    assert [(0, "", "SIGTERM"), (1, "ValueError: boom", "")] == [(s.rank, s.exception, s.signal) for s in ended.states]
    assert (1,) == ended.roots


def test_the_place_is_in_the_users_own_code_if_it_has_any_there():
    """The innermost frame of the user's, else the library's; nothing where no stack is known."""
    stack = (Frame("/a/train.py", 3, "main"), Frame("/x/site-packages/torch/y.py", 9, "wait"))

    assert CallSite(1, "/a/train.py", 3, "main") == call_site(1, stack)
    assert CallSite(1, "/x/site-packages/torch/y.py", 9, "wait") == call_site(1, stack[1:])
    assert call_site(1, ()) is None


def test_the_sentence_of_the_end_joins_what_the_records_know():
    """Collective and waiting ranks stay."""
    known = Verdict(kind="dead", culprits=(1,), waiting=(0,), collective=CollectiveRef("all_reduce", 5), summary="died")
    verdict = settle(known, ends("", ranks(LOST, "ValueError: boom")))

    assert verdict.summary.startswith("Rank 1 raised ValueError: boom")
    assert (CollectiveRef("all_reduce", 5), (0,)) == (verdict.collective, verdict.waiting)


def test_a_rank_that_called_something_else_is_the_cause_of_its_own_end():
    """The mismatch says more than the exception that followed."""
    known = Verdict(kind="wrong_dtype", culprits=(1,), summary="another type")

    assert known is settle(known, ends("", ranks(LOST, "RuntimeError: invalid type of elements")))


def test_what_was_found_while_all_stood_still_holds_after_the_time_out():
    """Unless a rank turns out to have failed by itself."""
    hang = Verdict(kind="skipped", culprits=(2,))
    nothing = Verdict(kind="none")

    assert hang is settle(nothing, ends("", ranks(LATE, LATE)), hang)
    assert (1,) == settle(nothing, ends("", ranks(LATE, "ValueError: boom")), hang).culprits
    assert nothing is settle(nothing, ends("", ranks(LATE, LATE)))
    assert settle(None, Ends([], (), ())) is None


def test_what_was_measured_while_no_rank_made_progress_holds_however_the_job_ends():
    """By a time-out, a signal or the launcher; a rank that failed by itself since then says more."""
    hang = Verdict(kind="not_arrived", culprits=(1,), waiting=(0,))
    records = Verdict(kind="fabric", waiting=(0, 1))
    killed = [Death(pid=10, time=1.0, status=-9)]
    for ended in (
        ends("", ranks(LATE, LATE)),
        ends("", ranks("", LOST), killed),
        ends("", ranks("KeyboardInterrupt", "KeyboardInterrupt")),
        ends("", ranks("", "", signal="SIGTERM")),
    ):
        assert hang is settle(records, ended, hang, measured=True)
    own = settle(records, ends("", ranks(LATE, "ValueError: x")), hang, measured=True)
    assert ("dead", (1,)) == (own.kind, own.culprits)
    assert (0,) == settle(records, ends("", ranks("", LOST), killed, starved={10}), hang, measured=True).culprits


def test_the_status_of_a_zombie_is_read(tmp_path):
    """Before its parent reaps it; a living process has none."""
    import subprocess
    import sys

    with subprocess.Popen([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]) as child:
        until = time.monotonic() + 30
        while (status := zombie_status(child.pid)) is None and time.monotonic() < until:
            time.sleep(0.01)
    assert -9 == status
    assert zombie_status(child.pid) is None


def test_a_death_is_seen_and_raises_the_alarm(tmp_path):
    """Unless the rank succeeded."""
    import subprocess
    import sys

    from dtdebug.storage.run_folder import RunFolder

    for code, alarm in ((0, False), (3, True)):
        deaths = Deaths(RunFolder.make(tmp_path))
        command = [sys.executable, "-c", f"import sys; sys.stdin.read(); raise SystemExit({code})"]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as child:
            deaths.know([RankState(rank=0, pid=child.pid)])
            deaths.start()
            child.stdin.close()
            until = time.monotonic() + 30
            while not deaths.all_deaths() and time.monotonic() < until:
                time.sleep(0.01)
            seen = deaths.stop()
        assert [(child.pid, code)] == [(d.pid, d.status) for d in seen]
        assert alarm == deaths.alarm.is_set()


def test_a_tree_of_processes_is_ended_whole():
    """Also those that do not listen to SIGTERM and have a session of their own."""
    import subprocess
    import sys

    code = (
        "import signal, subprocess, sys; signal.signal(15, signal.SIG_IGN);"
        "p = subprocess.Popen(['sleep', '60'], start_new_session=True); print(p.pid, flush=True); p.wait()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        below = int(child.stdout.readline())
        end([child.pid], patience=0.5)
        assert [] == living([child.pid, below])


def test_memory_is_read_or_unknown():
    """Nothing was killed meanwhile."""
    count, pids = processes.MemoryKills().count_kills()

    assert count in (None, 0)
    assert frozenset() == pids


@given(
    st.text(max_size=300)
    | st.lists(st.sampled_from([*TORCHRUN.splitlines(), "[rank1]: ValueError: x", "1: "])).map("\n".join)
)
def test_no_text_breaks_the_reading(text):
    """Whatever was printed."""
    assert isinstance(ends(text, ranks("", "")), Ends)


@pytest.mark.parametrize(
    "piece", ["3: ", "[rank1]: ", "rank : 1 ", "srun: error: a: tasks 1-", "--local_rank=1 ", "gloo ", "A" * 50]
)
def test_reading_takes_linear_time(piece):
    """Twice the text, about twice the time: with more a line would never end."""
    text = piece * (2_000_000 // len(piece))
    ends(text, ranks(text[:2_000], ""))


def test_a_wait_is_said_once_and_words_are_not_cut():
    """Of two claims on one wait the one with its number stays."""
    record = Record(source="dump", rank=0)
    wait = Claim(what="waits", ranks=(0,), record=record, op="broadcast", seq=7)
    lost = msgspec.structs.replace(wait, seq=None)

    assert (wait,) == distinct((lost, wait, wait))
    assert shorten_text("one two three", 10) == "one..."
    assert shorten_text("one two", 10) == "one two"


def test_the_place_of_a_rank_that_left_is_that_of_the_call_it_left_out():
    """Where it was last says nothing of what the others wait in."""
    site = CallSite(0, "/job/fit.py", 88, "fit")
    left = Verdict(kind="left", culprits=(1,), waiting=(0,), sites=(site,))

    assert 88 == contract(Case(verdict=left))["verdict"]["where"]["line"]
    dead = msgspec.structs.replace(left, kind="dead")
    assert contract(Case(verdict=dead))["verdict"]["where"] is None


@pytest.mark.parametrize("known", ["rank", "parent"])
def test_what_multiprocessing_prints_of_a_process_is_known_of_its_rank(known):
    """The rank itself, by the name of its process; or the child of one, whose own exception says no more than that."""
    trace = 'Process Worker-2:\nTraceback (most recent call last):\n  File "/job/a.py", line 7, in scale\n    x\n'
    output = f"{trace}ValueError: lr 0.0\n"
    failed = RankState(rank=1, pid=11, exit_code=1, alive=False)
    if known == "rank":
        failed = msgspec.structs.replace(failed, facts={PROCESS: "Worker-2"})
    else:
        frame = '[rank1]:   File "/usr/lib/python3.11/multiprocessing/connection.py", line 9, in recv\n'
        output += f"[rank1]: Traceback (most recent call last):\n{frame}[rank1]: EOFError\n"
        stack = (Frame("/usr/lib/python3.11/multiprocessing/connection.py", 9, "recv"),)
        failed = msgspec.structs.replace(failed, exception="EOFError", stack=stack)
    found = ends(output, [RankState(rank=0, pid=10, exception=LOST, alive=False), failed])

    assert (1,) == found.roots
    assert found.states[1].exception.startswith("ValueError: lr 0.0")
    assert ("/job/a.py", 7) == (found.states[1].stack[-1].file, found.states[1].stack[-1].line)


def test_an_end_cites_the_line_of_the_output_that_says_it():
    """Of an exit status the row of torchrun's report, of an exception its last line, if it has the same words."""
    rows = TORCHRUN.split("\n")
    status = settle(None, ends(TORCHRUN, ranks("", ""))).claims[0].record
    assert ("output", "exit status 1") == (status.source, status.words)
    assert rows[status.line - 1].startswith("  exitcode  : 1 ")

    printed = (
        '[rank1]: Traceback (most recent call last):\n[rank1]:   File "/job/a.py", line 3, in f\n[rank1]: KeyError: 7'
    )
    raised = settle(None, ends(f"{printed}{TORCHRUN}", ranks("", "KeyError: 7"))).claims[0].record
    assert ("output", 3) == (raised.source, raised.line)
    other = settle(None, ends(f"{printed}{TORCHRUN}", ranks("", "KeyError: 8"))).claims[0].record
    assert ("exception", 0) == (other.source, other.line)
