"""What differs between a run that works and one that does not: from words, tables and lists of settings."""

import pytest

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.presentation.answer import build_answer
from dtdebug_taxonomy.text.compared_runs import find_in_blocks, find_in_tables
from dtdebug_taxonomy.text.contrasts import find_contrasts


def answer_to(situation, output=""):
    snapshot = Snapshot(situation=situation, output=output)
    return build_answer(diagnose(load(), snapshot), snapshot)


@pytest.mark.parametrize(
    ("said", "kind", "good", "bad"),
    [
        ("stage 2 wrong, stage 1 right", "option", "1", "2"),
        ("With torch 2.3 it works; torch 2.4 hangs.", "release", "2.3", "2.4"),
        ("We upgraded from PyTorch 2.3 to 2.4 and our script hangs at the first barrier.", "release", "2.3", "2.4"),
        ("It works with fsdp_version 1 and fails with fsdp_version 2.", "option", "1", "2"),
        ("batch_size=4 works, batch_size=8 hangs", "option", "4", "8"),
        ("With bf16 the loss is nan, with fp32 it is stable.", "choice", "fp32", "bf16"),
        ("It hangs with FSDP but not with DeepSpeed.", "choice", "DeepSpeed", "FSDP"),
        ("On my laptop it works, on the cluster it hangs.", "place", "my laptop", "the cluster"),
        ("With compile on it crashes, with compile off it runs fine.", "part", "off", "on"),
        ("I get 1.1 s/it with torch 2.4.0 and now I get 2.3 s/it with 2.5.0.", "release", "2.4.0", "2.5.0"),
        ("It fails only with PEFT and colocate together.", "part", "", "only with PEFT and colocate together"),
        ("ZeRO 1 and 2 give different losses for the same setting.", "option", "", "1 and 2"),
        ("1 GPU works, 4 GPUs hang.", "count", "1", "4"),
    ],
)
def test_the_factor_and_its_sides_are_read(said, kind, good, bad):
    """Two outcomes next to each other, with different values of one thing; the span is in the text."""
    found = find_contrasts(said)[0]

    assert (kind, good, bad) == (found.kind, found.good, found.bad)
    assert 0 <= found.start < found.end <= len(said)


@pytest.mark.parametrize(
    "said",
    [
        "FSDP is faster than DDP here, and gloo is slower than nccl.",
        "Does it work with gloo? With nccl it hangs.",
        "It hangs with gloo, and with nccl it hangs too.",
        "It should work with torch 2.3; with torch 2.4 it hangs.",
        "It works with 4 GPUs, and with 2 GPUs it hangs.",  # fewer that fail are another matter
        "We use DDP with bf16 on two nodes.",
    ],
)
def test_what_merely_compares_or_wishes_is_no_contrast(said):
    """A question, a wish, one outcome for both."""
    assert () == find_contrasts(said)


def test_a_table_of_runs_names_its_column():
    """By the outcome of each run, or by the column that changes a measured value most."""
    outcomes = "| torch | nccl | result |\n|--|--|--|\n| 2.3 | 2.20 | ok |\n| 2.4 | 2.20 | hangs |\n"
    losses = "| loss | TP | PP |\n|--|--|--|\n| 3.07 | 1 | 1 |\n| 4.46 | 8 | 1 |\n| 3.10 | 1 | 8 |\n"
    noise = "| loss | TP | PP |\n|--|--|--|\n| 3.07 | 1 | 1 |\n| 3.08 | 8 | 1 |\n| 3.10 | 1 | 8 |\n"

    assert [("torch", "2.3", "2.4")] == [(c.factor, c.good, c.bad) for c in find_in_tables(outcomes)]
    assert [("TP", "1", "8")] == [(c.factor, c.good, c.bad) for c in find_in_tables(losses)]
    assert [] == [*find_in_tables(noise)]


def test_a_table_names_the_column_that_a_value_is_proportional_to():
    """Also if no two runs differ in one column alone; a value that hardly varies follows none."""
    rows = ((2, 32, 1, 5.1), (2, 8, 4, 20.9), (2, 2, 16, 88.0), (4, 2, 8, 41.3))
    head = "| GPUs | batch | gradient acc | loss |\n|--|--|--|--|\n"
    follows = head + "".join("| {} | {} | {} | {} |\n".format(*row) for row in rows)
    steady = head + "".join("| {} | {} | {} | 2.{} |\n".format(*row[:3], n) for n, row in enumerate(rows))

    assert [("gradient acc", "", "1 and 16")] == [(c.factor, c.good, c.bad) for c in find_in_tables(follows)]
    assert [] == [*find_in_tables(steady)]


def test_two_lists_of_settings_are_compared():
    """What differs between any two runs is left out; many differences say nothing."""
    pair = "works:\ntorch==2.3.0\nseed: 1\nnccl: 2.20\n\nfails:\ntorch==2.4.0\nseed: 2\nnccl: 2.20\n"
    unlike = "works:\na: 1\nb: 1\nc: 1\nd: 1\n\nfails:\na: 2\nb: 2\nc: 2\nd: 2\n"

    assert [("torch", "2.3.0", "2.4.0")] == [(c.factor, c.good, c.bad) for c in find_in_blocks(pair)]
    assert [] == [*find_in_blocks(unlike)]


def test_the_difference_is_the_first_line_the_good_side_the_fix_and_bisecting_the_next_step():
    found = answer_to("DPO with FSDP on 8 GPUs. It works with fsdp_version 1 and fails with fsdp_version 2.")
    release = answer_to("With DeepSpeed 0.17.5 the gradients are right, with 0.19.3 they are wrong. Several GPUs.")

    assert "What differs: FSDP version 1 works, 2 does not." == found.headline
    assert "FSDP version 1" in found.fix.text
    assert "dtdebug bisect" in found.next.command
    assert "possible" == found.sure
    assert "What differs: deepspeed 0.17.5 works, 0.19.3 does not." == release.headline
    assert "in between" in release.next.text


def test_what_is_printed_comes_before_a_difference():
    """A message that names its cause, which only distributed programs print."""
    found = answer_to(
        "With fsdp_version 1 it works, with fsdp_version 2 it fails.",
        "[0] NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000",
    )

    assert not found.headline.startswith("What differs")


@pytest.mark.parametrize(
    "unit", ["with a it works, ", "from x ", "not with ", "| a ", "only with a b ", "1.1 s/it with 2.4 and "]
)
@pytest.mark.timeout(60)
def test_repetition_is_read_to_the_limit(unit):
    """Hostile text ends in proportion to its length, and gives no flood of contrasts."""
    text = unit * 20_000

    assert len([*find_contrasts(text), *find_in_tables(text), *find_in_blocks(text)]) < 100


def test_a_fault_of_resuming_is_measured_and_not_bisected():
    """That it works without interruption says no more than that it comes with resuming; no save is forecast."""
    resumed = answer_to(
        "DDP with torchrun. After resuming from a checkpoint the loss jumps. Without interruption all is fine."
    )
    memory = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.16 GiB.\n"
    step = answer_to(f"I train with PyTorch FSDP on 8 GPUs.\n{memory}")
    save = answer_to(f"I train with PyTorch FSDP on 8 GPUs. It fails while the checkpoint is saved.\n{memory}")

    assert "--resume-check" in resumed.next.command
    assert "dtdebug rehearse --memory" in step.next.command
    assert save.next is None or "rehearse" not in save.next.command
