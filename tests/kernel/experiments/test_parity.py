"""`dtdebug run --parity` names the factor by which a step differs from that of one process, and `--nan` the place where
a value that is not finite begins; both leave the training as it was."""

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from places import TESTS

from dtdebug.cli import main
from dtdebug.experiments.nonfinite.judge import judge as judge_nan
from dtdebug.experiments.nonfinite.record_types import Found, Origin
from dtdebug.experiments.nonfinite.result import nonfinite_result
from dtdebug.experiments.nonfinite.source import operation_line
from dtdebug.experiments.parity.judge import judge
from dtdebug.experiments.parity.record_types import Compared, Explained, Facts, Loss, Made, Row, SeenCall, Summed, Term
from dtdebug.experiments.parity.result import parity_result
from dtdebug.experiments.parity.source import scaling_line, without_scaling
from dtdebug.experiments.repeat.calls import CallRecorder
from dtdebug.experiments.repeat.foreseen import limits
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.presentation.answer import build_answer
from dtdebug_taxonomy.presentation.answer_text import MOST, WIDTH, lay_out

PROGRAMS = TESTS / "parity"
LIMIT = 240
"""Seconds that nothing here may take."""


def job(tmp_path, ranks, option, name, *arguments):
    """The report of a job that was measured, and what it printed."""
    pytest.importorskip("torch")
    report = tmp_path / "report.json"
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    options = [option, "--folder", str(tmp_path / "run"), "--format", "json", "--output", str(report)]
    ended = subprocess.run(
        [sys.executable, "-m", "dtdebug", "run", *options, "--", *torchrun, str(PROGRAMS / name), *arguments],
        env=os.environ | {"OMP_NUM_THREADS": "1", "DTDEBUG_STATE": str(tmp_path / "state")},
        capture_output=True,
        timeout=LIMIT,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode()[-3000:]
    assert not list((tmp_path / "run").rglob("*.pt"))
    return json.loads(report.read_bytes()), ended.stdout.decode()


def two_ranks(tmp_path, name, *arguments, **variables):
    """What two ranks of a program print, started without a launcher."""
    pytest.importorskip("torch")
    env = os.environ | {"OMP_NUM_THREADS": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", **variables}
    rendezvous = (tmp_path / f"store-{len(list(tmp_path.iterdir()))}").as_uri()
    command = [sys.executable, str(PROGRAMS / name), *arguments]
    ranks = [
        subprocess.Popen(command, env=env | {"RANK": str(r), "STORE": rendezvous}, stdout=subprocess.PIPE)
        for r in range(2)
    ]
    return [rank.communicate(timeout=LIMIT)[0].decode() for rank in ranks]


# --- real jobs


@pytest.mark.ranks
def test_the_trained_weights_are_the_same_bit_by_bit_with_and_without(tmp_path):
    """Weights, and the random states after the last step, also where steps were compared and a fault was found."""
    from dtdebug.experiments.collectives import settings
    from dtdebug.live.agent.arm import BOOTSTRAP

    told = {"watched": str(tmp_path / "run"), "parity": [1, 2, 5]}
    variables = settings.job_variables(tmp_path / "run", ["parity", "nonfinite"], told)
    path = os.pathsep.join([BOOTSTRAP, *filter(None, [os.environ.get("PYTHONPATH")])])
    plain = two_ranks(tmp_path, "steps.py", "divided")
    measured = two_ranks(tmp_path, "steps.py", "divided", PYTHONPATH=path, **variables)
    assert plain == measured
    assert "weights" in plain[0]
    found = parity_result(tmp_path / "run").violations
    assert [(v.invariant, v.step) for v in found] == [("parity-loss-divided", 1)]
    assert found[0].line == line("steps.py", "# DIVIDED")
    assert nonfinite_result(tmp_path / "run").violations == ()
    assert not list((tmp_path / "run").rglob("*.pt"))


@pytest.mark.ranks
def test_a_loss_that_depends_on_other_ranks_is_measured_without_a_trace(tmp_path):
    """Weights, random states and torch's anomaly mode are what they would have been."""
    from dtdebug.experiments.collectives import settings
    from dtdebug.live.agent.arm import BOOTSTRAP

    told = {"watched": str(tmp_path / "run"), "parity": [1, 2, 5]}
    variables = settings.job_variables(tmp_path / "run", ["parity"], told)
    path = os.pathsep.join([BOOTSTRAP, *filter(None, [os.environ.get("PYTHONPATH")])])
    plain = two_ranks(tmp_path, "losses.py", "correlation")
    assert plain == two_ranks(tmp_path, "losses.py", "correlation", PYTHONPATH=path, **variables)
    assert "weights" in plain[0]
    found = parity_result(tmp_path / "run").violations
    assert [(v.invariant, v.line) for v in found] == [("parity-sum-without-gradient", line("losses.py", "# HERE"))]


FAULTS = [
    ("reports.py", "policy_past_ddp", "past-the-wrapper"),
    ("reports.py", "token_sum_of_all", "loss-divided"),
    ("reports.py", "raw_token_sums", "loss-is-a-sum"),
    ("reports.py", "loss_with_weights", "outside-the-wrapper"),
    ("reports.py", "lora_beside", "past-the-wrapper"),
    ("reports.py", "no_sampler", "same-samples"),
    ("reports.py", "parts_of_wrapped", "past-the-wrapper"),
    ("reports.py", "mean_of_means", "uneven-means"),
    ("reports.py", "cleared_in_micro_steps", "passes-weigh-differently"),
    ("reports.py", "last_pass_without_sync", "not-averaged"),
    ("reports.py", "divided_by_hand", "gradients-scaled"),
    ("reports.py", "summed_by_hand", "gradients-scaled"),
    ("reports.py", "frozen_on_one_rank", "frozen-on-some-ranks"),
    ("reports.py", "evaluation_mode_on_one_rank", "mode-differs"),
    ("reports.py", "codebook_per_rank", "rank-computes-otherwise"),
    ("reports.py", "clipped_before_reduction", "clipped-before-reduction"),
    ("reports.py", "rate_of_one_rank", "update-differs"),
    ("others.py", "accelerated", "past-the-wrapper"),
    ("others.py", "lightning", "loss-divided"),
    ("others.py", "hook_that_sums", "gradients-scaled"),
    ("others.py", "one_layer_left_out", "outside-the-wrapper"),
    ("others.py", "half_of_the_group", "ranks-weigh-differently"),
    ("losses.py", "correlation", "sum-without-gradient"),
    ("losses.py", "log_variances", "outside-the-wrapper"),
    ("losses.py", "in_a_library", "loss-multiplied"),
]
HEALTHY = [
    *(("reports.py", case) for case in ("gan", "regularised", "scaled_fp16", "sharded_bf16")),
    ("losses.py", "logged_sum"),
    ("losses.py", "clipped_by_hand"),
]


@pytest.mark.ranks
@pytest.mark.parametrize(("program", "case", "name"), FAULTS)
def test_a_fault_of_a_public_report_is_named_with_its_factor(tmp_path, program, case, name):
    """The first finding of the report, with its cause, a remedy and the step."""
    report, _ = job(tmp_path, 2 if program == "reports.py" else 3, "--parity", program, case)
    first = report["watch"][0]
    assert first["invariant"] == f"parity-{name}"
    assert first["cause"]
    assert first["fix"]
    assert first["step"] == 1
    assert report["answer"]["headline"].startswith(first["cause"][:60]) or not first.get("sure", True)


@pytest.mark.ranks
@pytest.mark.parametrize(("program", "case"), [*((p, c) for p, c, _ in FAULTS), *HEALTHY])
def test_a_healthy_twin_agrees_with_one_process(tmp_path, program, case):
    """No finding, and a note with the measured tolerance."""
    report, _ = job(tmp_path, 2 if program == "reports.py" else 3, "--parity", program, case, "good")
    assert report["watch"] == []
    assert " are those of one process: " in report["notes"][0]
    assert "tolerance" in report["notes"][0]


@pytest.mark.ranks
@pytest.mark.parametrize(
    ("case", "ranks", "step", "mark", "words"),
    [
        ("sqrt", [1], 4, "# SQRT", "The first NaN is the result of a square root in `mid` (Scaled) on rank 1 alone"),
        ("half", [1], 4, "# HALF", "The first infinity is the result of a power"),
        ("masked", [1], 4, "# SOFTMAX", "A softmax in `mid` (Masked) makes NaN of a mask"),
        ("root_at_zero", [1], 4, "# ROOT", "the derivative of a square root in `mid` (Scaled) is not on rank 1 alone"),
        ("log", [0, 1], 3, "# LOG", "the logarithm of 0, after the model on all 2 ranks"),
        ("ignored", [0], 2, "", "a mean over no target"),
        ("input", [1], 3, "", "The input of the model has NaN on rank 1 alone"),
    ],
)
def test_where_the_first_value_that_is_not_finite_begins(tmp_path, case, ranks, step, mark, words):
    """Rank, step, line and operation."""
    report, _ = job(tmp_path, 2, "--nan", "broken.py", case)
    found = report["watch"][0]
    assert (found["invariant"], found["ranks"], found["step"]) == ("first-not-finite", ranks, step)
    assert words in found["cause"]
    if mark:
        assert (Path(found["file"]).name, found["line"]) == ("broken.py", line("broken.py", mark))


@pytest.mark.ranks
def test_a_mask_of_infinite_values_is_no_finding(tmp_path):
    """A causal mask has infinite scores in every step."""
    report, _ = job(tmp_path, 2, "--nan", "broken.py", "healthy")
    assert report["watch"] == []
    assert report["notes"][0].startswith("nan: all losses and gradients of 6 steps are finite")


@pytest.mark.ranks
@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("no_optimizer", "nothing compared: no optimizer step was seen"),
        ("noise_of_the_device", "not deterministic: two equal recomputations differ in net.weight"),
        ("contrastive", "values of other ranks (all_gather, others.py:"),
    ],
)
def test_what_is_not_covered_is_said_instead_of_a_verdict(tmp_path, case, words):
    """One line, and no finding."""
    report, _ = job(tmp_path, 2, "--parity", "others.py", case)
    assert report["watch"] == []
    assert words in report["notes"][0]


