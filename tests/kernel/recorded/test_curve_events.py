"""Events of a curve: jumps with the rate that moved, resumes, rates that only grow, runs that differ; healthy ones."""

import io
import math
import random

import pytest

from dtdebug.recorded.curves.judge import findings
from dtdebug.recorded.curves.read import read_printed
from dtdebug.recorded.curves.report import judge, short_answer
from dtdebug.recorded.logs import Logs


def falling(count, seed=1, *, start=2.4, least=0.4, noise=0.04, slow=60):
    draw = random.Random(seed)
    return [least + (start - least) * math.exp(-i / slow) + noise * draw.gauss(0, 1) for i in range(count)]


def lines(losses, first=0, **columns):
    return "".join(
        f"step={first + i} loss={loss:.4f} {' '.join(f'{k}={v(i):.6g}' for k, v in columns.items())}\n"
        for i, loss in enumerate(losses)
    )


def found(text):
    return findings(read_printed(text, "log").curves)


def steady(_):
    return 1e-3


def jumped(size, at=200, count=400, back=1e9, seed=1):
    draw = random.Random(seed)
    return [
        loss + (size * math.exp(-(i - at) / back) * (1 + 0.05 * draw.gauss(0, 1)) if i >= at else 0)
        for i, loss in enumerate(falling(count, seed))
    ]


@pytest.mark.parametrize(
    ("size", "back", "rate", "says"),
    [
        (14, 150, lambda i: 0.3 if i in (199, 200) else 1e-3, "lr went from 0.001 to 0.3 at step 199"),
        (14, 20, lambda i: 0.3 if i == 200 else 1e-3, "at step 200, where lr went from 0.001 to 0.3"),
        (3, 1e9, lambda i: 0.01 if i >= 200 else 1e-3, "at step 200, where lr went from 0.001 to 0.01"),
        (40, 80, lambda i: (0.1 if i < 100 else 0.01) * (500 if 200 <= i < 210 else 1), "lr went from 0.01 to 5"),
    ],
    ids=["two steps", "comes back", "stays", "after a decay"],
)
def test_a_jump_names_the_rate_that_moved_at_its_step(size, back, rate, says):
    (row,) = found(lines(jumped(size, back=back), lr=rate))
    assert row.kind == "jumps"
    assert row.says.startswith("The loss jumped from 0.")
    assert says in row.says


def test_a_jump_names_the_batch_size_that_moved():
    (row,) = found(lines(jumped(9, back=200), lr=steady, batch_size=lambda i: 32 if i < 200 else 256))
    assert "where batch_size went from 32 to 256" in row.says


def test_the_cause_that_a_curve_shows_is_likely():
    caused, plain = (
        short_answer(judge(read_printed(lines(jumped(9, back=150), lr=rate), "log")), io.StringIO())
        for rate in (lambda i: 0.3 if i == 200 else 1e-3, steady)
    )
    assert (caused.sure, plain.sure) == ("likely", "unknown")


def test_a_jump_with_no_cause_names_none():
    (row,) = found(lines(jumped(9, back=150), lr=steady))
    assert (row.kind, row.step) == ("jumps", "step 200")
    assert "lr" not in row.says


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "rate",
    [
        lambda i: 0.02 * 1.05 ** (i / 4),
        lambda i: 0.001 + 0.01 * i,
        lambda i: 1e-4 * 2 ** (i // 40),
        lambda i: 0.02 * 1.05 ** (i / 4) * (1 + 0.001 * (i % 2)),
    ],
    ids=["factor", "warm-up without end", "steps", "uneven"],
)
def test_a_loss_that_rises_with_a_rate_that_only_grows(rate, seed):
    draw = random.Random(seed)
    losses = [(x + 0.0002 * math.exp(i / 36)) * (1 + 0.1 * draw.gauss(0, 1)) for i, x in enumerate(falling(400, seed))]
    (row,) = found(lines(losses, lr=rate))
    assert row.kind == "rises_with_rate"
    assert "lr, which grows all the time" in row.says


def test_a_rate_that_grows_is_no_fault_while_the_loss_falls():
    assert found(lines(falling(400), lr=lambda i: 1e-6 * (i + 1))) == []


