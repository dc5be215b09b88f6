"""Curves: read from lines, tables and event files of many trainers; faults are found and healthy ones left alone."""

import io
import json
import math
import random
import struct

import pytest

from dtdebug.cli.main import main as dtdebug
from dtdebug.recorded.curves import printed as printed_lines
from dtdebug.recorded.curves.compare import compare
from dtdebug.recorded.curves.event_files import masked_crc, read_scalars
from dtdebug.recorded.curves.judge import findings
from dtdebug.recorded.curves.names import meaning
from dtdebug.recorded.curves.printed import PrintedLines
from dtdebug.recorded.curves.read import read_curves, read_printed
from dtdebug.recorded.curves.report import judge, short_answer
from dtdebug.recorded.curves.series import Series
from dtdebug.recorded.things import recognise
from dtdebug_taxonomy.presentation.answer_text import MOST, WIDTH, lay_out

FORMS = {
    "megatron": " iteration  {s}/  500000 | consumed samples: 2560 | elapsed time per iteration (ms): 2043.1 | "
    "learning rate: 1.500E-06 | lm loss: {l:E} | "
    "loss scale: 65536.0 | grad norm: 1.200 | number of nan iterations:   0 |",
    "hugging face": "{{'loss': {l}, 'grad_norm': 1.25, 'learning_rate': 5e-05, 'epoch': {s}}}",
    "hugging face 5": "{{'loss': '{l}', 'grad_norm': '1.25', 'learning_rate': '5e-05', 'epoch': '{s}'}}",
    "torchtitan": "[rank0]:2025-01-01 10:00:00,123 - root - INFO - \x1b[31mstep: {s}  \x1b[32mloss: {l:7.4f}  "
    "\x1b[33mgrad_norm:  1.20  memory: 10.00GiB(12.0%)  tps: 7,123  mfu: 12.1%",
    "nanoGPT": "iter {s}: loss {l:.4f}, time 135.67ms, mfu 5.00%",
    "llm.c": "step {s}/18865 | loss {l:.6f} (+1.20z)| norm 2.3000 (+0.30z)| lr 1.20e-05 | 230.12 ms | 2278 tok/s",
    "plain": "epoch 3 step {s} loss={l:.4f}",
    "lightning": "Epoch 0:  10%|█         | {s}/100 [00:01<00:09,  9.51it/s, v_num=0, train_loss={l:.3f}]",
    "nemo": "Training epoch 0, iteration {s}/99 | lr: 1e-06 | global_step: {s} | reduced_train_loss: {l:.3f} | "
    "train_step_timing in s: 5.4",
    "fairseq": "2023-01-01 10:00:00 | INFO | train_inner | epoch 001:    {s} / 1234 loss={l:.3f}, ppl=4.2, wps=1234.1, "
    "ups=1.2, bsz=64, num_updates={s}, lr=1e-05, gnorm=1.2, loss_scale=4, train_wall=12, wall=100",
    "mmengine": "01/01 10:00:00 - mmengine - INFO - Epoch(train) [1][ {s}/500]  lr: 1.0000e-02  eta: 0:10:00  time: "
    "0.3000  data_time: 0.0200  memory: 300  grad_norm: 4.2000  loss: {l:.4f}  loss_cls: 0.2",
    "keras": "{s}/1563 [=====>...] - ETA: 5s - loss: {l:.4f} - accuracy: 0.5",
    "maxtext": "completed step: {s}, seconds: 2.300, TFLOP/s/device: 120.1, Tokens/s/device: 3000.1, loss: {l:.3f}",
    "imagenet": "Epoch: [0][ {s}/1252]\tTime  0.512 ( 0.732)\tData  0.1 ( 0.2)\tLoss {l:.4e} (6.95e+00)",
    "mnist": "Train Epoch: 1 [{s}/60000 (1%)]\tLoss: {l:.6f}",
    "timm": "Train: 0 [  {s}/1251 (  4%)]  Loss: {l:.3f} (6.9)  Time: 0.312s, 3000.12/s  LR: 1.000e-06",
    "deepspeed": "steps: {s} loss: {l:.4f} iter time (s): 0.512 samples/sec: 64.011",
    "mlperf": ':::MLLOG {{"time_ms": 1700000000000, "key": "train_loss", "value": {l}, "metadata": {{"lineno": 12, '
    '"samples_count": {s}}}}}',
    "json": '{{"step": {s}, "train/loss": {l}, "train/lr": 0.001}}',
    "composer": "[batch={s}/1000]:\n\t Train time/batch: 9\n\t Train loss/train/total: {l:.4f}",
    "accelerate": "Steps:  10%|█         | {s}/100 [00:01<00:09,  1.51s/it, lr=1e-5, step_loss={l:.3f}]",
}