def test_what_the_source_shows_is_said_before_the_run(tmp_path):
    """Place and reason, also in a module that a package imports; nothing of a program without such parts."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "__init__.py").write_text("from .norms import norm\n")
    (tmp_path / "parts" / "norms.py").write_text("from torch import nn\nnorm = nn.BatchNorm2d(4)\n")
    (tmp_path / "unused.py").write_text("import deepspeed\n")
    (tmp_path / "train.py").write_text("import re, parts\npattern = re.compile('a')\n")
    assert limits(tmp_path / "train.py", "parity") == [
        "norms.py:2: batch norm takes its statistics from each rank, one process would from all samples"
    ]
    assert limits(tmp_path / "train.py", "nan") == []
    (tmp_path / "clean.py").write_text("import re\n")
    assert limits(tmp_path / "clean.py", "parity") == []
    (tmp_path / "sharded.py").write_text("from torch.distributed.fsdp import fully_shard\n")
    assert limits(tmp_path / "sharded.py", "parity") == []
    assert limits(tmp_path / "sharded.py", "nan")[0].startswith("sharded.py:1: a sharded model can't be repeated")
    command = ["run", "--parity", "--folder", str(tmp_path / "run"), "--", sys.executable, str(tmp_path / "train.py")]
    ended = subprocess.run(
        [sys.executable, "-m", "dtdebug", *command], capture_output=True, timeout=LIMIT, check=False, cwd=tmp_path
    )
    assert b"dtdebug: parity: norms.py:2: batch norm takes" in ended.stderr


def test_the_line_of_an_operation_is_that_of_its_function(tmp_path):
    """Divisions of other functions do not count; two in one function name none."""
    program = tmp_path / "t.py"
    program.write_text("def a(x):\n    return x / 2\ndef b(x, n):\n    loss = x / n\n    loss.backward()\n")
    assert operation_line(str(program), 5, "div") == 4
    program.write_text("def b(x, n):\n    y = x / 2\n    loss = y / n\n    loss.backward()\n")
    assert operation_line(str(program), 4, "div") == 0


def line(name, mark):
    """The line of a program that has this mark."""
    return next(n for n, text in enumerate((PROGRAMS / name).read_text().splitlines(), 1) if mark in text)


# --- judging, on notes as ranks write them


def notes(*, compared=(), losses=((), ()), world=2, calls=None, **more):
    """The notes of two ranks of one step."""
    calls = calls or [
        SeenCall(kind="Net", wrapper="DistributedDataParallel", file="t.py", line=3, training=2, used=True)
    ]
    facts = [
        Facts(optimizer="SGD", calls=calls, losses=[Loss(file="t.py", line=5, terms=list(terms))], backwards=1, **more)
        for terms in losses
    ]
    rows = [Row(rank=r, step=1, world=world, facts=f) for r, f in enumerate(facts)]
    result = Row(rank=0, step=1, compared=list(compared) or [gradient("w")])
    return [*rows, result, Row(rank=0, wrapped="DistributedDataParallel")]


def gradient(name, state="mean", **more):
    """A parameter whose gradient is made up so after the backward pass and at the step."""
    how = Explained(state=state, **more)
    return Compared(name=name, size=1.0, tolerance=1e-6, after=how, step=how, factor=[1.0, 1.0])


MEAN = Term(kind="mean", count=8.0, op="NllLoss")


@pytest.mark.parametrize(
    ("rows", "name", "words"),
    [
        (notes(losses=((MEAN,), (MEAN,))), "", ""),
        (
            notes(losses=((msgspec.structs.replace(MEAN, factors=[("mul", 1.02)]),), (MEAN,))),
            "loss-scaled-on-a-rank",
            "The loss of rank 0 is 1.02 times",
        ),
        (  # by the number of ranks, but on one of them only
            notes(losses=((msgspec.structs.replace(MEAN, factors=[("div", 2.0)]),), (MEAN,))),
            "loss-scaled-on-a-rank",
            "The loss of rank 0 is 0.5 times",
        ),
        (
            notes(losses=((MEAN,), (msgspec.structs.replace(MEAN, count=16.0),))),
            "uneven-means",
            "rank 0's over 8 and rank 1's over 16",
        ),
        (
            notes(losses=[[msgspec.structs.replace(MEAN, factors=[("div", 2.0)])]] * 2),
            "loss-divided",
            "The loss is divided by 2, which is the number of ranks: if meant so",
        ),
        (
            notes(compared=[gradient("a"), gradient("b", "own")]),
            "not-averaged",
            "b is not averaged at step 1, though the wrapper was called",
        ),
        (
            notes(compared=[gradient("a", "factor", factor=2.0), gradient("b", "factor", factor=2.0)]),
            "gradients-scaled",
            "Every gradient is 2 times that of one process: summed",
        ),
        (
            notes(compared=[gradient("a", "weights", weights={"0": [0.5, 0.0]})]),
            "ranks-weigh-differently",
            "rank 1 does not count",
        ),
        (notes(rows=[[1, 2, 3, 4]]), "same-samples", "Ranks 0-1 train on the same samples: each counts twice."),
        (notes(compared=[gradient("a", "other", off=0.1, rest=0.1)]), "gradients-differ", "10.00% off the mean"),
        (notes(compared=[msgspec.structs.replace(gradient("a"), finite=False)]), "", ""),
    ],
)  # fmt: skip
def test_what_differs_is_named_with_its_factor(rows, name, words):
    """The cause of the first finding; nothing where the step is that of one process."""
    found = judge(rows)
    assert [v.invariant for v in found[:1]] == ([f"parity-{name}"] if name else [])
    assert not found or words in found[0].cause


def test_a_loss_divided_by_a_number_that_may_be_meant_is_no_certain_cause():
    """Two is the number of ranks, and the source does not show what it stands for."""
    halved = msgspec.structs.replace(MEAN, factors=[("div", 2.0)])
    assert not judge(notes(losses=[[halved]] * 2))[0].sure


def test_the_answer_has_the_cause_the_line_and_the_remedy(tmp_path):
    """In the form of every answer; it is certain, and proposes no further measurement."""
    source = tmp_path / "t.py"
    source.write_text("import torch\n\n\n\nloss.backward()\n")
    found = judge(notes(compared=[gradient("a", "factor", factor=2.0)]))
    snapshot = Snapshot(watched=tuple(msgspec.structs.replace(v, file=str(source)) for v in found))
    diagnosis = diagnose(load(), snapshot)
    answer = build_answer(diagnosis, snapshot, code_at=lambda file, line: "loss.backward()")
    assert answer.headline == found[0].cause
    assert (answer.spots[0].ranks, answer.spots[0].state) == ((0, 1), "step 1")
    assert answer.fix.text == found[0].fix
    assert answer.sure == "certain"
    assert answer.next is None
    assert diagnosis.symptoms[0].code == "D.2.4"
    lines = lay_out(answer, prefix="dtdebug: ")
    assert len(lines) <= MOST
    assert all(len(row.text) <= WIDTH for row in lines)


@pytest.mark.parametrize(
    ("source", "at", "gradients", "expected"),
    [
        ("def f(loss):\n    w = dist.get_world_size()\n    loss = loss / w\n    loss.backward()\n", 4, False, 3),
        ("def f(loss):\n    loss = loss / accumulation\n    loss.backward()\n", 3, False, 0),
        ("def f(p, world):\n    loss.backward()\n    p.grad /= world\n", 2, True, 3),
        ("def g(p):\n    p.grad /= world_size\ndef f(loss):\n    loss.backward()\n", 4, False, 0),
        ("def f(m, loss):\n    loss.backward()\n    for p in m:\n        p.grad.div_(world_size)\n", 2, True, 4),
        ("n = len(data) / world_size\nloss.backward()\n", 2, False, 0),
        ("def f(:\n", 1, False, 0),
    ],
)
def test_the_line_that_divides_by_the_number_of_ranks_is_found(tmp_path, monkeypatch, source, at, gradients, expected):
    """In the function of the backward pass, and not where something else is divided."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.py").write_text(source)
    assert scaling_line(str(tmp_path / "t.py"), at, gradients=gradients) == expected


