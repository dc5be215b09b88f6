"""Today's stack: the first cause is the one that a message, or what a user states of unlike ranks, names."""

import pytest
from places import TESTS

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.hardware import catalogue
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.text.matchers import lexicon

KNOWLEDGE = load()
SAMPLES = TESTS / "samples"
TWO_GPUS = (
    "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cuda:1!"
)


def pointed_at(said, output=""):
    """The causes; where none is known, the guesses."""
    d = diagnose(KNOWLEDGE, Snapshot(situation=said, output=output))
    return d.advice or d.guesses


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
        ("model-loading-failure/zero-partition-of-another-size", "parallel-layout-changed"),
        ("communication-error/nccl-no-port-left", "transport-misconfigured"),
        ("setup-failure/scontrol-missing", "wrong-master-address-or-missing-rank"),
        ("model-loading-failure/accelerate-file-of-a-rank-missing", "collective-save-on-some-ranks"),
        ("memory-issue/ray-worker-over-pod-limit", "host-memory-limit-too-small"),
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
        ("unexpected-result/accelerate-data-anew-after-resume", "position-in-the-data-not-restored"),
        ("unexpected-result/torch-states-of-one-rank", "state-of-one-rank-restored-on-all"),
        ("unexpected-result/megatron-loss-follows-tp", "not-reduced-over-the-dividing-group"),
        ("setup-failure/torch-rank-zero-elsewhere", "ranks-given-by-the-rendezvous"),
        ("memory-issue/fsdp-each-rank-loads-all", "each-rank-loads-the-whole-model"),
    ],
)
def test_what_a_user_states_of_ranks_names_a_cause(sample, cause):
    """No output is needed where the words say what differs between ranks, or is done twice."""
    words = (SAMPLES / f"{sample}.said.txt").read_text()

    assert pointed_at(words)[0].cause == cause