def printed(form, losses, first=1):
    return "\n".join(FORMS[form].format(s=first + i, l=loss) for i, loss in enumerate(losses)) + "\n"


def falling(count=300, noise=0.02, seed=1):
    draw = random.Random(seed)
    return [(1 + 8 * (1 + i / 5) ** -0.7) * (1 + noise * draw.gauss(0, 1)) for i in range(count)]


def found(text):
    return findings(read_printed(text, "log").curves)


def kinds(text):
    return [row.kind for row in found(text)]


@pytest.mark.parametrize("form", FORMS)
def test_the_step_lines_of_a_trainer_give_step_and_loss(form):
    curves = read_printed(printed(form, [3.25, 3.125, 3.0, 2.875], first=12), "log").curves
    losses = [c for c in curves if c.kind == "loss" and not c.name.held_out]
    assert [list(c.values) for c in losses] == [[3.25, 3.125, 3.0, 2.875]]
    assert list(losses[0].steps) == [12, 13, 14, 15]


@pytest.mark.parametrize("form", FORMS)
def test_nan_is_found_in_the_lines_of_each_trainer(form):
    losses = [*falling(60), *[math.nan] * 12]
    if form == "mlperf":
        pytest.skip("JSON has no NaN")
    (row,) = [r for r in found(printed(form, losses)) if r.kind == "not_finite"]
    assert "61" in row.step
    assert row.line == (183 if form == "composer" else 61)
    assert "NaN" in row.says
    assert row.why.startswith("last finite")


def test_values_of_other_kinds_are_read_and_their_units():
    curves = {c.kind: c for c in read_printed(printed("megatron", falling(5)), "log").curves}
    assert curves["step_time"].values[0] == pytest.approx(2.0431)
    assert (curves["grad_norm"].values[0], curves["loss_scale"].values[0]) == (1.2, 65536)
    (throughput,) = (c for c in read_printed(printed("torchtitan", falling(5)), "log").curves if c.kind == "throughput")
    assert throughput.values[0] == 7123


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("loss_scale", "loss_scale"), ("loss_cls", "part"), ("train/loss", "loss"), ("best_loss", None),
        ("Learning Rate", "lr"), ("data_time", None), ("train_wall", None), ("eta", None), ("d_loss", "part"),
        ("samples/sec", "throughput"), ("TFLOP/s/device", None), ("memory", "memory"),
    ],
)  # fmt: skip
def test_a_name_means_one_kind_or_nothing(name, kind):
    means = meaning(name)
    assert (means.kind if means else None) == kind


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "shape",
    [
        lambda i, x, draw: x,
        lambda i, x, draw: x * math.exp(draw.gauss(0, 0.35)),
        lambda i, x, draw: x * (1 + 0.3 * math.exp(-abs(i - 200) / 4)),
        lambda i, x, draw: x * (1 + 0.25 * (1 - i % 75 / 75)),
        lambda i, x, draw: 1.4 * (1 + 0.1 * draw.gauss(0, 1)) * (1 + 0.3 * math.exp(-i / 5)),
        lambda i, x, draw: x * (1.1 if i > 150 else 1),
    ],
    ids=["even", "noisy", "bump", "cyclic", "tuned", "harder data"],
)
def test_a_healthy_curve_gives_no_finding(shape, seed):
    draw = random.Random(seed)
    assert kinds(printed("torchtitan", [shape(i, x, draw) for i, x in enumerate(falling(seed=seed))])) == []


def test_a_loss_that_rises_and_stays_diverges_from_a_step():
    losses = falling()
    losses[200:] = [x + 6 * (1 - math.exp(-i / 5)) for i, x in enumerate(losses[200:])]
    (row,) = found(printed("plain", losses))
    assert row.kind == "diverges"
    assert abs(row.line - 201) <= 8
    assert "at the end" in row.says


