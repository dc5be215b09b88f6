"""Words that once led to a wrong cause: an aside, runs that are no devices, a wrapper's own private name."""

import pytest

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.text.comparisons import find_condition, find_regression

KNOWLEDGE = load()
WRAPPER = "AttributeError: 'DistributedDataParallel' object has no attribute '{}'"
SLOW = "With 2 GPUs an epoch takes longer than with 1 GPU, it is slower than a single card."
PICKLE = "TypeError: cannot pickle '_io.TextIOWrapper' object when the checkpoint is saved."


def causes(said="", output=""):
    """Ids of the causes that are shown, be it as guesses."""
    return [a.cause for a in pointed_at(said, output)]


def pointed_at(said="", output=""):
    """The causes; where none is known, the guesses."""
    d = diagnose(KNOWLEDGE, Snapshot(situation=said, output=output))
    return d.advice or d.guesses


def test_what_went_wrong_in_another_try_is_no_answer_to_the_question():
    """ "I also tried ..." tells of another failure than the one that is asked about."""
    aside = f"I also tried spawn but I get {PICKLE}"
    alone, beside = causes(aside), causes(f"{SLOW} {aside}")

    assert alone
    assert set(alone).isdisjoint(beside)
    assert "too-little-work-per-device" in beside


def test_a_try_that_works_still_counts():
    """What makes the difference is told in the same words."""
    said = "Training hangs on 4 GPUs. I also tried NCCL_P2P_DISABLE=1 and then it works."

    assert causes(said)[0] == "peer-to-peer-blocked"


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("On 4 GPUs mlflow shows four runs, one has the loss, the remaining runs are empty.", "each-process-prints"),
        ("Only GPU 0 works, the remaining GPUs are idle.", "distribution-not-applied"),
    ],
)
def test_runs_are_no_devices(said, cause):
    """An empty run of a tracker is no idle device; a device that is idle still is one."""
    assert cause in causes(said)


def test_runs_of_a_tracker_leave_no_device_idle():
    """The cause that says so is not shown."""
    said = "On 4 GPUs mlflow shows four runs, one has the loss, the remaining runs are empty."

    assert causes(said) == ["each-process-prints"]


@pytest.mark.parametrize(
    ("name", "cause"), [("encoder", "wrapper-hides-the-model"), ("_sync_params_now", "name-moved-between-versions")]
)
def test_a_private_name_of_the_wrapper_is_not_the_models(name, cause):
    """No model has `_sync_params_now`: the code was written for another release of the wrapper."""
    assert causes(output=WRAPPER.format(name))[0] == cause


@pytest.mark.parametrize(
    ("how", "shown"), [("DDP with torchrun", False), ("nn.DataParallel", True), ("the strategy dp of Lightning", True)]
)
def test_only_who_may_use_data_parallel_is_told_to_leave_it(how, shown):
    """Whoever has one process per device already does not have to change that."""
    assert ("slow-way-of-parallelism" in causes(f"I use {how}. {SLOW}")) is shown


def test_an_address_of_the_own_host_is_named_before_the_master_address():
    """The master's address is right; what is wrong is what a host tells of itself."""
    said = "With MASTER_ADDR=10.1.2.3 the worker gets connection refused: 127.0.1.1:40123 appears in the message."

    assert "own name leads to localhost" in pointed_at(said)[0].title


def test_a_machine_that_goes_down_was_not_ended_by_the_program():
    """Power, heat or a card: no program switches a machine off."""
    said = "With one GPU it trains, with all four GPUs the whole machine reboots after some minutes."

    assert causes(said)[0] == "gpu-or-link-broken"


def test_a_name_of_a_file_says_nothing():
    """`generate.py` hangs: that does not say that sequences are generated."""
    said = "With FSDP on 4 GPUs {} hangs and never ends."

    assert "generation-ends-at-different-steps" not in causes(said.format("tools/generate.py"))
    assert set(causes(said.format("tools/generate.py"))) <= set(causes(said.format("tools/program.py")))


def test_words_show_no_cause_of_what_it_does_not_look_like():
    """One rank alone saves: a cause of hangs, but nothing hangs."""
    guarded = "We save only on rank 0."

    assert "collective-under-rank-guard" in causes(f"The job hangs at the end of the epoch. {guarded}")
    assert "collective-under-rank-guard" not in causes(f"It uses only one GPU, the other GPUs are idle. {guarded}")


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("The parameters are not the same on all ranks after some steps.", "replicas-start-or-drift-apart"),
        ("Gradients are not synchronized, the script unwraps the DDP model first.", "ranks-train-apart"),
    ],
)
def test_weights_that_part_are_no_reported_number(said, cause):
    """What differs is the model, not what is printed of it."""
    assert causes(said)[0] == cause