RESUMES = [
    '{"event": "resume", "from": "iter_0000200", "missing_keys": 0}\n',
    "[2026-01-02 10:00:00] INFO Resuming training from checkpoint /ckpt/step_200\n",
    "loading checkpoint from runs/a/last.pt\n",
    "Restored states from ckpt-200, lr schedule too\n",
]


@pytest.mark.parametrize("said", RESUMES)
def test_a_resume_that_lost_the_weights_says_where_the_loss_begins(said):
    (row,) = found(lines(falling(200), lr=steady) + said + lines(falling(200, 2), 200, lr=steady))
    assert row.kind == "resumed_from_start"
    assert "after the resume at step 200 begins at 2." in row.says
    assert row.says.endswith("the weights were not restored")
    assert "--resume-check" in row.command


def test_a_resume_after_which_the_loss_is_higher_lost_some_state():
    after = [x + 0.8 * math.exp(-i / 30) for i, x in enumerate(falling(400)[200:])]
    (row,) = found(lines(falling(200)) + RESUMES[1] + lines(after, 200))
    assert row.says.endswith("not all of the state was restored")


@pytest.mark.parametrize("said", [*RESUMES, "no checkpoint found to resume from\n", "Saved checkpoint step_200\n"])
def test_a_resume_that_goes_on_is_healthy(said):
    losses = falling(400)
    assert found(lines(losses[:200]) + said + lines(losses[200:], 200)) == []
    assert found(said + lines(losses)) == []


def test_a_loss_like_that_of_the_beginning_is_found_where_no_line_says_that_it_was_resumed():
    (row,) = found(lines([*falling(200), *falling(200, 2)]))
    assert "to where it began" in row.says


def runs(
    norms, losses=(1.4401, 1.3686, 1.7664, 1.8631), other=1.0, form="{{'loss': {}, 'grad_norm': {}, 'epoch': {}}}\n"
):
    return "1. old\n" + "".join(
        form.format(round(x * (other if n else 1), 4), norm, 0.03 * (i + 1)) + ("2. new\n" if (n, i) == (0, 3) else "")
        for n, row in enumerate(norms)
        for i, (x, norm) in enumerate(zip(losses, row, strict=True))
    )


OLD, NEW = (4.7373, 3.9810, 6.0319, 3.9356), (1.6262, 1.4901, 3.2463, 2.0825)


@pytest.mark.parametrize("order", [(OLD, NEW), (NEW, OLD)])
def test_two_runs_of_one_text_are_compared(order):
    (row,) = found(runs(order))
    assert (row.kind, row.grave) == ("runs_differ", False)
    assert f"grad_norm {order[0][0]:.4g} in the first, {order[1][0]:.4g} in the second, at equal loss" in row.says


@pytest.mark.parametrize("text", [runs((OLD, OLD)), runs((OLD, NEW), other=1.2), runs((OLD, (4.9, 3.2, 6.5, 3.1)))])
def test_runs_with_equal_norms_or_other_losses_are_not_compared(text):
    assert found(text) == []


def cosine(i, count=400, warm=40):
    return 1e-3 * min(1, (i + 1) / warm) * (0.5 + 0.5 * math.cos(math.pi * i / count))


def wave(i):
    return 50 - abs(i % 100 - 50)