def test_a_loss_that_grows_faster_and_faster_to_the_end_diverges_and_is_no_spike():
    """Its last values are far apart, as each is a multiple of the one before."""
    rows = [0.35 + 3 * (n + 1) ** -0.6 if n < 72 else 0.5 * 1.21 ** (n - 72) for n in range(120)]
    lines = [
        f" --> STEP: {n % 40}/40 -- GLOBAL_STEP: {25 * n}\n     | > loss: {value:.5f}  ({value:.5f})\n"
        for n, value in enumerate(rows, 1)
    ]
    (found,) = findings(read_printed("".join(lines), "a.log").curves)

    assert (found.kind, found.curve) == ("diverges", "loss")
    assert "step 1,8" in found.says or "step 1,9" in found.says
    assert [] == findings(read_printed("".join(lines[:72]), "a.log").curves)


def test_a_spike_from_which_the_loss_comes_back_is_no_fault():
    losses = falling()
    losses[150] = 30.0
    (row,) = found(printed("plain", losses))
    assert (row.kind, row.line, row.grave) == ("spike", 151, False)


def test_a_loss_that_stays_at_that_of_guessing_has_not_moved():
    draw = random.Random(3)
    (row,) = found(printed("plain", [math.log(10) + draw.gauss(0, 0.01) for _ in range(200)]))
    assert row.kind == "does_not_move"
    assert "guessing among 10" in row.says


def test_a_log_that_is_too_short_does_not_say_that_nothing_is_learnt():
    assert kinds(printed("plain", [math.log(10)] * 20)) == []
    assert kinds(printed("plain", [math.log(10) + i % 3 / 1000 for i in range(300)], first=50_000)) == []


def rows(count, **columns):
    return "".join(
        f"step {i} loss={falling(count)[i]:.4f} {' '.join(f'{name}={value(i)}' for name, value in columns.items())}\n"
        for i in range(count)
    )


def test_a_learning_rate_of_zero_is_found_and_a_rounded_one_is_not():
    assert kinds(rows(60, lr=lambda i: "0.0")) == ["zero_rate"]
    assert kinds(rows(60, lr=lambda i: "0.0000")) == []
    assert kinds(rows(60, lr=lambda i: max(0.0, 1e-3 * (1 - i / 59)))) == []  # the end of a schedule


@pytest.mark.parametrize("name", ["lr_scale", "optim0_lr0", "lr mult", "upd", "opt/step_size"])
def test_a_rate_of_zero_is_found_under_other_names_where_the_loss_stays(name):
    draw = random.Random(5)
    flat = [2.31 + draw.gauss(0, 0.02) for _ in range(60)]
    lines = [f"step {i} | loss {loss:.4f} | {name}: 0.000e+00\n" for i, loss in enumerate(flat)]
    assert kinds("".join(lines)) == ["zero_rate"]
    if "lr" not in name:  # it may be anything, where the loss falls or another rate is printed
        assert kinds("".join(line.replace("loss ", f"loss {3 - i / 60:.3f}") for i, line in enumerate(lines))) == []
        assert kinds("".join(line.replace(" | loss", " | lr 1e-4 | loss") for line in lines)) == []


def test_a_group_of_frozen_parameters_is_no_learning_rate_of_zero():
    assert kinds(rows(60, lr_0=lambda i: "0.0", lr_1=lambda i: "1e-4")) == []


def test_a_loss_that_is_zero_from_one_step_to_the_next_is_found():
    """OLMo's form: the step stands above its values."""
    text = "".join(
        f"2024-08-06 10:00:{i:02d} INFO [step={i}/739328,epoch=0]\n    optim/total_grad_norm={norm}\n"
        f"    train/CrossEntropyLoss={loss}\n"
        for i, (loss, norm) in enumerate([(12.18, 231.7), (11.9, 220.0), (1.8e-06, 0.0), *[(0.0, 7.7e-08)] * 8], 1)
    )
    (row,) = found(text)
    assert (row.kind, row.step) == ("vanishes", "step 3")
    assert "11.9 at step 2" in row.says
    assert found(text.replace("=7.7e-08", "=0.4")) == []  # an objective that is 0 on average