@pytest.mark.parametrize(
    ("words", "output", "cause"),
    [
        (
            "I resume on another number of GPUs than the checkpoint was written with.",
            "RuntimeError: The size of tensor a (512) must match the size of tensor b (128)",
            "parallel-layout-changed",
        ),
        (
            "Steps take much longer than on one node when I train on two nodes.",
            "NCCL INFO NET/IB : No device found.\nNCCL INFO Using network Socket",
            "hardware-limits-exchange",
        ),
        ("It runs in docker.", "RuntimeError: NCCL Error 2: unhandled system error", "shared-memory-too-small"),
        (
            "I run it in two docker containers, one for each host.",
            "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:272, unhandled system error",
            "transport-misconfigured",
        ),
        (
            "Two nodes with mlx5 cards are as slow as one.",
            "node1:1:2 [0] NCCL INFO NET/IB : No device found.\nnode1:1:2 [0] NCCL INFO Using network Socket",
            "rdma-device-not-usable",
        ),
        (
            "torchrun cannot connect to the rendezvous: the IP of the first node is always localhost.",
            "",
            "wrong-master-address-or-missing-rank",
        ),
        ("When I resume from a checkpoint, memory on the main GPU is higher.", "", "something-opens-first-gpu"),
        ("With two nodes the samples per second fall from 30 to 10.", "", "hardware-limits-exchange"),
        ("训练卡住了, 某个batch全是负样本", "", "part-of-the-model-skipped"),
        ("On our Slurm cluster only one GPU is used, four were asked for.", "", "started-without-launcher"),
        (
            "srun with --gpus-per-task=1 and eight tasks.",
            "RuntimeError: CUDA error: invalid device ordinal",
            "numbers-of-hidden-devices",
        ),
        (
            "One node has 8 GPUs, the other one has 4.",
            "RuntimeError: CUDA error: invalid device ordinal",
            "global-rank-used-as-device",
        ),
        ("It hangs in the middle of an epoch. We train with SyncBN.", "", "ranks-take-different-paths"),
        ("Two RTX 4090 hang at the first all_reduce before any step.", "", "peer-to-peer-blocked"),
        (
            "Training completes normally, then it is ended half an hour later.",
            "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=481) ran for 1800041 milliseconds",
            "collective-under-rank-guard",
        ),
        (
            "DeepSpeed, stage 3.",
            "RuntimeError: shape '[-1, 0]' is invalid for input of size 32000",
            "sharded-weight-used-outside-its-module",
        ),
        (
            "GRPO training with vLLM on 4 GPUs and sleep mode: the reward does not rise, the policy collapses.",
            "",
            "weights-do-not-reach-the-rollout-engine",
        ),
        pytest.param(
            "It is extremely slow whenever num_workers > 0, with 8 GPUs.",
            "",
            "loader-starves-devices",
            marks=pytest.mark.xfail(strict=True, reason="one statement is withheld: five causes are more alike"),
        ),
        (
            "With sequence parallel size 2 on 2 GPUs the loss fails.",
            "RuntimeError: The size of tensor a (4096) must match the size of tensor b (8192)",
            "model-reckons-with-whole-sizes",
        ),
        ("With context parallelism on 8 GPUs the loss becomes nan.", "", "not-reduced-over-the-dividing-group"),
        ("FSDP on 8 GPUs hangs since samples that are too long are dropped in the loader.", "", "uneven-batches"),
        ("Some GPUs finish the epoch and others never do, it hangs.", "", "uneven-batches"),
        ("FSDP2 hangs: the encoder is only called if the batch has an image.", "", "part-of-the-model-skipped"),
        ("Evaluation on 2 GPUs: 21 images in the split, merged there are 22.", "", "samples-repeated-or-misplaced"),
        ("A streamed data set on 4 GPUs gives duplicated samples.", "", "samples-repeated-or-misplaced"),
        ("Metrics on 4 GPUs are wrong; we call gather_object in a loop over keys.", "", "exchange-corrupts-values"),
        ("Every rank allocates memory on GPU 0 as well.", "", "something-opens-first-gpu"),
        (
            "save_pretrained() is called on all ranks of 8 GPUs, and the saved adapter_model.bin is corrupted.",
            "",
            "ranks-write-same-file",
        ),
        (
            "Two nodes get stuck: rank 0 is at send F1, rank 1 is at send F0, both then receive.",
            "",
            "nobody-sends-first",
        ),
        (
            "init_process_group deadlocks when I launch fewer processes than there are GPUs (torchrun, 8 GPUs).",
            "",
            "not-all-processes-started",
        ),
        (
            "Time per epoch does not go down from 2 to 4 GPUs. The model has SyncBatchNorm.",
            "",
            "needless-synchronisation",
        ),
        (
            "After multi-node training on 16 GPUs the conversion fails.",
            "ValueError: Expected 16 of '*_optim_states.pt' under 'last.ckpt/global_step1' but found 8 files.",
            "collective-save-on-some-ranks",
        ),
        (
            "accelerate config says num_processes: 1, machine with 8 GPUs.",
            "torch.cuda.OutOfMemoryError: CUDA out of memory.",
            "started-without-launcher",
        ),
        (
            "DDP on 4 GPUs.",
            "    work = default_pg.barrier(opts=opts)\nRuntimeError: CUDA error: out of memory",
            "engine-finds-gpu-taken",
        ),
        (
            "",
            "DeepEP combine (scale-up wait) timeout, scale-out: 6/8, recv: 0\nCUDA error: unspecified launch failure",
            "library-deadlock",
        ),
        ("Profiling of 8 GPUs: data_time 0.31 s of 0.4 s a step.", "", "loader-starves-devices"),
    ],
)
def test_two_facts_together_name_what_one_of_them_does_not(words, output, cause):
    """A message beside a circumstance, or two things that a user states."""
    assert pointed_at(words, output)[0].cause == cause


def test_where_it_works_on_one_node_the_shared_memory_of_the_container_is_enough():
    """A fact vetoes the cause that a message in a container would name."""
    words = "In docker. It works on one node and fails on two."
    found = diagnose(KNOWLEDGE, Snapshot(situation=words, output="RuntimeError: NCCL Error 2: unhandled system error"))

    assert "shared-memory-too-small" not in {a.cause for a in found.advice}


