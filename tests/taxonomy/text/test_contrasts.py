"""What a user has found to make the difference."""

import pytest

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.text.compared_runs import find_bounds
from dtdebug_taxonomy.text.comparisons import find_condition
from dtdebug_taxonomy.text.contrasts import find_contrasts


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


@pytest.mark.parametrize(
    ("said", "rows"),
    [
        (
            "Training with a single GPU is well but grad_norm is NaN with 4 GPUs. On single GPU grad_norm is normal.",
            [("count", "GPU", "1", "4")],
        ),
        ("On one GPU eval_accuracy is right, on 8 GPUs eval_accuracy is wrong.", [("count", "GPU", "1", "8")]),
        ("train_loss is nan and it crashes. Without it train_loss is fine.", []),
        (
            "With max_grad_norm=1.0 it works, with max_grad_norm=5.0 it diverges.",
            [("option", "max_grad_norm", "1.0", "5.0")],
        ),
        (
            "With gradient_accumulation_steps > 1 the loss gets larger. With 1 it is normal.",
            [("option", "gradient_accumulation_steps", "1", "> 1")],
        ),
        ("With num_workers 4 it hangs. With 0 it works.", [("option", "num_workers", "0", "4")]),
        ("The difference was that we used 1xA100 instead of 8xA100.", [("count", "GPU", "", "8 and 1")]),
        ("We train on 2 GPUs instead of 16 because they are cheaper.", []),
        ("{'norm': 2.1, 'memory(GiB)': 60.2}, which is fine\n{'norm': nan, 'memory(GiB)': 71.5}, which is wrong", []),
        ("At first the loss 2.31 is fine, later the loss 9.42 is wrong.", []),
    ],
)
def test_a_value_of_the_training_is_no_setting(said, rows):
    assert [c[:4] for c in find_contrasts(said)] == rows


@pytest.mark.parametrize(
    ("said", "in_fix", "cause"),
    [
        ("On 1 GPU it is fine, but grad_norm is NaN with 4 GPUs.", "rounded down to 0", "value-follows-a-number"),
        (
            "We reach top1 of 0.72, in contrast to 0.77. The difference is that we used 2xA100 instead of 8xA100.",
            "the global batch is 4 times smaller with 2 than with 8",
            "value-follows-a-number",
        ),
        (
            "DDP on 4 GPUs. With gradient_accumulation_steps > 1 the loss gets larger. With 1 it is normal.",
            "divide it by gradient_accumulation_steps",
            "value-follows-a-number",
        ),
        (
            "I get a nan loss with context parallel on 8 GPUs. Tensor parallel works fine.",
            "Context parallel cuts the sequence",
            "parallelism-makes-the-difference",
        ),
    ],
)
def test_what_a_number_scales_or_a_parallelism_cuts_is_named(said, in_fix, cause):
    found = diagnose(load(), Snapshot(situation=said)).advice[0]

    assert found.cause == cause
    assert in_fix in found.fix
    assert "Go on" not in found.fix


def test_a_hang_or_crash_is_not_scaled():
    for said in (
        "On one GPU it works, on 4 GPUs it hangs after the loss of step 1.",
        "With batch_size 4 it works, with batch_size 8 it is out of memory in loss.backward().",
    ):
        causes = {a.cause for a in diagnose(load(), Snapshot(situation=said)).advice}
        assert "value-follows-a-number" not in causes


def test_runs_below_and_from_a_release_are_compared_by_what_they_print():
    text = (
        "1. DeepSpeed < 0.17.6 + ZeRO-2:\nloss: 1.44 | grad_norm: {0}\n2. DeepSpeed \u2265 0.17.6 + ZeRO-2:\nloss: 1.44"
        " | grad_norm: 1.6262\nWith DeepSpeed \u2265 0.17.6 + ZeRO-3 it works correctly.\n"
    )

    assert [c[:4] for c in find_bounds(text.format(4.7373))] == [
        ("release", "deepspeed", "before 0.17.6", "0.17.6 (grad_norm 4.737 -> 1.626 at equal loss)"),
        ("option", "ZeRO stage", "3", "2"),
    ]
    assert not [*find_bounds(text.format(1.63))]
    assert not [*find_bounds("torch < 2.4: loss: 3.1\n torch >= 2.5: loss: 9.1")]
    assert not [*find_bounds("the loss is below 0.5: loss: 0.4\n loss from 0.5: loss: 0.8")]


