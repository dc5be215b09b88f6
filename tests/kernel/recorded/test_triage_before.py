"""What ranks reported before their scheduler ended the job, and what a launcher says better than a path."""

from pathlib import Path

import pytest

from dtdebug.cli.main import main
from dtdebug.recorded.job_logs import training_steps
from dtdebug.recorded.job_logs.api import read_part
from dtdebug.recorded.job_logs.job_view import Job, view

END = "slurmstepd: error: *** STEP 71.0 ON gpu01 CANCELLED AT 2026-03-01T10:00:00 DUE TO TIME LIMIT ***"
BROKEN = "gpu02:31:32 [0] transport/net_ib.cc:789 NCCL WARN NET/IB : Got completion with error 12, opcode 1, len 0"
INIT = "gpu0{host}:3{rank}:9 [0] NCCL INFO comm 0x2a rank {rank} nranks 4 cudaDev 0 nvmlDev 0 - Init COMPLETE"


def shared(folder: Path, *rows: str, name: str = "slurm-71.out") -> Job:
    folder.mkdir()
    begin = [f"{r}: {INIT.format(rank=r, host=1 + r // 2)}" for r in range(4)]
    (folder / name).write_text("\n".join((*begin, *rows)) + "\n")
    return view(read_part([str(folder)], 1))


def test_what_a_rank_reported_comes_before_the_time_limit(tmp_path):
    found = shared(tmp_path / "job", "0: broadcast done", f"2: {BROKEN}", "2: broadcast done", f"0: {END}", END)
    assert found.ended is None
    assert [(row.rank, row.host, row.line) for row in found.first] == [(2, "gpu02", 6)]
    assert found.verdict is not None
    assert "time limit" in found.verdict.summary
    assert "Got completion with error 12" in found.verdict.summary
    assert (found.ranks, found.hosts) == (4, 2)


def test_what_training_went_on_after_is_no_failure(tmp_path):
    found = shared(tmp_path / "job", f"2: {BROKEN}", *(f"{r}: step 7 loss 2.1" for r in range(4)), f"0: {END}")
    assert found.first == ()
    assert found.ended is not None
    assert found.verdict is not None
    assert "not known" in found.verdict.summary  # its steps have no times


def test_a_report_below_the_end_is_of_the_end(tmp_path):
    found = shared(tmp_path / "job", "0: broadcast done", f"0: {END}", f"2: {BROKEN}")
    assert found.first == ()
    assert found.ended is not None


@pytest.mark.parametrize(
    "line",
    [b" 0: slurmstepd: error: *** STEP 416593.0 ON gpu01 CANCELLED AT 2026-03-01T10:00:00 ***",
     b"srun: Terminating job step 422332.0"],
)  # fmt: skip
def test_a_step_of_slurm_is_no_step_of_training(line):
    assert training_steps.last_step([line]) is None


def test_the_launcher_knows_the_host_of_a_rank_better_than_a_path(tmp_path):
    folder = tmp_path / "pretrain451863"
    folder.mkdir()
    rows = ("0: step 1 loss 2", "1: step 1 loss 2", "srun: error: gpu12: task 0: Segmentation fault")
    (folder / "slurm-9.out").write_text("\n".join(rows) + "\n")
    found = view(read_part([str(folder)], 1))
    assert [(row.rank, row.host) for row in found.first] == [(0, "gpu12")]
    assert "pretrain451863" not in {span.host for span in found.spans}


def test_two_files_of_one_process_are_one(tmp_path):
    (tmp_path / "job.out").write_text("loading\n")
    (tmp_path / "job.err").write_text("Traceback (most recent call last):\n  File \"/w/a.py\", line 3\nKeyError: 'x'\n")
    assert view(read_part([str(tmp_path / "job.out"), str(tmp_path / "job.err")], 1)).ranks == 1


def test_the_launcher_says_how_many_ranks_there_were(tmp_path):
    end = "srun: error: gpu12: tasks 0-7: Exited with exit code 255"
    (tmp_path / "job.err").write_text(f"FATAL: no such program\n{end}\n")
    found = view(read_part([str(tmp_path / "job.err")], 1))
    assert found.ranks == 8
    assert [row.rank for row in found.first] == list(range(8))


LOOP = ("Traceback (most recent call last):", '  File "/work/train.py", line 44, in forward')
PINNED = "ConnectionResetError: [Errno 104] Connection reset by peer"


@pytest.mark.parametrize("own", [False, True])
def test_who_interrupts_a_job_is_no_rank(tmp_path, own):
    for rank in range(3):
        before = [*LOOP, "KeyError: 'x'", ""] if own and rank == 2 else []
        after = ["Exception in thread Thread-2 (_pin_memory_loop):", *LOOP, PINNED] if rank == 0 else []
        rows = [*before, *(LOOP if not before else ()), *(["KeyboardInterrupt"] if not before else []), *after]
        (tmp_path / f"rank_{rank}.log").write_text("\n".join(rows) + "\n")
    found = view(read_part([str(tmp_path)], 1))
    assert [row.rank for row in found.first] == ([2] if own else [])
    assert (found.ended is not None) is not own


def appended(*ends: str, steps_each: int = 3) -> str:
    begin = ["Namespace(lr=0.1)", "loading /data/train", "W0508 19:14:57 device: 4, cuDNN 7.6", "4 workers", "start"]
    rows: list[str] = []
    for end in ends:
        rows += [*begin, *(f"step {s} loss 2.1" for s in range(steps_each)), *end.splitlines()]
    return "\n".join(rows) + "\n"