@pytest.mark.parametrize(
    "words",
    [
        "I switched to two nodes and it became slower when I did.",
        "Each GPU has the same number of batches, and the training hangs after the second epoch.",
        "model = DDP(model, find_unused_parameters=False) is stuck and I see no error.",
        "I trained a model using my trainer, it works well, but with two GPUs it hangs.",
    ],
)
def test_words_that_only_resemble_a_complaint_name_no_cause(words):
    """Slower with more nodes is not slower with time; the same number is not the same data; off is not a problem."""
    causes = {"something-grows-while-it-runs", "same-data-on-each-rank", "what-makes-the-difference"}

    assert not causes & {a.cause for a in pointed_at(words)}


def test_where_nothing_points_at_a_cause_a_measurement_comes_before_a_question():
    """Also where a question would be cheaper: it is asked beside it."""
    said = "Started by srun and torchrun on 2 nodes: the rendezvous fails with an error."
    found = diagnose(KNOWLEDGE, Snapshot(situation=said))

    assert found.next is not None
    assert (found.advice, found.next.kind) == ((), "measure")


def test_a_question_is_about_what_the_likely_symptoms_speak_of():
    """What would only rule them out (a saved wrapper, where the rendezvous fails) is not asked."""
    output = "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection has failed."
    found = diagnose(KNOWLEDGE, Snapshot(output=output))

    assert found.question is None or found.question.key != "wrapped_model_saved"


def test_a_loss_without_number_alone_accuses_no_link():
    """Many things make NaN; none of them is called likely before something points at it."""
    assert all(a.band != "likely" for a in pointed_at("With 8 GPUs the loss is NaN after 200 steps."))


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


@pytest.mark.parametrize(
    "request_",
    ["{'node:10.3.0.7': 0.001, 'GPU': 1.0}", "{'GPU': 1.0, 'node:ib-17.cluster.local': 0.001}"],
)
def test_a_node_that_ray_does_not_know_is_named(request_):
    """What Ray can never fulfil for one node is no lack of GPUs elsewhere."""
    output = (
        f"(autoscaler +9s) Error: No available node types can fulfill resource request {request_}. Add suitable node"
        " types to this cluster to resolve this issue.\n"
        f"INFO ray_utils.py:221] Waiting for creating a placement group of specs for 10 seconds. specs=[{request_}]\n"
    )
    address = request_.split("node:")[1].split("'")[0]

    assert address in diagnose(KNOWLEDGE, Snapshot(output=output)).advice[0].title


def test_no_speed_up_where_gradients_are_accumulated():
    """The wrapper has to know of the accumulation, else it exchanges gradients in each backward pass."""
    said = "With gradient accumulation over 8 batches in my own loop I get no speed-up on 4 GPUs with Accelerate."

    assert pointed_at(said)[0].cause == "needless-synchronisation"


@pytest.mark.parametrize(
    ("output", "said", "cause"),
    [
        (
            TWO_GPUS,
            'I start it by accelerate launch with 2 processes and load with device_map="auto" in each process.',
            "device-map-under-a-launcher",
        ),
        (
            "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn",
            "DDP with LoRA and gradient checkpointing. It works without gradient checkpointing.",
            "nothing-requires-grad",
        ),
    ],
)
def test_a_message_beside_what_the_user_says_of_the_set_up_names_the_cause(output, said, cause):
    assert cause == diagnose(KNOWLEDGE, Snapshot(output=output, situation=said)).advice[0].cause


@pytest.mark.parametrize(
    "said",
    [
        "With pipeline_stages = 3 on four RTX 4090 it hangs before the first step, two stages work.",
        "Training finished but the process does not exit, one GPU, DataLoader workers.",
        "Loading a data set in pandas repeats rows on a machine with 2 GPUs.",
    ],
)
def test_what_only_resembles_a_known_case_names_no_cause(said):
    """What works with fewer ranks of the same kind has a path; one process waits for nobody."""
    causes = {a.cause for a in diagnose(KNOWLEDGE, Snapshot(situation=said)).advice}

    assert not causes & {"peer-to-peer-blocked", "collective-under-rank-guard", "samples-repeated-or-misplaced"}