@pytest.mark.parametrize(
    ("words", "good", "bad"),
    [
        (
            "Until spring we trained it on bare metal and had linear scaling. I now use a Docker image of my own.",
            "bare metal",
            "Docker",
        ),
        (
            "My colleagues previously used InfiniBand with perfect speed. We run over ethernet on the new machines.",
            "InfiniBand",
            "ethernet",
        ),
        ("Last year our job on Ubuntu worked well. We moved to Windows this week.", "Ubuntu", "Windows"),
    ],
)
def test_what_was_used_when_it_went_well_differs_from_what_is_used_now(words: str, good: str, bad: str) -> None:
    assert [(c.good, c.bad) for c in find_contrasts(words) if c.kind == "choice"] == [(good, bad)]


def test_a_small_model_beside_a_large_one_is_no_cause() -> None:
    """What changed outweighs a remark on another model."""
    told = "Two nodes are much slower than one. {} For comparison I took a small model, that is also slower."
    small = diagnose(load(), Snapshot(situation=told.format("It is DDP.")))
    large = diagnose(load(), Snapshot(situation=told.format("I fine-tune a 13B model with FSDP.")))
    assert any(r.evidence == "small-model-is-no-faster" for a in small.advice for r in a.because)
    assert not any(r.evidence == "small-model-is-no-faster" for a in large.advice for r in a.because)


def test_running_somewhere_is_no_success() -> None:
    """What a person runs in says nothing of how it goes."""
    assert find_contrasts("I run in a Docker container. On bare metal it fails.") == ()


def test_one_factor_is_named_by_an_option_and_in_words():
    text = (
        "The loss does not decrease with overlap-param-gather. I tried two settings:\n"
        "1. Without overlapping parameter gathering the loss decreases normally.\n"
    )

    assert [("overlap-param-gather", "off", "on")] == [(c.factor, c.good, c.bad) for c in find_contrasts(text)]


def test_the_second_gpu_is_not_two():
    said = "All losses become nan if I use the 2nd GPU. It runs well when I use the 1st GPU."

    assert [] == [c for c in find_contrasts(said) if c.kind == "count"]


@pytest.mark.parametrize(
    ("said", "factor"),
    [
        ("If I do not set `OMPI_MCA_btl=tcp` the run crashes on the second host.", "OMPI_MCA_btl=tcp"),
        ("It hangs whenever TORCH_NCCL_BLOCKING_WAIT is not set.", "TORCH_NCCL_BLOCKING_WAIT"),
        ("There is a bug if you don't pass --local-batch to the evaluation.", "--local-batch"),
    ],
)
def test_a_setting_that_is_missing_where_it_fails_makes_the_difference(said, factor):
    found = find_contrasts(said)[0]

    assert ("part", factor, "on", "off") == (found.kind, found.factor, found.good, found.bad)


@pytest.mark.parametrize(
    "said",
    [
        "Does it hang if OMP_NUM_THREADS is not set?",
        "The default is used if OMP_NUM_THREADS is not set.",
        "If I do not set a seed the numbers differ a little.",
    ],
)
def test_a_setting_without_a_failure_makes_no_difference(said):
    assert () == find_contrasts(said)


@pytest.mark.parametrize(
    ("said", "kind", "good", "bad"),
    [
        ("The export under FSDP2 gets stuck on 16 nodes but not on 8", "count", "8", "16"),
        ("Resuming crashes with --pipeline-size 4, but not with 2.", "option", "2", "4"),
    ],
)
def test_a_bare_number_is_another_value_of_what_was_named_last(said, kind, good, bad):
    found = find_contrasts(said)[0]

    assert (kind, good, bad) == (found.kind, found.good, found.bad)


def test_a_contrast_in_another_language_is_read_by_its_phrases():
    said = "单卡能训练。换成多卡就出现 OOM。"
    found = diagnose(load(), Snapshot(situation=said)).advice[0]

    assert "What differs: 1 GPU works, several GPUs do not" == found.title
    assert said == found.because[0].words