def test_a_loss_that_was_learnt_by_heart_has_not_vanished():
    assert kinds("".join(f"step {i} loss={2.5 * 0.7**i:.4f} lr=1e-4\n" for i in range(60))) == []


def test_steps_that_share_a_fraction_of_an_epoch_are_all_read():
    values = (2.2, 2.1, "nan", "nan", 0.0)
    text = "".join(f"{{'loss': {loss}, 'learning_rate': 1e-5, 'epoch': 0.53}}\n" for loss in values)
    assert kinds(text + text.replace("2.", "nan, 'x': 2.")) == ["not_finite"]
    (curve,) = [c for c in read_printed(text, "a.log").curves if c.kind == "loss"]
    assert len(curve) == 5


def test_a_jump_of_the_step_time_is_dated():
    draw = random.Random(5)
    (row,) = found(rows(200, step_time=lambda i: round((1.0 if i < 120 else 1.6) * (1 + 0.1 * draw.random()), 4)))
    assert row.kind == "slower"
    assert abs(row.line - 121) <= 3


def test_a_clear_jump_is_dated_in_a_short_log_too():
    draw = random.Random(7)
    times = [(7.5 if i < 14 else 14.7) + 0.05 * draw.random() for i in range(38)]
    line = "iteration {} | elapsed time per iteration (ms): {:.1f} | loss: 2.5\n"
    (row,) = found("".join(line.format(8 * i, t) for i, t in enumerate(times)))
    assert ("slower", 15) == (row.kind, row.line)
    assert "elapsed time per iteration (ms)" in str(row.values)


def test_a_slow_save_and_a_clock_that_runs_on_are_no_slow_steps():
    assert kinds(rows(200, step_time=lambda i: 5.0 if i % 50 == 0 else 1.0)) == []
    assert kinds(rows(200, time=lambda i: 1.0 + i)) == []


def test_the_search_for_a_loss_scale_is_healthy_and_its_end_is_not():
    def line(i, scale, norm):
        return (
            f" iteration {i}/ 900 | learning rate: 1.0E-04 | lm loss: {falling(100)[i]:E} | loss scale: {scale:.1f} | "
            f"grad norm: {norm} | number of skipped iterations: 1 | number of nan iterations: 1 |\n"
        )

    warm = "".join(line(i, 2.0 ** max(16, 32 - i), "nan" if i < 16 else 1.5) for i in range(100))
    assert kinds(warm) == []
    floor = "".join(line(i, max(1.0, 2.0 ** (16 - max(0, i - 50))), 1.5) for i in range(100))
    assert kinds(floor) == ["scale_at_floor"]


def test_what_a_bar_shows_before_the_first_value_is_no_nan():
    assert kinds(printed("plain", [math.nan, math.nan, *falling(50)])) == []


def test_a_resume_that_lost_its_weights_and_one_that_did_not():
    losses = falling()
    assert kinds(printed("plain", losses) + printed("plain", falling(100, seed=2), first=250)) == ["resumed_from_start"]
    assert kinds(printed("plain", losses) + printed("plain", losses[249:], first=250)) == []  # the same steps again


def test_losses_that_come_again_digit_by_digit_at_other_steps_repeat():
    losses = falling()
    losses[150:170] = losses[:20]
    (row,) = (r for r in found(printed("plain", losses)) if r.kind == "repeats")
    assert row.line == 151
    assert "20 values in a row" in row.why


def test_an_evaluation_that_rises_while_training_falls_overfits():
    text = "".join(
        f"step {i}: train loss {falling()[i]:.4f}, val loss {1.2 + abs(i - 100) / 100:.4f}\n" for i in range(0, 300, 10)
    )
    (row,) = found(text)
    assert row.kind == "overfits"
    assert "step 100" in row.says


