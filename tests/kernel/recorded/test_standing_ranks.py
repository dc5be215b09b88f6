"""Logs that end in a wait are no all-clear, and the line in which one rank parted from the others is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtdebug.cli.main import main
from dtdebug.recorded.job_logs import api
from dtdebug.recorded.job_logs.job_view import Job
from dtdebug_taxonomy.logs import standstill

SKIPS = "ERROR step 12: cannot decode 713.jpg; skipping this batch"


def job(folder: Path, ends: list[list[str]], odd: dict[int, str] | None = None) -> Job:
    for rank, end in enumerate(ends):
        rows = [f"INFO step {step} loss {1 / (step + 1):.3f}" for step in range(30)]
        rows[12:12] = [odd[rank]] if odd and rank in odd else []
        text = "".join(f"2026-03-01 10:00:{n % 60:02d},000 [rank {rank}] {row}\n" for n, row in enumerate(rows + end))
        (folder / f"rank_{rank}.log").write_text(text)
    return api.job_of(api.read_part([str(folder)], 1))


@pytest.mark.parametrize(
    "end",
    [
        "WARNING no progress for 600 s, last step 29",
        "INFO entering barrier",
        "INFO calling dist.all_reduce",
        "WARNING still waiting for peers after 900 s",
        "ERROR watchdog: no heartbeat for 1800 s",
        "WARNING rank seems stuck in all_gather",
    ],
)
def test_a_wait_at_the_end_is_no_all_clear(tmp_path: Path, end: str) -> None:
    found = job(tmp_path, [[end]] * 3)
    assert found.went_on is None
    assert found.verdict is not None
    assert not found.verdict.culprits
    assert api.conclude(found)[2]


@pytest.mark.parametrize(
    "line", [SKIPS, "WARNING empty shard, dropping micro-batch 12", "INFO retrying read of part 3", "INFO no more data"]
)
@pytest.mark.parametrize("ranks", [2, 4])
def test_the_line_in_which_one_rank_parted_is_named(tmp_path: Path, line: str, ranks: int) -> None:
    ends = [["INFO step 30 forward", "WARNING no progress for 600 s"]] * (ranks - 1)
    found = job(tmp_path, [*ends, ["INFO entering barrier", "WARNING no progress for 600 s"]], {ranks - 1: line})
    assert found.verdict is not None
    assert found.verdict.culprits == (ranks - 1,)
    assert line.partition(" ")[2][:20] in found.verdict.summary
    assert "entering barrier" in found.verdict.summary
    assert (found.verdict.sites[0].file[-10:], found.verdict.sites[0].line) == (f"rank_{ranks - 1}.log", 13)


def test_a_rank_that_does_not_wait_is_shown_with_its_last_step(tmp_path: Path) -> None:
    found = job(tmp_path, [["INFO waiting for all ranks"], ["INFO waiting for all ranks"], ["INFO step 30 loss 0.1"]])
    assert found.verdict is not None
    assert 'rank 2 ends in "step 30' in found.verdict.summary


def test_what_all_ranks_print_parts_none(tmp_path: Path) -> None:
    found = job(tmp_path, [["WARNING no progress for 600 s"]] * 3, dict.fromkeys(range(3), SKIPS))
    assert found.verdict is not None
    assert not found.verdict.culprits


@pytest.mark.parametrize(
    "end",
    [
        [],
        ["INFO entering barrier", "INFO barrier passed", "INFO step 30 loss 0.1"],
        ["INFO waiting for data loader", *(f"INFO step {step} loss 0.1" for step in range(30, 40))],
        ["INFO entering barrier", "INFO training finished"],
        ["wandb: Waiting for W&B process to finish... (success)."],
    ],
)
def test_a_wait_that_is_over_stops_nothing(tmp_path: Path, end: list[str]) -> None:
    found = job(tmp_path, [end] * 3, {1: SKIPS})
    assert found.verdict is None or not found.verdict.names_ranks
    assert found.went_on is not None


def test_words_of_a_wait_that_has_ended_are_none() -> None:
    for line in ("no longer stuck", "done waiting for peers", "waited 3 s", "left the barrier", "step 3 loss 2"):
        assert not standstill.states_standstill(line)
        assert not standstill.enters_wait(line)


@pytest.mark.parametrize("beat", ["monitor: no progress for {} min", "[watchdog] trainer is stuck ({} min)"])
def test_a_log_without_ranks_that_reports_no_progress_stands(
    beat: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A monitor goes on to print: the job does not train on."""
    steps = "".join(f"step {n} loss {5 - n / 40:.3f}\n" for n in range(89))
    (tmp_path / "train.log").write_text(steps + "".join(f"{beat.format(n)}\n" for n in range(2, 12)))

    for words in ((), ("triage",)):
        assert main([*words, str(tmp_path / "train.log")]) == 1
        shown = " ".join(capsys.readouterr().out.split())
        assert "The job stands: its log has no step after 88, and ends with" in shown
        assert beat.format(11) in shown

    with (tmp_path / "train.log").open("a") as log:
        log.write("".join(f"step {n} loss 2.5\n" for n in range(89, 140)) + "Training completed\n")
    assert main([str(tmp_path / "train.log")]) == 0
