"""What the failure's own words say: figures that do not go together, packages that do not fit, two releases."""

import pytest

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.explanations.figures import find_misfit
from dtdebug_taxonomy.explanations.version_conflict import find_conflict
from dtdebug_taxonomy.incident import Incident
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.logs.message_advice import advice_in_message
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.text.comparisons import find_regression

KNOWLEDGE = load()
PACKAGES = "/opt/env/lib/python3.12/site-packages"


def raised(last, *frames, code="pass"):
    """A traceback of rank 2."""
    rows = ["Traceback (most recent call last):", '  File "/work/job/train.py", line 31, in main', "    run()"]
    for file in frames:
        rows += [f'  File "{PACKAGES}/{file}", line 77, in step', f"    {code}"]
    return "".join(f"[rank2]: {row}\n" for row in (*rows, last))


@pytest.mark.parametrize(
    ("message", "title", "whole"),
    [
        (
            "num_query_groups (6) must be divisible by tensor_parallel (4)",
            "num_query_groups 6 is not a multiple of",
            "4 or 8",
        ),
        ("1000 % 48 != 0", "1000 is not a multiple of 48", "960 or 1008"),
        ("batches do not add up: 96 != 4 * 3 * 5", "is 96, but 4 x 3 x 5 is 60", "make it 60"),
        ("world_size (12) is not equal to tp (4) x pp (2)", "world_size is 12, but 4 x 2 is 8", "Start 8 processes"),
        (
            "global batch (50) is not divisible by micro batch (4) times data parallel size (3)",
            "micro batch x data parallel size = 12",
            "48 or 60",
        ),
        (
            "pipeline size (9) exceeds number of layers (8)",
            "pipeline size is 9, but number of layers is 8",
            "at most 8",
        ),
        (
            "CUDA out of memory. Tried to allocate 250.00 GiB. GPU 3 has a total capacity of 79.15 GiB",
            "One tensor of 250.00 GiB is asked for, and the whole GPU has 79.15 GiB",
            "the line that is named",
        ),
    ],
)
def test_figures_are_worked_out(message, title, whole):
    found = find_misfit(message)

    assert found is not None
    assert title in found.title
    assert whole in found.fix


@pytest.mark.parametrize(
    "message",
    [
        "heads (16) must be divisible by tensor parallel size (8)",  # they go together
        "expected 3 != 4",
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB",
        "The size of tensor a (12) must match the size of tensor b (8) at non-singleton dimension 1",
        "64 == 4 * 4 * 4",
    ],
)
def test_figures_that_say_nothing_are_left(message):
    assert find_misfit(message) is None


def test_figures_sharpen_the_cause_that_the_same_line_names():
    """One piece of advice, not two of the same thing."""
    output = raised(
        "AssertionError: only support equal chunk. Got size of DataProto 330 and chunk 8.", "verl/protocol.py"
    )

    found = diagnose(KNOWLEDGE, Snapshot(output=output))

    assert found.advice[0].cause == "batch-not-multiple-of-replicas"
    assert "328 or 336" in found.advice[0].fix
    assert (found.next.kind, found.next.text) == ("fix", found.advice[0].fix)


@pytest.mark.parametrize(
    ("last", "frames", "words"),
    [
        (
            "TypeError: Adder.__init__() got an unexpected keyword argument 'tied'",
            ("trl/trainer.py",),
            "trl is of another release than what it calls: Adder.__init__() does not take tied",
        ),
        (
            "AttributeError: module 'peft.tuners' has no attribute 'lokr'",
            ("trl/models.py",),
            "trl and peft are of releases that do not fit",
        ),
        (
            "AttributeError: 'CacheConfig' object has no attribute 'swap_space'",
            ("verl/rollout.py", "vllm/engine.py"),
            "vllm and verl may be of releases that do not fit",
        ),
        (
            "TypeError: make_loader() got an unexpected keyword argument 'prefetch'",
            (),
            "make_loader() of the installed release does not take prefetch",
        ),
        (
            "TypeError: init_process_group() got an unexpected keyword argument 'worldsize'",
            (),
            "init_process_group() has no argument worldsize: it takes world_size",
        ),
    ],
)
def test_packages_that_do_not_fit_are_told_by_frame_and_message(last, frames, words):
    found = find_conflict(Incident(Snapshot(output=raised(last, *frames))).errors[0])

    assert found is not None
    assert words in found.title


@pytest.mark.parametrize(
    ("last", "frames"),
    [
        ("AttributeError: 'Net' object has no attribute 'head'", ()),
        ("AttributeError: 'DistributedDataParallel' object has no attribute 'head'", ("trl/a.py", "peft/b.py")),
        ("KeyError: 'labels'", ("trl/trainer.py",)),
    ],
)
def test_other_exceptions_are_no_matter_of_releases(last, frames):
    assert find_conflict(Incident(Snapshot(output=raised(last, *frames))).errors[0]) is None