def test_the_one_rank_whose_loss_is_nan_or_unlike_is_named():
    def lines(odd):
        return "".join(
            f"[rank{rank}]: step {i} loss={odd(rank, i, loss)}\n"
            for i, loss in enumerate(falling(60))
            for rank in range(4)
        )

    (row,) = found(lines(lambda rank, i, loss: "nan" if rank == 2 and i > 40 else f"{loss:.4f}"))
    assert (row.kind, row.ranks) == ("not_finite", (2,))
    assert "other 3 ranks" in row.why
    (row,) = found(lines(lambda rank, i, loss: f"{loss * (1.5 if rank == 3 else 1):.4f}"))
    assert (row.kind, row.ranks) == ("ranks_differ", (3,))
    assert found(lines(lambda rank, i, loss: f"{loss:.4f}")) == []
    near = random.Random(4)
    assert found(lines(lambda rank, i, loss: f"{loss * (1 + 0.05 * near.gauss(0, 1)):.4f}")) == []


def test_two_models_in_one_log_are_said_and_not_judged(tmp_path):
    log = tmp_path / "two.log"
    log.write_text("".join(f"step {i} loss=nan\nstep {1000 - i} loss={1 + i}\n" for i in range(100)))
    read = judge(read_curves([str(log)]))
    assert read.findings == []
    assert any("run through each other" in note for note in read.notes)


def event(tag, step, value, *, tensor=False):
    def field(number, data):
        return bytes([number << 3 | 2, len(data)]) + data

    number = struct.pack("<f", value)
    holds = field(8, b"\x08\x01" + field(4, number)) if tensor else b"\x15" + number
    data = b"\x09" + struct.pack("<d", 1e9) + b"\x10" + bytes([step & 127 | 128, step >> 7])
    data += field(5, field(1, field(1, tag) + holds))
    head = struct.pack("<Q", len(data))
    return head + struct.pack("<I", masked_crc(head)) + data + struct.pack("<I", masked_crc(data))


def test_the_checksum_is_the_published_one():
    # the check value of CRC-32C: https://reveng.sourceforge.io/crc-catalogue/all.htm#crc.cat.crc-32-iscsi
    crc = 0xE3069283
    assert masked_crc(b"123456789") == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


@pytest.mark.parametrize("tensor", [False, True])
def test_event_files_are_read_to_where_they_are_cut(tensor):
    data = b"".join(event(b"train/loss", i, 3 - i / 100, tensor=tensor) for i in range(100))
    rows, damage = read_scalars(io.BytesIO(data), lambda tag: True)
    assert list(rows["train/loss"].steps) == list(range(100))
    assert not damage
    rows, damage = read_scalars(io.BytesIO(data[:-7]), lambda tag: True)
    assert len(rows["train/loss"].values) == 99
    assert "cut off" in damage[0].what


def test_a_changed_byte_of_an_event_file_is_no_nan():
    good = event(b"loss", 1, 2.0)
    bad = bytearray(event(b"loss", 2, 2.0))
    bad[-8:-4] = struct.pack("<f", math.nan)
    rows, damage = read_scalars(io.BytesIO(good + bytes(bad) + event(b"loss", 3, math.nan)), lambda tag: True)
    assert list(rows["loss"].steps) == [1, 3]
    assert "checksum" in damage[0].what