FAILED = 'Traceback (most recent call last):\n  File "/work/a.py", line 3, in main\n    load()\n'


@pytest.mark.parametrize("runs", [2, 5, 14])
def test_of_programs_that_were_appended_to_a_log_the_last_counts(tmp_path, runs):
    early = [f"{FAILED}OSError: shard {n} is gone" for n in range(runs - 1)]
    (tmp_path / "rank_0.log").write_text(appended(*early, f"{FAILED}KeyError: 'last'"))
    (tmp_path / "rank_1.log").write_text(appended(*early, ""))
    found = view(read_part([str(tmp_path)], 1))
    assert [(row.rank, row.exception) for row in found.first] == [(0, "KeyError")]
    assert found.first[0].text.startswith("KeyError: 'last'")
    for rank in range(2):
        (tmp_path / f"rank_{rank}.log").write_text(appended(*early, ""))
    assert view(read_part([str(tmp_path)], 1)).first == ()


def rank_log(rank, *runs):
    """What one rank prints in several runs, an hour apart: (steps, its last lines)."""
    rows = []
    for hour, (steps, end) in enumerate(runs, 10):
        rows += [f"2026-03-01 {hour}:00:00 starting train.py", f"2026-03-01 {hour}:00:01 rank {rank} of 4 is ready"]
        rows += [f"2026-03-01 {hour}:{s // 60 + 1:02}:{s % 60:02} step {s} loss 2.1" for s in range(steps)]
        rows += end.splitlines()
    return "\n".join(rows) + "\n"


def test_each_log_of_a_rank_may_hold_several_runs(tmp_path, capsys):
    """Files that each launch continues: the failure of the first run is not the answer, and is told beside it."""
    early = {1: f"{FAILED}MemoryError: 2 GB"}
    lost = f"{FAILED}torch.distributed.DistBackendError: NCCL communicator was aborted on rank 0."
    for last, status in (("", 1), ("Training completed", 0), (f"{FAILED}KeyError: 'x'", 1)):
        for rank in range(4):
            end = last if rank == 2 or last == "Training completed" else lost if last else ""
            runs = (30, early.get(rank, lost)), (77, end)
            (tmp_path / f"rank_{rank}.log").write_text(rank_log(rank, *runs))
        assert main(["triage", str(tmp_path)]) == status
        shown = capsys.readouterr()
        assert "MemoryError" not in shown.out
        assert ("KeyError" in shown.out) == ("KeyError" in last)
        assert "4 of 4 logs hold earlier runs, as" in shown.err
        assert "rank_0.log above line 37" in shown.err


def test_a_rank_without_the_last_run_is_not_accused_of_the_one_before(tmp_path):
    """Its host was left out of the second launch."""
    for rank in range(4):
        last = () if rank == 3 else ((50, ""),)
        (tmp_path / f"rank_{rank}.log").write_text(rank_log(rank, (30, f"{FAILED}OSError: {rank}"), *last))
    found = view(read_part([str(tmp_path)], 1))
    assert found.first == ()
    assert found.went_on == 49


def test_a_log_that_begins_with_progress_is_of_one_program(tmp_path):
    rows = [f"epoch {n}\nstep {n} loss 2\nvalidation of {n}\nsaved\nnext" for n in range(4)]
    (tmp_path / "rank_0.log").write_text("\n".join((*rows[:3], f"{FAILED}KeyError: 'x'", rows[3])) + "\n")
    found = view(read_part([str(tmp_path)], 1))
    assert found.cut == ()
    assert found.went_on == 3


def test_a_rank_that_its_launcher_ended_by_a_signal_raised_nothing(tmp_path):
    ended = "FatalError: `Termination signal` is detected by the operating system."
    summary = (
        f"C++ Traceback (most recent call last):\n-----\n0   paddle::framework::SignalHandle(char const*, int)\n{ended}"
    )
    for rank in range(3):
        own = f"{FAILED}RuntimeError: (PreconditionNotMet) libnccl.so\n" if rank == 1 else ""
        (tmp_path / f"workerlog.{rank}").write_text(f"start\n{own}\n{summary}\n")
    found = view(read_part([str(tmp_path)], 1))
    assert [(row.rank, row.exception) for row in found.first] == [(1, "RuntimeError")]


@pytest.mark.parametrize("label", ["", "[rank0]: "])
def test_of_jobs_that_were_appended_to_a_log_the_last_counts(tmp_path, label):
    other = "[rank1]: loading" if label else "loading"
    end = "slurmstepd: error: *** JOB {} ON gpu1 CANCELLED AT 2026-03-01T1{}:00:00 ***"
    rows = [other, *(label + row for row in (*FAILED.splitlines(), "KeyError: 'x'")), end.format(26, 0)]
    last = [f"{label}resuming {n}" for n in range(3)]
    (tmp_path / "slurm.out").write_text("\n".join((*rows, *last, end.format(27, 1))) + "\n")
    found = view(read_part([str(tmp_path)], 1))
    assert found.first == ()
    assert found.ended is not None
    assert "JOB 27" in found.ended.text
    (tmp_path / "slurm.out").write_text("\n".join((*rows, *last)) + "\n")
    assert [row.exception for row in view(read_part([str(tmp_path)], 1)).first] == ["KeyError"]