BROKEN_OBJECT = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "/w/score.py", line 7, in <module>
[rank1]:     dist.all_gather_object(all_of, mine)
[rank1]:   File "/v/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py", line 2001, in _tensor_to_object
[rank1]:     return _unpickler(io.BytesIO(buf)).load()
[rank1]: _pickle.UnpicklingError: invalid load key, '\\x07'.
"""
EMPTY_SHARD = """\
[rank1]: torch.utils.checkpoint.CheckpointError: Recomputed values for the following tensors have different metadata.
[rank1]: tensor at position 9:
[rank1]: saved metadata: {'shape': torch.Size([2048]), 'dtype': torch.float32}
[rank1]: recomputed metadata: {'shape': torch.Size([0]), 'dtype': torch.float32}
"""
SILENT_RECEIVER = (
    "ip-10-0-3-7:88:93 [1] process_completions:77 NCCL WARN NET/OFI Request 0x7fd3 completed with error. RC: 103. "
    "Error: Unresponsive receiver (reachable by EFA device but handshake failed)"
)
LOOPBACK = "RuntimeError: [../gloo/transport/tcp/pair.cc:802] connect [127.0.1.1]:4711: Connection refused"
COPY = "RuntimeError: Output 3 of BroadcastBackward0 is a view and its base has been modified inplace."
TWO_DEVICES = "RuntimeError: Function MulBackward0 returned an invalid gradient at index 1 - expected device {}"


@pytest.mark.parametrize(
    ("output", "cause", "words"),
    [
        (EMPTY_SHARD, "recomputed-pass-differs", "A sharded parameter is empty"),
        (COPY, "model-not-fit-to-be-copied", "what DataParallel has copied"),
        (f"[rank2]: {TWO_DEVICES.format('cuda:3 but got cuda:4')}", "tensor-left-on-other-device", ""),
        (BROKEN_OBJECT, "ranks-call-different-collectives", "An object collective"),
        (SILENT_RECEIVER, "link-or-peer-does-not-answer", "EFA"),
        ("[rank5]: OSError: [Errno 116] Stale file handle", "all-ranks-prepare-the-same-files", "deletes or replaces"),
        (LOOPBACK, "wrong-network-interface", "127.0.1.1"),
        (
            "[rank9]: FileNotFoundError: [Errno 2] No such file or directory: '/h/.triton/cache/5e/f.cubin.tmp.pid_9'",
            "compile-cache-shared",
            "",
        ),
    ],
)
def test_what_a_message_says_beside_its_class_narrows_the_cause(output, cause, words):
    """A size, a function's name, a pair of devices."""
    first = diagnose(KNOWLEDGE, Snapshot(output=output)).advice[0]

    assert cause == first.cause
    assert words in first.title


def test_equal_shares_of_a_device_are_other_ranks_and_unequal_ones_are_strangers():
    """Each rank that opens GPU 0 by mistake holds one context there, of one size."""
    report = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a capacity of 39.39 GiB "
        "of which 0.52 GiB is free. Process {} has {} MiB memory in use. Process {} has {} MiB memory in use. "
    )
    ranks = diagnose(KNOWLEDGE, Snapshot(output=report.format(71, "418.00", 72, "418.00")))
    strangers = diagnose(KNOWLEDGE, Snapshot(output=report.format(71, "418.00", 72, "9018.00")))

    assert "ranks-share-first-gpu" == ranks.advice[0].cause
    assert strangers.ordinary
    assert not strangers.advice


def test_an_xid_is_of_the_machine_or_of_the_program_as_the_catalogue_has_it():
    """Its notes and what follows another error are neither."""
    told = {"xid-of-the-machine": set(), "xid-of-the-program": set()}
    for code in range(200):
        line = f"NVRM: Xid (PCI:0000:3b:00): {code}, pid=4711, name=python, Ch 00000008"
        for hit in lexicon(KNOWLEDGE).hits(line):
            told.setdefault(hit.key, set()).add(code)
    roots = {code: row["owner"] for code, row in catalogue().xid.items() if row["role"] == "root"}

    assert told["xid-of-the-machine"] == {code for code, owner in roots.items() if owner != "application"}
    assert told["xid-of-the-program"] == {code for code, owner in roots.items() if owner == "application"}
