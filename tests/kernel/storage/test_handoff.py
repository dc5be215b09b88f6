"""A failed run or cell is kept for editors with its lines, and forgotten when it succeeds."""

import subprocess
import sys
from pathlib import Path

import pytest

from dtdebug.storage import editor_marks, state_dir
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.ranks import CallSite, Frame, Verdict
from dtdebug_taxonomy.model.snapshot import ExceptionInfo, Snapshot
from dtdebug_taxonomy.presentation.editor_marks import FILE, MOST, Failures, failure_of

HANG = Verdict(
    kind="skipped",
    culprits=(3,),
    waiting=(0, 1, 2),
    sites=(
        CallSite(0, "/job/train.py", 40, "train"),
        CallSite(1, "/job/train.py", 40, "train"),
        CallSite(3, "/job/train.py", 44, "train"),
        CallSite(2, "/x/site-packages/torch/distributed/distributed_c10d.py", 7, "all_reduce"),
    ),
    summary="Rank 3 skipped all_reduce #41 of dp.",
)
RAISED = ExceptionInfo(
    type="torch.distributed.DistBackendError",
    message="NCCL error in: unhandled system error",
    frames=(
        Frame("/job/train.py", 9, "main", "train()"),
        Frame("/job/train.py", 5, "train", "dist.all_reduce(x)"),
        Frame("/x/site-packages/torch/distributed/distributed_c10d.py", 3000, "all_reduce", "work.wait()"),
    ),
)


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))


def made(snapshot, job="job"):
    return failure_of(snapshot, diagnose(load(), snapshot), job=job, time=1.0)


def kept():
    return state_dir.load(FILE, Failures).failures


def test_a_hang_points_at_the_culprit_first_and_at_those_who_wait():
    failure = made(Snapshot(verdict=HANG))

    assert [
        ("/job/train.py", 44, "rank 3 stops here: Rank 3 skipped all_reduce #41 of dp."),
        ("/job/train.py", 40, "ranks 0-1 wait here"),
    ] == [(m.file, m.line, m.says) for m in failure.marks]


def test_an_exception_points_at_the_innermost_line_of_the_user():
    failure = made(Snapshot(exception=RAISED))

    assert [(5, "raised DistBackendError here"), (9, "called from here")] == [(m.line, m.says) for m in failure.marks]
    assert "dist.all_reduce(x)" == failure.marks[0].words
    assert failure.message.startswith("DistBackendError: NCCL error in")


def test_a_printed_traceback_is_enough():
    output = (
        '[rank1]: Traceback (most recent call last):\n[rank1]:   File "/job/t.py", line 7, in <module>\n'
        "[rank1]:     dist.barrier()\n[rank1]: torch.distributed.DistBackendError: NCCL error in: x.cpp:1, "
        "unhandled system error, NCCL version 2.18.1\nncclSystemError: System call (e.g. socket) failed.\n"
    )

    failure = made(Snapshot(output=output))

    assert [("/job/t.py", 7, "dist.barrier()")] == [(m.file, m.line, m.words) for m in failure.marks]


def test_what_is_not_recognised_or_points_nowhere_is_not_handed_on():
    assert made(Snapshot(exception=ExceptionInfo(type="ValueError", message="x"))) is None
    assert made(Snapshot(output="torch.distributed.DistBackendError: NCCL error in: x")) is None


def test_a_success_of_the_same_job_removes_its_failure_alone(tmp_path):
    for job in ("one", "two"):
        snapshot = Snapshot(exception=RAISED)
        assert editor_marks.keep_failure(snapshot, diagnose(load(), snapshot), job)

    editor_marks.drop_failure("one")
    editor_marks.drop_failure("never failed")

    assert ["two"] == [f.job for f in kept()]
    assert 0o600 == (tmp_path / "state" / FILE).stat().st_mode & 0o777


def test_a_job_has_one_failure_and_the_list_is_bounded():
    failures = Failures()
    for number in range(MOST + 5):
        failures = failures.with_(made(Snapshot(exception=RAISED), job=f"{number}")).with_(
            made(Snapshot(exception=RAISED), job=f"{number}")
        )

    assert MOST == len(failures.failures)
    assert f"{MOST + 4}" == failures.failures[0].job


def test_another_version_of_the_file_is_left_behind():
    state_dir.save(FILE, {"v": 99, "failures": []})
    snapshot = Snapshot(exception=RAISED)

    assert editor_marks.keep_failure(snapshot, diagnose(load(), snapshot), "job")
    assert 1 == len(kept())


def test_a_job_is_known_by_its_program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert str(tmp_path / "t.py") == editor_marks.job_of(["torchrun", "--nproc-per-node", "2", "t.py"])
    assert "python -m train" == editor_marks.job_of(["python", "-m", "train"])


@pytest.mark.ranks
def test_a_real_run_that_fails_is_handed_on_until_it_succeeds(tmp_path):
    script = tmp_path / "t.py"
    script.write_text(
        "import torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "x = torch.ones(2 if dist.get_rank() else 3)\n"
        "if not __import__('os').path.exists('well'):\n"
        "    raise ValueError('NCCL error, unhandled system error') if dist.get_rank() else dist.barrier()\n"
    )
    command = [sys.executable, "-m", "dtdebug", "run", "--quiet", "--", sys.executable, "-m", "torch.distributed.run"]
    command += ["--standalone", "--nproc-per-node", "2", "t.py"]

    first = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=90, check=False)
    (failure,) = kept()
    Path(tmp_path / "well").touch()
    second = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=90, check=False)

    assert (True, 0) == (first.returncode != 0, second.returncode), second.stderr
    assert (str(script), 5) == (failure.marks[0].file, failure.marks[0].line)
    assert () == kept()