@pytest.mark.parametrize(
    ("source", "at", "gradients", "left"),
    [
        ("def f(loss):\n    loss = loss / world_size\n    loss.backward()\n", 2, False, ["loss.backward()"]),
        ("def f(loss):\n    (loss / world_size).backward()\n", 2, False, ["(loss).backward()"]),
        ("def f(a, b):\n    t = (a + b) / dist.get_world_size() + b\n", 2, False, ["t = a + b + b"]),
        (
            "def f(loss):\n    if many:\n        loss /= world_size\n    loss.backward()\n",
            3,
            False,
            ["loss.backward()"],
        ),
        ("def f(m):\n    for p in m:\n        p.grad.div_(world_size)\n    step()\n", 3, True, ["step()"]),
        ("def f(loss):\n    x = 1; loss /= world_size\n", 2, False, None),
        ("def f(loss):\n    loss /= world_size\n", 2, False, None),
        ("def f(loss):\n    loss = loss / accumulation\n", 2, False, None),
        ("def f(a, b):\n    t = a / world_size + b / world_size\n", 2, False, None),
    ],
)
def test_a_patch_takes_the_number_of_ranks_out_of_one_line(tmp_path, monkeypatch, source, at, gradients, left):
    """With what then does nothing; none where a statement would be lost, or two are scaled."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.py").write_text(source)
    patch = without_scaling("t.py", at, gradients=gradients)
    if left is None:
        assert not patch
        return
    (tmp_path / "p").write_text(patch)
    subprocess.run(["patch", "-p1", "-i", "p"], check=True, capture_output=True, timeout=20)
    assert [line.strip() for line in (tmp_path / "t.py").read_text().splitlines()[1:]] == left


def test_a_factor_is_named_at_the_line_that_made_it_and_taken_out_there(tmp_path, monkeypatch):
    """Also in a function that a library calls: the backward pass is then in none of the user's lines around it."""
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "m.py"
    source.write_text("class M:\n    def step(self, loss):\n        return loss / self.world_size\n\n\nfit(M())\n")
    made = Made(file=str(source), line=3, own_file=str(source), own_line=3, text="return loss / self.world_size")
    halved = msgspec.structs.replace(MEAN, factors=[("div", 2.0)], made=[made])
    found = judge(notes(losses=[[halved]] * 2))[0]
    assert (found.line, found.sure) == (3, True)
    assert "-        return loss / self.world_size\n+        return loss\n" in found.diff
    twice = msgspec.structs.replace(MEAN, factors=[("div", 2.0)] * 2, made=[made] * 2)
    assert not judge(notes(losses=[[twice]] * 2))[0].diff  # one of two
    total = [Summed(file=str(source), line=1, norm=1.0, scaled=True)]
    assert not judge(notes(losses=[[halved]] * 2, sums=total))[0].diff  # of the sum over the ranks it makes the mean