@pytest.mark.parametrize(
    ("said", "package", "good", "bad"),
    [
        ("With vllm 0.8.2 it works, with 0.9.0 both ranks hang.", "vllm", "0.8.2", "0.9.0"),
        ("Runs fine in torch 2.5.1 and crashes in 2.6.", "torch", "2.5.1", "2.6"),
        ("After upgrading peft from 0.13 to 0.14.0 saving fails.", "peft", "0.13", "0.14.0"),
        ("It worked until ray 2.44, now actors die.", "ray", "", "2.44"),
        ("trl 0.19.1 ends at once. In trl 0.18 it worked.", "trl", "0.18", "0.19.1"),
        ("Stage 3 fails in DeepSpeed v0.9.3, works with v0.9.2.", "deepspeed", "0.9.2", "0.9.3"),
        ("Fine-tuning with peft 0.15.1, the loss is nan. With peft 0.14.0 it is ok.", "peft", "0.14.0", "0.15.1"),
        ("Since peft v0.15 the loss is worse than with 0.14 for the same seed.", "peft", "0.14", "0.15"),
        ("The hang began with release 0.6.0. A commit before it works.", "release", "", "0.6.0"),
        ("It crashes; I blame PR #77. After reverting it to the commit before, all went through.", "", "", "PR #77"),
    ],
)
def test_two_releases_are_read_with_their_outcomes(said, package, good, bad):
    found = find_regression(said)

    assert found is not None
    assert (found.package, found.good, found.bad) == (package, good, bad)


@pytest.mark.parametrize(
    "said",
    [
        "torch 2.6.0 and nccl 2.21.5, four nodes, it hangs.",
        "The crash happens with torch 2.6 on 4 nodes, with one node it works.",
        "Since torch 2.6 is what we have, I use it on 4 nodes. It hangs.",
        "The loss is 2.31 on one GPU and wrong, 4.10, on two.",
        "Works on 2 nodes, fails on 4 nodes with torch 2.6",
        "deepspeed 0.15 works, torch 2.6 fails",  # two packages
    ],
)
def test_releases_without_such_a_pair_are_no_regression(said):
    assert find_regression(said) is None


def test_the_users_pair_comes_before_a_general_message():
    """And the next step is to halve what lies between the releases."""
    output = raised("RuntimeError: Expected all tensors to be on the same device, but found at least two devices")
    found = diagnose(
        KNOWLEDGE, Snapshot(situation="2 GPUs. deepspeed 0.15.1 works, 0.15.2 fails like this.", output=output)
    )

    assert found.advice[0].cause == "release-changed"
    assert "deepspeed 0.15.1" in found.advice[0].fix
    assert "releases in between" in found.next.text


def test_an_assertion_without_a_message_speaks_by_its_line():
    output = raised("AssertionError", "megatron/core/layer.py", code="assert self.kernel_width % 2 == 1")

    found = advice_in_message(Incident(Snapshot(output=output)).errors)

    assert found is not None
    assert found.words == "this does not hold: self.kernel_width % 2 == 1"
    assert found.settings == ("kernel_width",)


def test_the_setting_that_a_message_names_is_what_to_look_at():
    """In place of the class of its exception."""
    output = raised(
        "ValueError: moe_router_bias is only available with moe_router_score=sigmoid", "megatron/core/moe.py"
    )

    found = diagnose(KNOWLEDGE, Snapshot(output=output))

    assert found.advice[0].cause == "message-says-so"
    assert "moe_router_bias" in found.advice[0].fix
    assert found.next.kind == "fix"


@pytest.mark.parametrize(
    ("printed", "said", "cause"),
    [
        ("assert len(set(t.dtype for t in tensors)) == 1\nAssertionError", "ZeRO-3", "zero3-gathers-mixed-types"),
        ("Failed to register worker 01ff to Raylet. IOError: no such file", "", "process-outside-of-its-ray"),
        (
            "NET/OFI Unexpected number of remote rails for dev 3. Expected 4 but got 2",
            "",
            "rails-differ-between-devices",
        ),
        ("'Client' object has no attribute 'vllm_client'", "GRPO on 4 GPUs", "object-on-the-main-process-only"),
        (
            "NCCL version 2.23.4+cuda12.8\nNCCL WARN Cuda failure 'invalid'",
            "two GB200 nodes",
            "nccl-before-2.25.1-blackwell",
        ),
        (
            "id: 4, 'status': 'NOT_AVAILABLE'\nassert param.ds_status == ZeroParamStatus.AVAILABLE",
            "",
            "zero3-recorded-order-does-not-hold",
        ),
        (
            "CheckpointError: Recomputed values for the following tensors have different metadata",
            "FSDP2",
            "recomputed-pass-differs",
        ),
        (
            "",
            "torchrun --rdzv-endpoint=$SLURM_LAUNCH_NODE_IPADDR:29500 on 2 nodes waits",
            "wrong-master-address-or-missing-rank",
        ),
    ],
)
def test_messages_of_todays_stack_name_their_cause(printed, said, cause):
    assert diagnose(KNOWLEDGE, Snapshot(output=printed, situation=said)).advice[0].cause == cause


def test_a_full_rank_0_is_no_sign_that_others_sit_on_its_gpu():
    """GPU 0 is where rank 0 belongs."""
    line = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79 GiB"
    )
    causes = {
        rank: [a.cause for a in diagnose(KNOWLEDGE, Snapshot(output=f"[rank{rank}]: {line}\n")).advice]
        for rank in (0, 3)
    }

    assert "ranks-share-first-gpu" not in causes[0]
    assert "ranks-share-first-gpu" in causes[3]
