"""What a user has found to make the difference."""

import pytest

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.text.comparisons import find_condition


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("Eight GPUs, it stops at once. With static_graph=False it works.", "with static_graph=False"),
        ("Without the callback it doesn't hang.", "without the callback"),
        ("If I set NCCL_P2P_DISABLE=1, it works.", "if you set NCCL_P2P_DISABLE=1"),
        ("Everything is fine without pin_memory", "without pin_memory"),
        ("After disabling the profiler the hang disappears", "after disabling the profiler"),
        (
            "FSDP hangs on 8 GPUs, but without activation checkpointing training runs normally.",
            "without activation checkpointing",
        ),
        ("If I add drop_last=True, the script completes", "if you add drop_last=True"),
        (
            "DDP is slow. If we add self.no_sync() around forward() then it works.",
            "if you add self.no_sync() around forward()",
        ),
        ("Nothing is reduced, with that line deleted the job gets properly synchronized", "with that line deleted"),
        ("Resuming an MoE fails, for a dense model it works:", "for dense model"),
        ("7 + 8 hangs. The same job with an equal number of ranks works fine, 7 + 7.", "with an equal number of ranks"),
        ("It fails with pp: 2 after a step; pp: 1 works.", "with pp 1"),
        ("With the --bf16 flag the loss is 0. With the --fp16 flag training is a success.", "with the --fp16 flag"),
        ("Multi GPU setup got stuck with accelerate but torchrun works", "with torchrun"),
    ],
)
def test_what_makes_the_difference_is_read(said, words):
    """With, without, after, if: with its outcome in the same sentence."""
    found = find_condition(said)

    assert found is not None
    assert found.words == words


@pytest.mark.parametrize(
    "said",
    [
        "With one GPU it works.",  # an observation
        "It works with gloo",
        "On PCIe it hangs. On a machine with NVLink the same config works.",
        "It hangs with two. It runs fine with tensor_parallel_size=1",
        "It worked with torch 2.3",
        "With static_graph=True it fails.",
        "It never works with the profiler",
        "Nothing works without errors",
    ],
)
def test_what_others_hold_or_what_fails_is_no_pair(said):
    """Number of processes, back end and releases are read elsewhere."""
    assert find_condition(said) is None


def test_it_is_said_where_no_cause_is_pointed_at_only():
    """It tells where the fault is; a cause tells more."""
    knowledge = load()
    bare = diagnose(knowledge, Snapshot(situation="FSDP on 8 GPUs ends at once. Without the new sampler it works."))
    known = diagnose(
        knowledge,
        Snapshot(situation="Without the new sampler it works.", output="[0] NCCL WARN Duplicate GPU detected : rank 0"),
    )

    assert [a.cause for a in bare.advice] == ["what-makes-the-difference"]
    assert bare.advice[0].band == "possible"
    assert known.advice[0].cause == "processes-see-wrong-devices"


def test_it_comes_before_a_mere_resemblance():
    """A cause that words only resemble is worth less than what the user has tried."""
    words = "Training with DDP on 4 GPUs hangs after some steps. Without gradient checkpointing it runs fine."

    advice = diagnose(load(), Snapshot(situation=words)).advice

    assert advice[0].cause == "what-makes-the-difference"
    assert advice[0].title == "What differs: it works without gradient checkpointing"