def test_tables_of_loggers_and_exports_are_recognised_and_read(tmp_path):
    losses = [*falling(60), math.nan, math.nan, math.nan]
    files = {
        "metrics.csv": "epoch,step,train_loss,val_loss\n" + "".join(f"0,{i},{x},\n" for i, x in enumerate(losses)),
        "wandb.csv": '"Step","run-7 - train/loss","run-7 - train/loss__MIN"\n'
        + "".join(f'"{i}","{x}","{x}"\n' for i, x in enumerate(losses)),
        "trainer_state.json": json.dumps({"log_history": [{"loss": x, "step": i} for i, x in enumerate(losses)]}),
        "mlruns/0/abc/metrics/loss": "".join(f"17000000{i:05} {x} {i}\n" for i, x in enumerate(losses)),
        "events.out.tfevents.7": b"".join(event(b"loss", i, x) for i, x in enumerate(losses)),
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        assert [thing.kind for thing in recognise([str(path)])] == ["curves"], name
        (row,) = findings(read_curves([str(path)]).curves)
        assert row.kind == "not_finite", name
        assert row.run == ("run-7" if name == "wandb.csv" else "")


@pytest.mark.parametrize("text", ["name,age\nx,1\n", "17 4 5\n", '{"log_history": 3}', "step,total\n1,2\n"])
def test_other_tables_are_no_curves(tmp_path, text):
    (tmp_path / "x.csv").write_text(text)
    assert recognise([str(tmp_path / "x.csv")])[0].kind != "curves"


@pytest.mark.parametrize("form", ["plain", "hugging face", "megatron"])
def test_a_log_with_nan_says_so_in_each_command(form, tmp_path, capsys):
    log = tmp_path / "train.log"
    log.write_text(printed(form, [*falling(60), *[math.nan] * 40]))
    heads = []
    for words in ([str(log)], ["diagnose", str(log)], ["triage", str(log)]):
        assert dtdebug(words) == 1
        heads.append(capsys.readouterr().out.splitlines()[0])
    assert len({*heads}) == 1
    assert "NaN from" in heads[0]
    assert dtdebug(["diagnose", str(log), "--format", "json"]) == 1
    (row,) = json.loads(capsys.readouterr().out)["curves"]["findings"]
    assert (row["kind"], row["line"]) == ("not_finite", 61)


def test_a_healthy_log_shows_its_loss_and_ends_with_0(tmp_path, capsys):
    log = tmp_path / "train.log"
    log.write_text(printed("plain", falling()))
    assert dtdebug(["diagnose", str(log)]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("loss ")
    assert "nothing found in 1 curve" in last


def test_what_ended_a_rank_comes_before_its_curve(tmp_path, capsys):
    log = tmp_path / "train.log"
    end = '[rank3]: Traceback (most recent call last):\n[rank3]:   File "/job/train.py", line 9, in main\n'
    log.write_text(printed("plain", [*falling(60), *[math.nan] * 4]) + end + "[rank3]: KeyError: 'lr'\n")
    dtdebug(["diagnose", str(log)])
    told = capsys.readouterr().out
    assert "KeyError" in told.splitlines()[0]
    assert "Curves: The loss is NaN from" in told


def test_the_short_answer_keeps_its_form_and_lets_no_escape_through():
    class Ascii(io.StringIO):
        encoding = "ascii"

    losses = [*falling(60), *[math.nan] * 9]
    text = "".join(f"step {i} \x1b]0;x\x07loss={x}\n" for i, x in enumerate(losses))
    reading = judge(read_printed(text, "x\x1b[31m.log"))
    lines = [line.text for line in lay_out(short_answer(reading, Ascii()), prefix="dtdebug: ")]
    assert len(lines) <= MOST
    assert max(map(len, lines)) <= WIDTH
    assert all(line.isascii() for line in lines[:-1])  # the last has a dot between its parts
    assert "\x1b" not in "\n".join(lines)


def test_a_slower_run_fails_the_gate_in_one_line(tmp_path, capsys):
    for name, pace in (("a", 1.0), ("b", 1.12)):
        text = "".join(f"step {i} loss={x:.4f} step_time={pace + i % 7 / 100}\n" for i, x in enumerate(falling(60)))
        (tmp_path / f"{name}.log").write_text(text)
    runs = [str(tmp_path / "a.log"), str(tmp_path / "b.log")]
    assert dtdebug(["compare", *runs, "--max-step-time", "1.05"]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert "exceeds the limit 1.05" in line
    assert dtdebug(["compare", *runs, "--max-step-time", "1.2", "--max-loss", "1.01"]) == 0
    assert [row.failed for row in compare(*runs, 1.05, None)] == [True, False]


@pytest.mark.parametrize(
    ("text", "limit", "says"),
    [
        ("nothing\n", "1.05", "holds no curve"),
        ("".join(f"step {i} loss={i + 1}\n" for i in range(9)), "1.05", "no step"),
        ("step 1 loss=1\n", "x", "a ratio"),
    ],
)  # fmt: skip
def test_a_gate_that_can_not_be_checked_is_a_usage_error(text, limit, says, tmp_path, capsys):
    log = tmp_path / "x.log"
    log.write_text(text)
    try:
        status = dtdebug(["compare", str(log), str(log), "--max-step-time", limit])
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    assert says in capsys.readouterr().err


def test_errors_among_steps_cost_no_value_and_a_value_that_comes_late_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    pairs = PrintedLines._pairs
    monkeypatch.setattr(PrintedLines, "_pairs", lambda self, line: read.append(line) or pairs(self, line))
    errors = "".join(f"[rank{n % 8}]: RuntimeError: thing {n} broke\n" for n in range(2_000))
    waits = "".join(f"step {n} loss: -\n" for n in range(500))
    steps = "".join(f"step {n} loss: {2 - n / 1000}\n" for n in range(500, 900))

    found = read_printed(errors + waits + steps, "train.log")

    (curve,) = found.curves
    assert curve.steps[-1] == 899
    assert len(curve.steps) > 300
    assert sum(b"broke" in line for line in read) < 250


def test_in_a_huge_log_the_last_part_of_each_block_is_read_and_whatever_is_no_number(monkeypatch):
    monkeypatch.setattr(printed_lines, "_WHOLE", 100)
    blocks = [b"".join(b"step %d loss 2.%03d\n" % (n, n % 997) for n in range(k, k + 400)) for k in range(1, 4001, 400)]
    blocks[6] = blocks[6].replace(b"loss 2.555\n", b"loss nan\n")
    series, number = Series(), 1
    reader = PrintedLines(series, "a.log")
    for block in blocks:
        number = reader.read(block, number)
    (curve,) = series.curves()
    lines = dict(zip(curve.steps, curve.lines, strict=True))

    assert number == 4001
    assert all(step == line for step, line in lines.items())
    assert lines.keys() >= {1, 400, 800, 1600, 4000}
    assert lines.keys().isdisjoint(range(401, 600))
    assert sum(math.isnan(value) for value in curve.values) == 1


def test_a_unit_behind_a_space_counts():
    """One run prints seconds, the other milliseconds."""
    seconds = "".join(f"step {i} | loss 2.{i:03d} | step time {0.5 + i % 3 / 100:.3f} s\n" for i in range(60))
    millis = "".join(f"step {i} | loss 2.{i:03d} | step time {500 + i % 3 * 10:.1f} ms\n" for i in range(60))
    (one,), (two,) = ([c for c in read_printed(t, "log").curves if c.kind == "step_time"] for t in (seconds, millis))
    assert one.values == pytest.approx(two.values)


@pytest.mark.parametrize(
    ("last", "kind"),
    [
        ('{"step": 90, "loss": 2.1, "lr": 0.001, "split": "train"}', "curves"),
        ('{"step": 90, "loss": NaN, "lr": null}', "curves"),
        ('{"step": 90, "loss": 2.1, "status": "crashed"}', "log"),
        ('{"step": 90, "loss": 2.1, "message": "rank 3 has left the job"}', "log"),
        ("ValueError: shard 7 is empty", "log"),
    ],
)
def test_lines_of_metrics_end_in_metrics(last, kind, tmp_path):
    """A tracker's file says nothing of how a run ended; a program that prints such lines does."""
    file = tmp_path / f"scalars.{'json' if kind == 'curves' else 'jsonl'}"
    file.write_text("".join(f'{{"step": {i}, "loss": {3 - i / 90}, "lr": 0.001}}\n' for i in range(90)) + f"{last}\n")
    (thing,) = recognise([str(file)])
    assert thing.kind == kind
    (tmp_path / "train.log").write_text(file.read_text())
    assert [thing.kind for thing in recognise([str(tmp_path / "train.log")])] == ["log"]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("tokens_per_sec 120000", "throughput"), ("samples/s 411.5", "throughput"), ("dt 300.25 ms", "step_time"),
        ("step time 0.3", "step_time"), ("throughput 99", "throughput"),
    ],
)  # fmt: skip
def test_a_pace_may_stand_behind_its_name_without_a_sign(words, kind):
    text = "".join(f"step {i} loss 2.{i:02d} {words}\n" for i in range(40))
    assert [len(c) for c in read_printed(text, "log").curves if c.kind == kind] == [40]


def test_an_export_names_its_axis_as_the_run_does(tmp_path):
    """Weights & Biases, with the axis that a panel was given."""
    rows = "".join(f'"{10 * i}","{i}","{3 - i / 50}"\n' for i in range(60))
    head = '"train/global_step","calm-sea-1 - _step","calm-sea-1 - train/loss"\n'
    (tmp_path / "export.csv").write_text(head + rows)
    (curve,) = read_curves([str(tmp_path / "export.csv")]).curves
    assert list(curve.steps[:3]) == [0, 10, 20]
