"""Slow jobs by what they print: steps and their seconds in the styles of trainers, slow ranks, stalls."""

import json

import pytest

from dtdebug.cli.main import main
from dtdebug.errors import FOUND
from dtdebug.recorded.job_logs import api, render, training_steps
from dtdebug.recorded.job_logs.job_view import view
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load


def test_a_slow_rank_is_named_from_printed_step_times(tmp_path):
    """Its steps take longer than those of the others."""
    for rank in range(8):
        own = 310.0 if rank == 5 else 200.0
        lines = [f"2026-03-01 10:{n // 60:02d}:{n % 60:02d} step {n} step_time: {own + n % 7} ms" for n in range(300)]
        (tmp_path / f"rank_{rank}.log").write_text("\n".join(lines) + "\n")
    found = view(api.read_part([str(tmp_path)], 1))

    assert [row[0] for row in found.slowness.ranks] == [5]
    assert "rank 5" in render.to_text(found, diagnose(load(), found.snapshot), 0.0)


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        (b"  5%|#  | 50/1000 [01:40<31:40,  2.00s/it]", 2.0),
        (b"Epoch 0:  5%|#  | 50/1000 [00:12<03:57,  4.00it/s, v_num=1]", 0.25),
        (
            b" iteration       50/  500000 | consumed samples: 9 | elapsed time per iteration (ms): 2000.0 |",
            2.0,
        ),
        (
            b"Training epoch 0, iteration 50/999 | lr: 4.5e-07 | train_step_timing in s: 2.000 | consumed_samples: 88",
            2.0,
        ),
        (b"iter 50: loss 3.2011, time 2000.00ms, mfu 38.10%", 2.0),
        (b"(TaskRunner pid=1234) step:50 - actor/kl_loss:0.001 - timing_s/gen:20.1 - timing_s/step:2.0", 2.0),
        (b"step   50/19560 | loss 3.234123 (+0.12z)| lr 6.00e-04 | 2000.00 ms | 55.1% bf16 MFU", 2.0),
        (b"Epoch: [0][  50/5005]\tTime  2.000 ( 2.132)\tData  0.001 ( 0.212)", 2.0),
        (b"epoch 001:     50 / 1000 loss=9.1, wps=12000, ups=0.5, num_updates=50, lr=1e-05", 2.0),
        (b" 50/100 [==>.....] - ETA: 3:00 - loss: 2.1 - 2s/step", 2.0),
    ],
)
def test_steps_and_their_seconds_are_read_in_the_styles_of_trainers(line, seconds):
    """A bar, a name with its unit, a rate."""
    assert training_steps.last_step([line]) == 50
    assert training_steps.paces([line]) == (seconds,)


def test_bars_and_settings_are_no_steps():
    """What is loaded, mapped, evaluated or configured."""
    others = [b"Loading checkpoint shards:  50%|#| 2/4 [00:10<00:10,  5.00s/it]", b"save_steps: 500, max_steps=1000"]

    assert training_steps.last_step(others) is None
    assert training_steps.paces(others) == ()


def test_a_job_whose_steps_grow_longer_or_stall_is_slow(tmp_path, capsys):
    """With the seconds before and after, the step and its time; the symptom is slow execution."""
    for name, seconds in (("longer", lambda n: 2 + n / 100), ("stall", lambda n: 700 if n == 280 else 2)):
        clock = 0.0
        rows = []
        for n in range(300):
            clock += seconds(n)
            at = f"2026-03-01 1{int(clock) // 3600}:{int(clock) // 60 % 60:02d}:{int(clock) % 60:02d}"
            rows.append(f"{at} INFO step {n} loss 2.1 step_time: {seconds(n):.2f} s")
        for rank in range(4):
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / f"rank_{rank}.log").write_text("\n".join(rows) + "\n")

    assert main(["triage", str(tmp_path / "longer"), "--format", "json"]) == FOUND
    data = json.loads(capsys.readouterr().out)
    assert data["longer"] == [pytest.approx(2.0, abs=0.1), pytest.approx(4.9, abs=0.2)]
    assert data["diagnosis"]["symptoms"][0]["code"] == "D.2.3"
    assert main(["triage", str(tmp_path / "stall"), "--format", "json"]) == FOUND
    assert json.loads(capsys.readouterr().out)["stall"] == {
        "after": 279,
        "time": "2026-03-01 10:09:20",
        "seconds": 700.0,
        "ranks": [0, 1, 2, 3],
    }