def test_means_over_other_numbers_of_values_are_named_where_they_are_taken():
    """Not at the backward pass."""
    rows = [[msgspec.structs.replace(MEAN, count=n, at=Made(file="loss.py", line=9))] for n in (8.0, 16.0)]
    assert [(v.file, v.line) for v in judge(notes(losses=rows))[:1]] == [("loss.py", 9)]


def test_the_line_of_an_operation_is_named_only_if_there_is_one(tmp_path, monkeypatch):
    """Of two divisions none is."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.py").write_text("p = torch.log(x)\nq = a / b\nr = c / d\nloss.backward()\n")
    assert operation_line(str(tmp_path / "t.py"), 4, "log") == 1
    assert operation_line(str(tmp_path / "t.py"), 4, "div") == 0


def test_a_rank_without_a_value_of_its_own_got_it_with_the_reduction():
    """Rank 1 alone is named, and rank 0 as one that was given it."""
    origin = Origin(where="forward", op="sqrt", module="mid", kind="nan", rows=[2], smallest=-1.0, largest=1.0)
    rows = [
        Found(rank=0, world=2, trigger="gradient", step=3),
        Found(rank=1, world=2, trigger="loss", step=3, found=origin, samples=[17]),
    ]
    (found,) = judge_nan(rows)
    assert found.ranks == (1,)
    assert "on rank 1 alone, step 3" in found.cause
    assert "sample 2 of the batch, number 17 of the data set" in found.means
    assert "Own gradients of rank 0 are finite" in found.means


def test_what_no_repetition_shows_is_not_known():
    """Ranks whose repeated step is finite: no module is named, and the cause is not sure."""
    (found,) = judge_nan([Found(rank=r, world=2, trigger="gradient", step=1) for r in range(2)])
    assert not found.sure
    assert "Where it arises is not known" in found.means


def test_notes_that_cannot_be_read_are_left_out(tmp_path):
    """A truncated line, another version, no rank at all."""
    (tmp_path / "parity").mkdir()
    assert "nothing compared" in parity_result(tmp_path).note
    (tmp_path / "parity" / "7.jsonl").write_text('{"rank": 0, "step": 1\n[1, 2]\n{"rank": "x"}\n')
    assert "nothing compared" in parity_result(tmp_path).note
    (tmp_path / "parity" / "8.jsonl").write_text('{"rank": 0, "step": 1, "uncovered": "DeepSpeed"}\n')
    assert parity_result(tmp_path).note == "parity: nothing compared: DeepSpeed is not covered"


@pytest.mark.parametrize("steps", ["0", "1,x", "", "-1", ",".join(map(str, range(1, 40)))])
def test_steps_that_are_no_numbers_are_refused(steps, capsys):
    """One line, and exit status 2."""
    assert main.main(["run", "--parity", f"--steps={steps}", "--", "true"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_part_that_a_method_of_the_model_calls_is_placed_outside_of_the_model():
    """There the user goes past the wrapper, not in the model's own code."""
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(2, 2)

        def compute_loss(self, given):
            return self.inner(given).sum()

    net, recorder = Net(), CallRecorder(copies=False)
    recorder.start()
    try:
        line = sys._getframe().f_lineno + 1
        net.compute_loss(torch.ones(1, 2))
    finally:
        recorder.stop()
    assert [(Path(call.file).name, call.line) for call in recorder.calls] == [(Path(__file__).name, line)]
