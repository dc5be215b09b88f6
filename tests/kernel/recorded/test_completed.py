"""Runs that went on or ended well show no failure; ranks that fall silent are named with how long."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from dtdebug.cli.main import main
from dtdebug.recorded.job_logs import api
from dtdebug.recorded.job_logs.assign_ranks import by_rank
from dtdebug.recorded.job_logs.part import Stream, TellingLine

_STEPS = [
    f"0: 2026-05-05 00:{n // 60:02d}:{n % 60:02d},000 INFO step {n} loss {3 - n / 1000:.4f}" for n in range(1, 300)
]
_DONE = ':::MLLOG {"time_ms": 1714, "event_type": "INTERVAL_END", "key": "run_stop", "value": null, "metadata": {"status": "success"}}'  # noqa: E501 - as it is printed
_CANCELLED = "0: slurmstepd: error: *** STEP 308.13 ON node1 CANCELLED AT 2026-05-05T06:35:43 DUE TO TIME LIMIT ***"
_SIDE_STEP = "srun: error: node1: task 0: Exited with exit code 1"


@pytest.mark.parametrize(
    "lines",
    [
        [_SIDE_STEP, *_STEPS, f"0: {_DONE}"],
        [*_STEPS, f"0: {_DONE}", _CANCELLED, "srun: error: node1: task 0: Terminated"],
        ["node1:1:2 [0] NCCL WARN NET/IB :SHARP coll init error: Cannot create SHArP job(-11)", *_STEPS, f"0: {_DONE}"],
        [*_STEPS, f"0: {_DONE}", "0: node1:7:7 [0] NCCL INFO comm 0x1 rank 0 nranks 8 - Abort COMPLETE"],
    ],
)
@pytest.mark.parametrize("verb", ["diagnose", "triage"])
def test_a_run_that_went_on_shows_no_failure(lines: list[str], verb: str, tmp_path: Path) -> None:
    """A side step, a warning, a cancellation after the end: both commands say that nothing failed."""
    log = tmp_path / "slurm.out"
    log.write_text("\n".join(lines))
    assert main([verb, str(log)]) == 0
    assert not api.job_of(api.read_part([str(log)], 1)).first


def test_a_run_that_says_that_it_was_completed_has_one_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """However little else of it is understood, its words and the exit status agree."""
    log = tmp_path / "slurm.out"
    log.write_text("\n".join([*(f"++ {'x' * (n % 90)}-{'y' * (n // 9)} bound" for n in range(400)), f"0: {_DONE}", ""]))
    status = main(["diagnose", str(log)])
    assert (status, "No failure: the run says" in capsys.readouterr().out) == (0, True)


def test_an_abort_after_the_end_is_a_failure(tmp_path: Path) -> None:
    """The training was completed, the program was not."""
    log = tmp_path / "slurm.out"
    log.write_text("\n".join([*_STEPS, f"0: {_DONE}", "srun: error: node1: task 0: Aborted (core dumped)"]))
    assert main(["diagnose", str(log)]) == 1


_CAUGHT = [
    "Traceback (most recent call last):",
    '  File "/w/fetch.py", line 11, in download',
    '    raise ConnectionResetError("Connection reset by peer")',
    "ConnectionResetError: Connection reset by peer",
]
_CRASH = ["[rank0]: terminate called without an active exception", "[rank0]: Fatal Python error: Aborted"]


def test_what_was_tried_again_before_the_training_is_no_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A download that failed twice, on a process without a name; the steps follow, and the end."""
    log = tmp_path / "train.log"
    steps = [f"[rank{r}] step {n} loss {8 / (n + 1):.4f}" for n in range(6) for r in range(2)]
    log.write_text("\n".join([*_CAUGHT, *_CAUGHT, *steps, "[rank0] Training completed", "[rank1] Training completed"]))
    assert main([str(log)]) == 0
    shown = capsys.readouterr().out
    assert "the run says that its training was completed" in shown
    assert "loss" in shown
    log.write_text("\n".join([*_CAUGHT, *steps]))
    assert main([str(log)]) == 1


