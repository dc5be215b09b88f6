"""`dtdebug run --parity` compares sharded layers with whole ones, and pipelines with whole batches."""

import json
import os
import re
import subprocess
import sys

import msgspec
import pytest
from places import TESTS

from dtdebug.experiments.parity.judge import judge
from dtdebug.experiments.parity.record_types import Again, Compared, Explained, Facts, Layers, Pipeline, Row, Term
from dtdebug.experiments.parity.result import parity_result
from dtdebug.experiments.repeat.training_steps import TrainingSteps

PROGRAMS = TESTS / "parity"
LIMIT = 240
"""Seconds that nothing here may take."""


def job(tmp_path, name, *arguments, ranks=2):
    """The report of a job that was compared."""
    pytest.importorskip("torch")
    report = tmp_path / "report.json"
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    options = ["--parity", "--folder", str(tmp_path / "run"), "--format", "json", "--output", str(report)]
    ended = subprocess.run(
        [sys.executable, "-m", "dtdebug", "run", *options, "--", *torchrun, str(PROGRAMS / name), *arguments],
        env=os.environ | {"OMP_NUM_THREADS": "1", "DTDEBUG_STATE": str(tmp_path / "state")},
        capture_output=True,
        timeout=LIMIT,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode()[-3000:]
    assert not list((tmp_path / "run").rglob("*.pt"))
    return json.loads(report.read_bytes())


FAULTS = [
    ("sharded.py", "norm_of_own_heads", "not-summed-in-group", "q_norm.weight and 3 more is not summed over ranks 0-1"),
    ("sharded.py", "norm_gradient_averaged", "averaged-in-group", "half that of one process"),
    ("sharded.py", "bias_on_each_rank", "bias-on-each-rank", "blocks.0.mlp.2.bias and 1 more are added 2 times"),
    ("sharded.py", "bias_gradient_divided", "layer-gradient-differs", "blocks.0.mlp.2.bias and 1 more is half"),
    ("sharded.py", "batches_of_each_rank", "inputs-of-a-group-differ", "rank 1 is given other samples than rank 0"),
    ("sharded.py", "sequence_parallel", "not-summed-in-group", "norm.weight and 1 more is not summed"),
    ("sharded.py", "partial_gradient_called_whole", "not-summed-in-group", "reaches norm."),
    ("pipelines.py", "micro_batches_summed", "stage-scaled", "4 times that of the whole batch"),
    ("pipelines.py", "scaled_in_each_pass", "passes-weigh-differently", "pass 1 counts 0.25 times"),
    ("pipelines.py", "sum_divided", "stage-scaled", "a quarter that of the whole batch"),
]


@pytest.mark.ranks
@pytest.mark.parametrize(("program", "case", "name", "words"), FAULTS)
def test_a_fault_of_a_public_report_is_named(tmp_path, program, case, name, words):
    """The first finding of the report."""
    first = job(tmp_path, program, case)["watch"][0]
    assert first["invariant"] == f"parity-{name}"
    assert words in first["cause"]
    assert first["fix"]


@pytest.mark.ranks
@pytest.mark.parametrize(("program", "case"), [(program, case) for program, case, _, _ in FAULTS])
def test_a_healthy_twin_agrees_with_one_process(tmp_path, program, case):
    """No finding, and the number of gradients that agree."""
    report = job(tmp_path, program, case, "good")
    assert report["watch"] == []
    assert " gradients agree to " in report["notes"][0]


def layers(**more):
    """The notes of two ranks that share a model."""
    facts = [Facts(optimizer="SGD", group=[0, 1], backwards=1) for _ in range(2)]
    mean = Explained(state="mean")
    compared = [Compared(name="w", size=1.0, tolerance=1e-6, after=mean, step=mean, factor=[1.0])]
    result = Row(rank=0, step=1, compared=compared, again=Again(), layers=Layers(group=[0, 1], **more))
    return [*(Row(rank=r, step=1, world=2, facts=f) for r, f in enumerate(facts)), result]


@pytest.mark.parametrize(
    ("rows", "name"),
    [
        (layers(), ""),
        (layers(apart=[("norm.weight", "summed", 1.0)]), ""),
        (layers(apart=[("norm.weight", "own", 1.0)]), "not-summed-in-group"),
        (layers(apart=[("norm.weight", "own", 1.0)], drawn=True), ""),
        (layers(apart=[("norm.weight", "factor", 0.5)]), "averaged-in-group"),
        (layers(output=[0, "mlp"], biases=["mlp.bias"]), "bias-on-each-rank"),
        (layers(output=[0, "mlp"]), "output-differs"),
        (layers(output=[0, "mlp"], summed=True), ""),
        (layers(gradients=[("w", "factor", 2.0, 1.0)]), "layer-gradient-differs"),
    ],
)
def test_what_differs_from_whole_layers_is_named(rows, name):
    """Nothing where the model draws random numbers, or communicates by hand and may mean its parts otherwise."""
    assert [v.invariant for v in judge(rows)] == ([f"parity-{name}"] if name else [])


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"agree": (4, 1e-7)}, "4 gradients agree to 1.0e-07"),
        ({"agree": (4, 1e-7), "drawn": True}, "not compared, the model draws random numbers"),
        ({"agree": (4, 1e-7), "output": [0, "mlp"], "summed": True}, "communicates by hand"),
        ({}, "steps? 1 of ranks 0-1$"),
    ],
)
def test_agreement_is_said_only_where_it_was_measured(tmp_path, more, words):
    """Nothing is said to agree where two runs of the model differ by chance, or nothing could be repeated."""
    (tmp_path / "parity").mkdir()
    rows = b"\n".join(msgspec.json.encode(row) for row in layers(**more))
    (tmp_path / "parity" / "7.jsonl").write_bytes(rows)
    assert re.search(words, parity_result(tmp_path).note)