def test_a_folder_that_another_rank_removed_is_no_error_of_one_program():
    """Each rank deletes the same folder: the slower one does not find it."""
    output = """[rank1]: Traceback (most recent call last):
[rank1]:   File "/home/me/train.py", line 12, in <module>
[rank1]:     shutil.rmtree(out)
[rank1]:   File "/usr/lib/python3.11/shutil.py", line 748, in rmtree
[rank1]:     _rmtree_safe_fd(fd, path, onerror)
[rank1]: FileNotFoundError: [Errno 2] No such file or directory: 'out'
"""

    first = diagnose(KNOWLEDGE, Snapshot(output=output)).advice[0]

    assert "another one was quicker" in first.title


def test_different_devices_are_not_always_a_mismatch():
    """Weights from different devices are compared; tensors on different devices are an error."""
    compared = "I saved the weights from 4 devices, the weights from different devices are different."

    assert "tensor-left-on-other-device" not in causes(compared)
    assert "tensor-left-on-other-device" in causes("It fails: the input and the weight are on different devices.")


def test_a_part_that_is_built_was_not_moved_between_releases():
    """A module of DeepSpeed that ends in `_op` is compiled; any other one may have moved."""
    missing = "ModuleNotFoundError: No module named 'deepspeed.{}'"

    assert causes(output=missing.format("ops.lion.fused_lion_op"))[0] == "extension-did-not-build-at-first-use"
    assert causes(output=missing.format("runtime.pipe.loader"))[0] == "distributed-framework-release-unfit"


def test_what_each_rank_uses_may_differ():
    """Ranks use different seeds and cards as a rule; a result that differs is another thing."""
    assert "value-of-one-rank-taken-for-all" not in causes("Each process uses a different seed in the loader.")
    assert "value-of-one-rank-taken-for-all" in causes("Each rank reports a different metric after evaluation.")


def test_several_hosts_come_before_the_batch_where_one_host_is_faster():
    """The network is what came with the second host; nothing below it is called likely."""
    said = "Training on 2 nodes is much slower than on 1 node, images per second per GPU fall from 30 to 10."
    shown = pointed_at(said)

    assert shown[0].cause == "hardware-limits-exchange"
    assert [a.band for a in shown if a.band == "likely"] in ([], ["likely"] * len(shown))


@pytest.mark.parametrize(
    ("said", "difference"),
    [
        ("I was training with my own corpus, it works fine. With more cards it hangs.", False),
        ("It hangs. But with activation checkpointing off, it works fine.", True),
        ("It hangs. With packed sequences, it works on a single RTX 3090 Ti gpu.", False),
    ],
)
def test_what_a_sentence_mentions_before_is_not_what_makes_the_difference(said, difference):
    """ "I train with my corpus, it works" says nothing of the corpus."""
    assert (find_condition(said) is not None) is difference


def test_of_two_commits_the_one_that_fails_is_named():
    """A commit that worked, and one at which it hangs."""
    said = "I found that commit a3ecf0fd64 worked well. When I check out commit e931b9da33, it gets stuck with 4 GPUs."

    assert find_regression(said).bad == "commit e931b9da33"
    assert find_regression("I ran commit a3ecf0fd64 and commit e931b9da33, both get stuck.") is None


def test_processes_on_the_first_gpu_are_not_bound_to_their_own():
    """That the others are idle follows from it."""
    said = "Only one gpu does work with torchrun: all processes run on gpu:0, gpu:1 to gpu:3 do nothing."

    assert causes(said)[0] == "process-not-bound-to-its-gpu"


@pytest.mark.parametrize(
    "said",
    [
        "With DDP on 2 machines the loss goes down slower than on 1 machine. All ranks see different data.",
        "On 4 GPUs it converges more slowly than on one GPU, the time of a step is the same.",
    ],
)
def test_learning_slower_is_not_running_slower(said):
    """More steps to the same loss say nothing of the time of a step."""
    found = pointed_at(said)

    assert not any(r.evidence == "throughput_vs_one_device" for a in found for r in a.because)
    assert "too-little-work-per-device" not in [a.cause for a in found]


@pytest.mark.parametrize(
    ("said", "good"),
    [
        ("I pulled this morning and now saving fails. With the previous version it works.", "the previous version"),
        ("The newest code crashes at start. The checkout from last week runs fine.", "the checkout from last week"),
    ],
)
def test_old_and_new_code_are_told_apart_without_numbers(said, good):
    found = find_regression(said)

    assert (good, "the newer code") == (found.good, found.bad)


def test_old_code_that_fails_too_is_no_regression():
    assert find_regression("I pulled the new code. The old code fails in the same way.") is None
