"""Today's stack: the first cause is the one that a message, or what a user states of unlike ranks, names."""

from pathlib import Path

import pytest

from dtdebug_taxonomy.diagnosis import diagnose
from dtdebug_taxonomy.knowledge import load
from dtdebug_taxonomy.snapshot import Snapshot

KNOWLEDGE = load()
SAMPLES = Path(__file__).parent / "samples"


@pytest.mark.parametrize(
    ("sample", "cause"),
    [
        ("tensor-mismatch/torch-dtensor-mixed-in-list", "plain-parameters-beside-sharded"),
        ("communication-error/nccl-no-gpu-memory", "nothing-left-for-nccl"),
        ("setup-failure/torch-local-rank-argument", "launcher-passes-local-rank-argument"),
        ("setup-failure/ray-version-mismatch", "ray-versions-differ"),
        ("setup-failure/torch-rendezvous-of-ended-job", "rendezvous-of-ended-job"),
        ("partition-error/verl-chunk", "batch-not-multiple-of-replicas"),
        ("model-loading-failure/deepspeed-empty-lora", "shards-not-gathered-at-save"),
    ],
)
def test_a_message_names_its_cause(sample, cause):
    """First, whatever the symptom in which it shows."""
    output = (SAMPLES / f"{sample}.txt").read_text()

    assert diagnose(KNOWLEDGE, Snapshot(output=output)).advice[0].cause == cause


@pytest.mark.parametrize(
    ("sample", "cause"),
    [
        ("hang/torch-part-of-model-skipped", "part-of-the-model-skipped"),
        ("unexpected-result/accelerate-divided-twice", "loss-divided-twice"),
    ],
)
def test_what_a_user_states_of_ranks_names_a_cause(sample, cause):
    """No output is needed where the words say what differs between ranks, or is done twice."""
    words = (SAMPLES / f"{sample}.said.txt").read_text()

    assert diagnose(KNOWLEDGE, Snapshot(situation=words)).advice[0].cause == cause


def test_a_loss_without_number_alone_accuses_no_link():
    """Many things make NaN; none of them is called likely before something points at it."""
    found = diagnose(KNOWLEDGE, Snapshot(situation="With 8 GPUs the loss is NaN after 200 steps."))

    assert all(a.band != "likely" for a in found.advice)


def test_a_remote_shell_of_git_is_no_launcher():
    """Keys of a code host have nothing to do with ranks."""
    output = "git@github.com: Permission denied (publickey).\nfatal: Could not read from remote repository.\n"

    assert not diagnose(KNOWLEDGE, Snapshot(output=output)).recognised
