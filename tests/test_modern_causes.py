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
        ("setup-failure/ray-workers-end-at-start", "ray-workers-end-while-they-start"),
        ("setup-failure/nccl-topology-file", "nccl-topology-file-does-not-fit"),
        ("setup-failure/nccl-network-cards-differ", "network-cards-differ-among-hosts"),
        ("other-program-failure/fsdp-inner-module-first", "inner-module-used-before-root"),
        ("model-loading-failure/fsdp-flat-shard-saved", "shards-not-gathered-at-save"),
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


def test_a_worker_of_an_engine_is_the_rank_that_failed_and_not_its_parent():
    """The parent's "see root cause above" is no cause, whichever of them is printed last."""
    output = (
        "(Worker_TP1 pid=612) ERROR 10-10 09:11:12 [multiproc_executor.py:671] RuntimeError: FlashInfer requires GPUs"
        " with sm75 or higher\n"
        "(APIServer pid=415) RuntimeError: Engine core initialization failed. See root cause above. Failed core"
        " proc(s): {}\n"
    )

    found = diagnose(KNOWLEDGE, Snapshot(output=output))

    assert "RuntimeError: FlashInfer requires GPUs with sm75 or higher" in found.happened
    assert found.advice[0].cause == "message-says-so"


@pytest.mark.parametrize(
    ("line", "recognised"),
    [
        ("NCCL WARN Fusing NET devices from different NUMA domains is not supported.", True),
        ('NCCL WARN Missing "iommu=pt" from kernel command line which can lead to system instablity or hang!', False),
        ("NCCL WARN NET/IB : mlx5_0:1 Got non-fatal async event: GID table change(18)", False),
    ],
)
def test_what_nccl_says_has_failed_is_told_and_what_it_dislikes_is_not(line, recognised):
    """Any of its warnings, with or without a pattern of its own; not one after which training goes on."""
    output = f"node1:4711:4802 [1] graph/topo.cc:120 {line}\n"

    assert diagnose(KNOWLEDGE, Snapshot(output=output)).recognised is recognised

    trained = output + "".join(f"step {n} loss 3.1\n" for n in range(1, 5))
    assert not diagnose(KNOWLEDGE, Snapshot(output=trained)).recognised


def test_a_state_of_another_layout_is_told_from_uneven_batches():
    """Shapes that do not fit in the step of the optimizer are those of its state."""
    output = (
        '[rank1]:   File "/opt/lib/python3.11/site-packages/torch/optim/adamw.py", line 528, in _multi_tensor_adamw\n'
        "[rank1]:     torch._foreach_lerp_(device_exp_avgs, device_grads, 1 - beta1)\n"
        "[rank1]: RuntimeError: output with shape [] doesn't match the broadcast shape [1]\n"
    )

    assert diagnose(KNOWLEDGE, Snapshot(output=output)).advice[0].cause == "optimizer-state-of-another-layout"


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("./run.sh: line 12:  4711 Killed                  python train.py\n", "most often because memory ran out"),
        ("OSError: [Errno 24] Too many open files: 'a.txt'\n", "ulimit -n"),
        ("ssh: connect to host 10.0.0.7 port 22: Connection timed out\n", "a firewall"),
    ],
)
def test_an_ordinary_line_that_says_little_is_explained(output, words):
    """In one line, with no story about ranks."""
    found = diagnose(KNOWLEDGE, Snapshot(output=output))

    assert words in found.ordinary
    assert not found.advice


def test_tasks_that_missed_a_barrier_are_named():
    """JAX's coordinator prints how many came, and the names of the others in the line below."""
    output = (
        "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: PjRT_Client_Connect. # of"
        " tasks that reached the barrier: 1/2. Some timed out task names:\n/job:jax_worker/replica:0/task:1\n"
    )

    title = diagnose(KNOWLEDGE, Snapshot(output=output)).advice[0].title

    assert title.startswith("Only 1 of 2 ranks came: /job:jax_worker/replica:0/task:1 ")