def stages(shares, *, kind="mean", factors=(), between=(1.0, 1.0), passes=1):
    """The notes of two ranks of a pipeline with four micro-batches."""
    terms = [[], [Term(kind=kind, factors=list(factors))]]
    rows = [[(f"{rank}.w", list(shares), 0.0)] for rank in range(2)]
    return [
        Row(
            rank=r,
            step=1,
            world=2,
            pipeline=Pipeline(of=2, micro=4, passes=passes, terms=terms[r], gradients=rows[r], between=[between[r]]),
        )
        for r in range(2)
    ]


@pytest.mark.parametrize(
    ("rows", "name"),
    [
        (stages([1.0]), ""),
        (stages([4.0], factors=[("div", 4.0)]), ""),  # the loss is divided instead of the gradients
        (stages([4.0, 4.0], factors=[("div", 8.0)], passes=2), ""),
        (stages([4.0]), "stage-scaled"),
        (stages([0.25], kind="sum"), "stage-scaled"),
        (stages([0.25, 1.0], passes=2), "passes-weigh-differently"),
        (stages([1.0], between=(0.5, 0.9)), "changed-after-reduction"),
        (stages([1.0], between=(0.5, 0.5)), ""),
    ],
)
def test_what_a_pipeline_does_otherwise_is_named(rows, name):
    """By the shares of whole batches, and what the loss is divided by."""
    assert [v.invariant for v in judge(rows)] == ([f"parity-{name}"] if name else [])


def test_steps_that_only_set_up_state_are_no_steps_of_training():
    """Torch steps an optimizer with gradients of zero to have a state; its later steps count."""
    torch = pytest.importorskip("torch")
    seen = []
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.AdamW([weight])
    steps = TrainingSteps(lambda *_: seen.append("begins"), lambda _: seen.append("ends"))
    for gradient in (0.0, 1.0, 0.0):
        weight.grad = torch.full((3,), gradient)
        steps.begin(optimizer, (optimizer,), {})
        optimizer.step()
        steps.end(optimizer)
    assert seen == ["begins", "ends"] * 2


def test_a_step_within_a_step_is_one_and_a_step_that_raised_is_forgotten():
    """An optimizer may step others."""
    torch = pytest.importorskip("torch")
    seen = []
    both = [torch.optim.SGD([torch.nn.Parameter(torch.ones(1))]) for _ in range(2)]
    for one in both:
        one.param_groups[0]["params"][0].grad = torch.ones(1)
    steps = TrainingSteps(lambda *_: seen.append("begins"), lambda _: seen.append("ends"))
    steps.begin(both[0], (both[0],), {})  # raises, so that it never ends
    steps.begin(both[0], (both[0],), {})
    steps.begin(both[1], (both[1],), {})
    steps.end(both[1])
    steps.end(both[0])
    assert seen == ["begins", "begins", "ends"]


def test_a_stage_that_loses_a_pass_is_named():
    """Its gradient lacks the first of two passes, the other stage's does not."""
    first, second = stages([0.0, 1.0], passes=2)[0], stages([1.0, 1.0], passes=2)[1]
    (found,) = judge([first, second])
    assert found.cause == "The gradient of w in stage 0 is without that of pass 1."