def test_an_error_of_the_batch_script_before_a_completed_training_is_past(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is no exception of Python, and the steps and the end come after it."""
    log = tmp_path / "train.log"
    steps = [f"[Step {n}/6] Loss: {8 / (n + 1):.4f} | Tokens/s: 136.66" for n in range(1, 7)]
    error = "CondaError: Run 'conda init' before 'conda deactivate'"
    log.write_text("\n".join([error, *steps, "Training done in 49.87 seconds.", ""]))
    assert main([str(log)]) == 0
    assert "the run says that its training was completed" in capsys.readouterr().out


def test_a_crash_of_a_completed_training_says_what_is_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first line does not let the reader fear for the result; without the word of the run it does."""
    log = tmp_path / "train.log"
    steps = [f"[rank0]: step {n} loss {8 / (n + 1):.4f}" for n in range(20)]
    for said in (["[rank0]: Training completed"], []):
        log.write_text("\n".join([*steps, *said, *_CRASH]))
        assert main([str(log)]) == 1
        first = " ".join(capsys.readouterr().out.split())
        assert ("After the training was completed, rank 0 raised" in first) == bool(said)


def test_a_step_that_recovered_says_nothing(tmp_path: Path) -> None:
    """The warm-up of a loss scale skips steps with NaN; the later ones have none."""
    log = tmp_path / "megatron.log"
    form = " iteration {n:8d}/  500000 | consumed samples: 512 | lm loss: 2.1E+00 | number of nan iterations:   {nan} |"
    log.write_text("\n".join(form.format(n=n, nan=int(n < 4)) for n in range(1, 60)))
    job = api.job_of(api.read_part([str(log)], 1))
    assert "megatron-nan-iterations" not in {w.evidence for s in api.conclude(job)[1].symptoms for w in s.why}


def test_the_silent_rank_is_named_and_the_exception_comes_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One rank raises while the others still print steps; another one had been silent for half an hour."""
    rows = []
    for n in range(240):
        clock = f"2026-05-05T10:{n // 4:02d}:{n % 4 * 15:02d}.000Z"
        rows += [
            f"{clock} [rank{rank}]: step {4000 + n} loss 2.1"
            for rank in range(8)
            if not (rank == 5 and n >= 116) and not (rank == 7 and n >= 236)
        ]
        if n == 236:
            rows += [f"{clock} [rank7]: {text}" for text in _TRACEBACK]
    log = tmp_path / "job.log"
    log.write_text("\n".join(rows) + "\n")
    assert main([str(log)]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.startswith("dtdebug: Rank 7 raised ValueError: bad shard")
    assert "rank 5 has printed nothing for 31 min; the others went on to step 4,239" in printed
    job = api.job_of(api.read_part([str(log)], 1))
    assert [s.rank for s in job.silent] == [5]
    assert not job.behind


@pytest.mark.parametrize("end", ["watchdog", "closed"])
def test_an_exception_explains_more_than_silence(end: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The others print steps for minutes after one has raised, and then that they waited in vain."""
    rows = []
    for n in range(240):
        clock = f"2026-05-05T10:{n // 4:02d}:{n % 4 * 15:02d}.000Z"
        rows += [
            f"{clock} [rank{rank}]: step {4000 + n} loss 2.1"
            for rank in range(16)
            if not (rank == 5 and n >= 116) and not (rank == 7 and n >= 224)
        ]
        if n == 224:
            rows += [f"{clock} [rank7]: {text}" for text in _TRACEBACK]
    said = {
        "watchdog": (f"Watchdog caught collective operation timeout: {_WORK} ran for 60010 milliseconds.",),
        "closed": (*_TRACEBACK[:-1], "RuntimeError: [tcp/pair.cc:534] Connection closed by peer [10.0.0.7]:2000"),
    }
    late = "2026-05-05T11:01:00.000Z"
    rows += [f"{late} [rank{rank}]: {text}" for rank in range(16) if rank not in (5, 7) for text in said[end]]
    (tmp_path / "job.log").write_text("\n".join(rows) + "\n")
    assert main([str(tmp_path / "job.log")]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.startswith("dtdebug: Rank 7 raised ValueError: bad shard")
    assert "rank 5 has printed nothing for" in printed


@pytest.mark.parametrize(("nodes", "rank"), [(("node-00", "node-01"), 3), (("gpu-17", "gpu-23"), None)])
def test_a_local_rank_is_a_rank_only_where_the_nodes_are_numbered(
    nodes: tuple[str, str], rank: int | None, tmp_path: Path
) -> None:
    for name in nodes:
        rows = [f"[default{n % 2}]:2026-05-05 10:00:{n:02d},000 INFO step {n // 2} loss 2.1" for n in range(60)]
        rows += [f"[default1]:{text}" for text in _TRACEBACK] if name == nodes[1] else []
        (tmp_path / f"{name}.log").write_text("\n".join(rows) + "\n")
    assert [row.rank for row in api.job_of(api.read_part([str(tmp_path)], 1)).first] == [rank]


def test_a_rank_that_fell_silent_long_before_the_kept_end_of_a_log_has_its_true_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first lines are not the last ones, although no line of the end is its own."""
    monkeypatch.setattr("dtdebug.recorded.log_files.excerpt.SHARED_TAIL", 1 << 12)
    rows = [
        f"2026-05-05T10:{n // 4:02d}:{n % 4 * 15:02d}.000Z [rank{rank}]: step {n:8d} loss 2.1 of {'x' * 40}"
        for n in range(240)
        for rank in range(8)
        if not (rank == 5 and n >= 116)
    ]
    log = tmp_path / "job.log"
    log.write_text("\n".join(rows) + "\n")
    streams = {s.rank: s for s in api.read_part([str(log)], 1).streams}
    assert (streams[5].step, streams[4].step) == (115, 239)


def test_what_a_rank_prints_last_in_another_stream_leaves_its_steps_known() -> None:
    """The lines of the watchdog carry the rank, those of the steps the local rank of its node."""
    step = TellingLine(40, "step 9 loss 2.1", 100.0)
    steps = Stream(file="node.log", rank=3, last=100.0, line=40, step=9, progress=step, marks=((1, 20.0), (9, 100.0)))
    other = Stream(file="node.log", rank=3, last=700.0, line=60)
    merged = by_rank([steps, other])[3]
    assert (merged.last, merged.step, merged.progress, merged.marks) == (700.0, 9, step, steps.marks)
    apart = by_rank([steps, msgspec.structs.replace(other, file="node.err")])[3]
    assert apart.progress == TellingLine(0, step.text, step.time)


_WORK = "WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=60000)"
_TRACEBACK = (
    "Traceback (most recent call last):",
    '  File "/w/train.py", line 9, in <module>',
    "    main()",
    "ValueError: bad shard",
)
