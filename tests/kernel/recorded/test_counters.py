"""Counters that only grow: one that starts over at a resume is found, whatever the loss looks like."""

import pytest

from dtdebug.recorded.curves.judge import findings
from dtdebug.recorded.curves.read import read_printed
from dtdebug.recorded.curves.report import judge, summary_line

STYLES = (
    " iteration {n}/ 9000 | consumed samples: {count:12} | learning rate: 1.0E-04 | lm loss: {loss:.6E} |",
    "step {n} | loss {loss:.4f} | tokens_seen {count} | lr 1.0e-04",
    "{{'loss': {loss:.4f}, 'step': {n}, 'samples_seen': {count}}}",
)
RESUMED = "resumed from /ck/step-3000\n"


def log(style, count, resumed=RESUMED, steps=range(100, 6000, 50)):
    """A loss that falls smoothly, with a counter and what is printed at step 3000."""
    rows = []
    for n in steps:
        rows += [resumed] if n == 3050 else []
        rows.append(style.format(n=n, count=count(n), loss=4 - 2 * (n / 6000) ** 0.5) + "\n")
    return "".join(rows)


def kinds(text):
    return [row.kind for row in findings(read_printed(text, "log").curves)]


@pytest.mark.parametrize("style", STYLES)
def test_a_counter_that_starts_over_after_a_resume_is_found(style):
    (row,) = findings(read_printed(log(style, lambda n: (n if n < 3050 else n - 3000) * 512), "log").curves)

    assert row.kind == "counter_starts_over"
    assert "falls from 1,536,000 to 25,600" in row.says
    assert "3,050" in row.says


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    "count",
    [
        lambda n: n * 512,
        lambda n: n * 512 if n < 3050 else 3000 * 512 + (n - 3000) * 256,  # another batch size
        lambda n: (n % 1500) * 512,  # it counts in each epoch
    ],
)
def test_one_that_goes_on_or_counts_in_epochs_is_none(style, count):
    assert kinds(log(style, count)) == []


def test_a_resume_from_an_earlier_step_is_none():
    text = log(STYLES[1], lambda n: n * 512, "", range(100, 3000, 50)) + RESUMED
    text += log(STYLES[1], lambda n: n * 512, "", range(2500, 6000, 50))

    assert kinds(text) == []


def test_an_epoch_that_starts_over_while_steps_go_on_is_found():
    style = "{{'loss': {loss:.4f}, 'step': {n}, 'epoch': {count:.2f}}}"

    assert kinds(log(style, lambda n: (n if n < 3050 else n - 3000) / 500)) == ["counter_starts_over"]
    assert kinds(log(style, lambda n: n / 500)) == []


def test_a_counter_that_falls_without_a_resume_is_named_as_not_judged():
    """It is no fault, and no all-clear."""
    text = log(STYLES[1], lambda n: (n if n < 3050 else n - 3000) * 512, resumed="")
    reading = judge(read_printed(text, "log"))

    class Stream:
        encoding = "utf-8"

    assert not reading.findings
    assert "tokens_seen falls at step 3,050, which is not judged" in summary_line(reading, Stream())