HEALTHY = {
    "warm-up and cosine": (lambda i, x, r: x, cosine),
    "cyclic": (lambda i, x, r: x * (1.4 - wave(i) / 125), lambda i: 1e-4 + 1e-5 * (50 - wave(i))),
    "warm restarts": (
        lambda i, x, r: x * (1 + 2.5 * math.exp(-(i % 100) / 10) * (i >= 100)), lambda i: cosine(i % 100, 100, 1),
    ),
    "small batches": (lambda i, x, r: x * math.exp(0.6 * r.gauss(0, 1)), steady),
    "harder data": (lambda i, x, r: x * (2 if i >= 200 else 1), steady),
    "harder data twice": (lambda i, x, r: x * (2 if 130 <= i < 260 else 1.8 if i >= 260 else 1), steady),
    "outliers": (lambda i, x, r: x * (8 if r.random() < 0.03 else 1), steady),
    "near 0": (lambda i, x, r: abs(x - 0.4) ** 2 + 1e-4, steady),
    "rate raised after some epochs": (lambda i, x, r: x * (1.25 if i >= 50 else 1), lambda i: 0.01 if i < 50 else 0.1),
    "tuned": (lambda i, x, r: 1.4 + 0.3 * r.gauss(0, 1) ** 2, cosine),
    "saw of sums": (lambda i, x, r: 0.1 + x * (i % 50) / 50, steady),
    "decay in steps": (lambda i, x, r: x * 0.5 ** (i // 130), lambda i: 0.1 ** (1 + i // 130)),
}  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shape", HEALTHY)
def test_a_healthy_shape_gives_no_finding(shape, seed):
    of, rate = HEALTHY[shape]
    draw = random.Random(seed)
    losses = [of(i, x, draw) for i, x in enumerate(falling(400, seed))]
    assert [row.says for row in found(lines(losses, lr=rate))] == []


def test_an_outlier_of_a_loss_near_its_least_is_no_spike():
    losses = [0.5 * math.exp(-i / 4) + 0.002 for i in range(120)]
    losses[60] = 0.04
    assert found(lines(losses)) == []
    losses[60] = 0.4
    assert [row.kind for row in found(lines(losses))] == ["spike"]


@pytest.mark.parametrize("count", [1, 9, 120, 399])
@pytest.mark.parametrize("ranks", [1, 3])
def test_each_line_of_a_log_is_counted_once(tmp_path, count, ranks):
    for rank in range(ranks):
        (tmp_path / f"rank_{rank}.log").write_text(lines(falling(count)))
    part = Logs([str(tmp_path)]).part
    assert (part.looked, part.known) == (ranks * count, ranks * count)


def test_an_average_that_fills_from_0_does_not_diverge():
    text = "".join(
        f"Iteration: {i * 20}, Loss function: {x:.3f}, Average Loss: {3.6 * (1 - 0.97**i) + 0.8:.3f}\n"
        for i, x in enumerate(falling(200, start=6, least=3.4))
    )
    assert found(text) == []


def test_lines_with_and_without_an_epoch_are_one_curve():
    text = "".join(f"epoch 1 step {i} loss={x:.4f}\n" for i, x in enumerate(falling(60)))
    text += "".join(f"step={i + 60} loss={x:.4f}\n" for i, x in enumerate(falling(120)[60:]))
    (curve,) = read_printed(text, "log").curves
    assert len(curve.steps) == len(curve.values) == len(curve.epochs) == 120


def warm_cosine(i, count=200, warm=10, high=3e-4):
    return high * (i + 1) / warm if i < warm else high * (1 + math.cos(math.pi * (i - warm) / (count - warm))) / 2


@pytest.mark.parametrize(
    ("rate", "resumed", "is_found"),
    [
        (lambda i: warm_cosine(i if i < 140 else i - 140), True, True),  # the schedule begins anew
        (warm_cosine, True, False),  # it goes on
        (lambda i: warm_cosine(i if i < 140 else i - 140), False, False),  # a warm restart, nothing was resumed
        (lambda i: warm_cosine(i % 50, 50), True, False),  # cyclic
    ],
)
def test_a_rate_that_starts_over_after_a_resume_is_a_scheduler_that_was_not_restored(rate, resumed, is_found):
    """Also where the loss rises by little."""
    losses = falling(200)
    text = lines(losses[:140], lr=rate)
    text += "resumed from ckpt/step_140.pt at step 140\n" if resumed else ""
    text += lines(losses[140:], 140, lr=lambda i: rate(i + 140))
    kinds = {row.kind for row in found(text)}
    assert ("rate_starts_over" in kinds) == is_found


def test_a_loss_that_is_where_it_began_was_lost_however_little_it_had_fallen():
    """The counter runs on over a resume; that of a language model falls to less than half only later."""
    (row,) = found(lines([*falling(200, start=7.5, least=3.0), *falling(200, 2, start=7.5, least=3.0)]))
    assert "jumped from 3" in row.says
    assert "to where it began" in row.says
    harder = [*falling(200, start=7.5, least=3.0), *(loss + 2 for loss in falling(200, 2, start=3.2, least=3.0))]
    assert found(lines(harder)) == []
