"""Causes are shown only where something points at them; facts rule them out; ordinary errors get no story."""

import msgspec
import pytest

from dtdebug.check.stack_files import sourced_snapshot
from dtdebug_taxonomy.diagnosis.batch import run_case
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.explanations.model import in_python
from dtdebug_taxonomy.inference import from_source
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.ranks import Alternative, CallSite, CollectiveRef, Frame, GroupRef, RankState, Verdict
from dtdebug_taxonomy.model.snapshot import ExceptionInfo, Snapshot, SourceFinding
from dtdebug_taxonomy.presentation.text import to_text

KNOWLEDGE = load()


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A program where its user works: elsewhere its source would not be shown."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "train.py"


def causes(**parts):
    """Ids of the causes that are shown, be it as guesses."""
    d = diagnose(KNOWLEDGE, Snapshot(**parts))
    return [a.cause for a in d.advice or d.guesses]


def test_a_hang_of_which_nothing_is_known_has_no_cause_but_a_measurement():
    """Published counts alone show no cause; the next step is to look at the ranks, and what that would mean."""
    d = diagnose(KNOWLEDGE, Snapshot(situation="My DDP training on 16 GPUs hangs after some hundred steps."))

    assert ((), ()) == (d.advice, d.guesses)
    assert ("measure", "dtdebug attach") == (d.next.kind, d.next.command)
    assert d.next.why
    assert d.next.minutes < 5
    assert "The cause is not known" in to_text(d)


def test_what_a_user_states_of_the_moment_points_at_causes():
    """A hang at the end of an epoch: unequal batches and work of one rank, not the transport."""
    shown = causes(situation="My 16 GPU job hangs after the first epoch")

    assert {"uneven-batches", "collective-under-rank-guard"} == set(shown)


def test_a_known_framework_rules_out_the_causes_of_another():
    """What needs Horovod or Keras is never shown to a DeepSpeed user, and the answer says why."""
    words = (
        "With DeepSpeed ZeRO-2 loading the saved model fails: Unknown object DistributedOptimizer when I load_model."
    )
    d = diagnose(KNOWLEDGE, Snapshot(situation=words), {"framework": "deepspeed"})

    for a in d.advice:
        assert "hvd" not in a.diff
        assert "keras" not in a.diff
        assert a.cause != "saved-model-needs-horovod-to-load"
    for s in KNOWLEDGE.symptoms.values():
        for cause in s.cause:
            assert all(key in KNOWLEDGE.observations for key in (*cause.needs, *cause.example_for))


def test_a_message_that_names_the_fault_comes_first():
    """The output's own word outweighs what the user guesses."""
    output = "RuntimeError: NCCL error: Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000"
    shown = diagnose(KNOWLEDGE, Snapshot(situation="I think the network is broken between two nodes", output=output))

    assert "processes-see-wrong-devices" == shown.advice[0].cause
    assert "Duplicate GPU" in shown.advice[0].because[0].words


@pytest.mark.parametrize(
    ("output", "cause"),
    [
        ("ImportError: /env/torch/lib/libtorch_cuda.so: undefined symbol: ncclMemAlloc", "another-nccl-loaded"),
        ("h:1:2 [0] transport/nvls.cc:301 NCCL WARN Cuda failure 802 'system not yet initialized'", "nvlink-multicast"),
        ("ValueError: Ray does not allocate any GPUs on the driver node.", "ray-driver-on-node-without-gpu"),
        ("h:1:2 [0] NCCL WARN NET/OFI Couldn't open CQ. RC: -22, Error: Invalid argument", "network-plugin"),
    ],
)
def test_a_named_cause_is_at_least_possible(output, cause):
    """What the output itself names comes first, whatever the counts say of its symptom."""
    first = diagnose(KNOWLEDGE, Snapshot(output=output)).advice[0]

    assert first.cause.startswith(cause)
    assert first.band != "unlikely"


def test_printed_messages_outweigh_the_users_words():
    """The user speaks of loading a model; the output names a collective library."""
    output = (
        "ncclInvalidArgument: Invalid value for an argument.\nLast error:\nInvalid config blocking attribute value 7"
    )
    shown = causes(situation="Loading the model fails.", output=output)

    assert "another-nccl-loaded" == shown[0]
    assert "saved-model-needs-horovod-to-load" not in shown


def test_words_that_only_describe_a_symptom_point_at_no_cause():
    """A loss that does not fall has many causes: none of them is shown."""
    assert not causes(situation="With FSDP on 8 GPUs the loss does not go down.")


def test_releases_that_users_compare_point_at_a_release():
    """Works in one release, hangs since another: what changed between the two, not the network."""
    words = "Training with DeepSpeed on 4 nodes hangs since 0.17.3, with 0.17.2 it works."

    assert "upgrade" in {v for k in diagnose(KNOWLEDGE, Snapshot(situation=words)).known for v in k.values}
    assert "release-changed" == causes(situation=words)[0]


def test_what_only_the_source_shows_comes_after_what_the_output_says():
    """The rank fails in a function that sets a learning rate; its exception is about something else."""
    output = (
        '[rank0]:   File "/w/train.py", line 30, in train\n'
        "[rank0]: RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. "
        "This error indicates that your module has parameters that were not used in producing loss.\n"
    )
    (check, *_) = KNOWLEDGE.evidence["source-learning-rate-unscaled"].check
    rate = SourceFinding(file="/w/train.py", line=23, check=check, near="function", rank=0)
    shown = causes(output=output, source_findings=(rate,))

    assert shown[0] == "unused-parameters"


def test_a_verdict_rests_on_no_hint_in_the_function_around_a_line():
    """A learning rate explains no hang; on the rank's own line it is told."""
    near = SourceFinding(file="/w/train.py", line=23, check="DT509", near="function", rank=0, hint=True)
    others = (msgspec.structs.replace(near, near="line"), msgspec.structs.replace(near, hint=False))

    assert () == from_source.claims((near,))
    assert 2 == len(from_source.claims(others))


def test_a_hang_rests_on_no_finding_that_explains_none(program):
    """How a checkpoint is named stands in the culprit's branch; of a rank that raised there, it is told."""
    program.write_text(
        "import torch\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
        "def save(net, metric):\n    model = DDP(net)\n    if dist.get_rank() == 0:\n        dist.all_reduce(metric)\n"
        "        torch.save({'m': model.state_dict()}, 'm.pt')\n"
    )

    def seen(kind):
        site = CallSite(0, str(program), 7, "save")
        said = Verdict(kind=kind, culprits=(0,), waiting=(1,), sites=(site,), confidence=0.9, summary="Rank 0 parted.")
        return {f.check for f in sourced_snapshot(Snapshot(verdict=said)).source_findings}

    assert {"DT101", "DT303"} <= seen("dead")
    assert "DT101" in seen("extra")
    assert "DT303" not in seen("extra")


def test_a_rank_that_gets_no_memory_for_its_own_objects_fails_for_memory():
    """Not for an error of the program's code on this data."""
    output = '[rank2]:   File "/w/train.py", line 7, in load\n[rank2]:     rows = bytearray(n)\n[rank2]: MemoryError\n'
    output = f"[rank2]: Traceback (most recent call last):\n{output}"
    found = diagnose(KNOWLEDGE, Snapshot(output=output))

    assert "D.1.2" == found.symptoms[0].code
    assert "host-memory-limit-too-small" == found.advice[0].cause


ORDINARY = {
    "key": 'Traceback (most recent call last):\n  File "/home/me/data.py", line 41, in <module>\n'
    "    y = row['label']\nKeyError: 'label'\n",
    "shape": 'Traceback (most recent call last):\n  File "/home/me/horovod/net.py", line 9, in forward\n'
    "    return x @ w\nRuntimeError: mat1 and mat2 shapes cannot be multiplied (32x10 and 20x5)\n",
    "port": " * Serving Flask app 'app'\nAddress already in use\nOSError: [Errno 98] Address already in use\n",
    "pip": "ERROR: Could not find a version that satisfies the requirement pandsa (from versions: none)\n"
    "ERROR: No matching distribution found for pandsa\n",
    "memory": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
    "7.79 GiB of which 1.20 GiB is free.\n",
    "cpu and cuda": "Traceback (most recent call last):\n"
    '  File "predict.py", line 27, in <module>\n'
    "    logits = net(batch)\n"
    "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 "
    "and cpu! (when checking argument for argument weight in method wrapper_CUDA__native_layer_norm)",
    "segfault": "$ python score.py --file part.npz\nSegmentation fault (core dumped)",
    "assert": "../aten/src/ATen/native/cuda/Indexing.cu:1290: indexSelectLargeIndex: block: [12,0,0], "
    "thread: [64,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n"
    "Traceback (most recent call last):\n"
    '  File "finetune.py", line 88, in <module>\n'
    "    loss = model(ids).loss\n"
    "RuntimeError: CUDA error: device-side assert triggered\n"
    "CUDA kernel errors might be asynchronously reported at some other API call.",
    "nvcc": "/bin/sh: 1: nvcc: command not found\nerror: subprocess-exited-with-error",
    "make": "make[1]: *** [Makefile:41: kernels.o] Error 1\nmake: *** [Makefile:12: all] Error 2",
    "collections": "Traceback (most recent call last):\n"
    '  File "tool.py", line 3, in <module>\n'
    "    from collections import Mapping\n"
    "ImportError: cannot import name 'Mapping' from 'collections' (/usr/lib/python3.11/collections/__init__.py)",
    "grpc": "Traceback (most recent call last):\n"
    '  File "client.py", line 14, in <module>\n'
    "    stub.Predict(request)\n"
    "grpc._channel._InactiveRpcError: <_InactiveRpcError of RPC that terminated with:\n"
    "\tstatus = StatusCode.UNAVAILABLE\n"
    '\tdetails = "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:8500: Failed '
    'to connect to remote host: Connection refused"',
    "pool": "Traceback (most recent call last):\n"
    '  File "resize.py", line 9, in <module>\n'
    "    pool.map(shrink, names)\n"
    "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly",
    "graph": "Traceback (most recent call last):\n"
    '  File "molecules.py", line 9, in <module>\n'
    "    g.ndata['h'] = h\n"
    "dgl._ffi.base.DGLError: Expected 14 rows for the number of nodes, got 12",
    "ranking": "Traceback (most recent call last):\n"
    '  File "metrics.py", line 9, in mrr\n'
    "    raise ValueError(text)\n"
    "ValueError: ranking has 4 rows, and the ranks of all candidates are 5",
    "vllm": "INFO 05-02 10:11:12 config.py:510] tensor_parallel_size=1, world_size=1\n"
    "ValueError: The model's max seq len (32768) is larger than the maximum number of tokens that can be "
    "stored in KV cache (21040).",
}


@pytest.mark.parametrize("output", ORDINARY.values(), ids=ORDINARY)
def test_an_ordinary_error_gets_one_line(output):
    """Nothing of distribution is seen, so there is neither symptom nor question, and no cause but the message's own."""
    d = diagnose(KNOWLEDGE, Snapshot(output=output))

    assert d.ordinary
    assert not d.recognised
    assert all(a.because[0].source == "printed" for a in d.advice)
    assert d.question is None
    assert d.next is None
    assert 1 + 3 * len(d.advice) == len(to_text(d).splitlines())


def test_a_known_message_keeps_its_advice_without_any_sign_of_distribution():
    """What the message is known to mean holds for one process, too; the line that says its cause already gets none."""
    full = diagnose(KNOWLEDGE, Snapshot(output="OSError: [Errno 28] No space left on device: 'a.bin'\n"))
    killed = diagnose(KNOWLEDGE, Snapshot(output="./run.sh: line 12:  4711 Killed                  python train.py\n"))

    assert ["The target file system is full, or the quota is used up"] == [a.title for a in full.advice]
    assert full.ordinary
    assert "most often because memory ran out" in killed.ordinary
    assert not killed.advice


def test_words_of_several_processes_make_an_error_ours():
    """The same message is not ordinary where the user speaks of several GPUs, or where it is one of DDP itself."""
    output = ORDINARY["assert"]
    for parts in (
        {"situation": "It fails on the second of our four GPUs.", "output": output},
        {"situation": "RuntimeError: Expected to have finished reduction in the prior iteration"},
    ):
        assert not diagnose(KNOWLEDGE, Snapshot(**parts)).ordinary


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("[Rank 2] nccl Bootstrap : mismatch in rank count", None),
        ("RuntimeError: FSDP does not support gradients of gradients", "combination-not-offered"),
        ("tensorflow: Collective has timed out waiting for other workers", "not-all-processes-started"),
    ],
)
def test_a_message_points_at_the_cause_that_it_speaks_of(line, cause):
    """A specific message shows its cause, though it is one of many of that symptom; a loose line shows none."""
    shown = causes(output=f"torchrun --nproc-per-node 4 train.py\n{line}\n")

    assert (cause in shown) if cause else not shown


def test_a_rank_that_did_not_come_does_not_name_a_loader():
    """That a rank is elsewhere says not why: no loader and no batches without a word or a record of them."""
    verdict = Verdict(kind="not_arrived", culprits=(1,), waiting=(0,), summary="Rank 1 has not arrived.")
    ranks = (
        RankState(rank=0, alive=True, stack=(Frame("/job/train.py", 7, "train"),)),
        RankState(rank=1, alive=True, stack=(Frame("/job/feed.py", 3, "take"),)),
    )

    assert not {"loader-fork-deadlock", "uneven-batches"} & set(causes(ranks=ranks, verdict=verdict))


def test_a_missing_communication_library_is_ours():
    """`ctypes.CDLL` of NCCL fails in one process only too, but it concerns distribution."""
    info = ExceptionInfo(type="OSError", message="libnccl.so.2: cannot open shared object file: No such file")

    assert not diagnose(KNOWLEDGE, Snapshot(exception=info)).ordinary


PROGRAM = """\
import torch.distributed as dist

def train(x):
    for _ in range(3):
        dist.all_reduce(x)
    if dist.get_rank() == 0:
        dist.barrier()
    dist.broadcast(x, 0)
"""


def test_a_finding_on_the_line_where_a_rank_waits_names_the_cause(program):
    """The checks read the files that the stacks name; their fix becomes a diff of the user's own file."""
    program.write_text(PROGRAM)
    verdict = Verdict(
        kind="skipped",
        culprits=(1,),
        waiting=(0,),
        group=GroupRef("0", (0, 1)),
        collective=CollectiveRef("barrier", 4),
        sites=(CallSite(1, str(program), 8, "train"),),
        summary="Rank 1 skipped it.",
    )
    ranks = (
        RankState(rank=0, alive=True, stack=(Frame(str(program), 7, "train"),)),
        RankState(rank=1, alive=True, stack=(Frame(str(program), 8, "train"),)),
    )

    snapshot = sourced_snapshot(Snapshot(ranks=ranks, verdict=verdict))
    d = diagnose(KNOWLEDGE, snapshot)

    found = snapshot.source_findings[0]
    assert ("DT101", 7, "line", 0) == (found.check, found.line, found.near, found.rank)
    assert "source" in {c.what for c in snapshot.verdict.claims}
    assert "collective-under-rank-guard" == d.advice[0].cause
    assert str(program) == d.advice[0].because[0].file
    if found.diff:
        assert "yours" == d.advice[0].diff_of
        assert "-    if dist.get_rank() == 0:" in d.advice[0].diff


@pytest.mark.parametrize(("guard", "culprits"), [("if dist.get_rank() == 0:", (0,)), ("if step % 2 == 0:", ())])
def test_the_source_decides_between_two_ranks_that_disagree(program, guard, culprits):
    """Only one of them can come to the line where it is; without such a line nobody is named."""
    program.write_text(
        "import torch.distributed as dist\n\n\ndef train(t, step):\n    dist.all_reduce(t)\n"
        f"    {guard}\n        dist.broadcast(t, 0)\n    dist.barrier()\n"
    )
    sides = [Alternative(kind="replaced", culprits=(r,), because=f"rank {r} called x") for r in (0, 1)]
    verdict = Verdict(kind="replaced", waiting=(0, 1), summary="They disagree.", alternatives=tuple(sides))
    places = [RankState(rank=r, alive=True, stack=(Frame(str(program), 7 + r, "train"),)) for r in (0, 1)]

    found = sourced_snapshot(Snapshot(ranks=tuple(places), verdict=verdict)).verdict

    assert culprits == found.culprits
    assert ("train.py:7, a line that no other rank reaches" in found.summary) == bool(culprits)


@pytest.mark.parametrize(("sure", "culprits"), [(0.5, (0,)), (0.95, (1,))])
def test_the_source_corrects_who_was_named_though_the_other_side_is_as_large(program, sure, culprits):
    """Records that name a rank for good stand."""
    guarded = "    if dist.get_rank() == 0:\n        dist.broadcast(t, 0)\n"
    program.write_text(f"import torch.distributed as dist\n\n\ndef train(t):\n{guarded}    dist.barrier()\n")
    other = Alternative(kind="skipped", culprits=(0,), because="rank 0 called broadcast #4")
    said = "Rank 1 skipped broadcast #4."
    verdict = Verdict(kind="skipped", culprits=(1,), waiting=(0,), summary=said, confidence=sure, alternatives=(other,))
    places = [RankState(rank=r, alive=True, stack=(Frame(str(program), 6 + r, "train"),)) for r in (0, 1)]
    found = sourced_snapshot(Snapshot(ranks=tuple(places), verdict=verdict)).verdict

    assert culprits == found.culprits
    assert found.summary.startswith("Rank 0 called broadcast #4 at train.py:6" if sure == 0.5 else said)


@pytest.mark.parametrize(
    ("line", "body", "found"),
    [
        ("if is_main and metric.compute() < best:", "dist.all_reduce(t)", True),
        ("if rank == 0 and step % 2: metric.compute()", "dist.all_reduce(t)", True),
        ("best = metric.compute() if rank == 0 else best", "dist.barrier()", True),
        ("if is_main and metric.compute() < best:", "print(t)", False),
        ("if metric.compute() < best and is_main:", "dist.all_reduce(t)", False),
    ],
)
def test_a_collective_in_another_module_is_found_at_the_condition_before_it(program, line, body, found):
    """The imports of the files on the stacks are followed, as `check` follows them."""
    other = program.parent / "own_metrics.py"
    other.write_text(
        "import torch.distributed as dist\n\n\nclass Metric:\n    def compute(self):\n        t = state()\n"
        f"        {body}\n        return t.item()\n"
    )
    end = "\n            best = 0" if line.endswith(":") else ""
    program.write_text(
        "import torch.distributed as dist\nfrom own_metrics import Metric\n\n\ndef main(best):\n"
        "    rank = dist.get_rank()\n    is_main = rank == 0\n    metric = Metric()\n    for step in range(9):\n"
        f"        {line}{end}\n        dist.barrier()\n"
    )
    site = CallSite(0, str(program), 10, "main")
    said = Verdict(kind="extra", culprits=(0,), waiting=(1,), sites=(site,), confidence=0.9, summary="Rank 0 parted.")
    snapshot = sourced_snapshot(Snapshot(verdict=said))

    hits = {(f.check, f.line, f.near) for f in snapshot.source_findings}
    assert (("DT101", 10, "line") in hits) == found
    if found:
        assert diagnose(KNOWLEDGE, snapshot).advice[0].because[0].line == 10


def test_sources_that_are_not_here_are_left_out(tmp_path):
    """Files of another machine, folders and large files cost nothing and say nothing."""
    (tmp_path / "folder.py").mkdir()
    stack = (Frame(str(tmp_path / "folder.py"), 1, "f"), Frame("/nowhere/train.py", 3, "g"))
    before = Snapshot(ranks=(RankState(rank=0, stack=stack),))

    assert sourced_snapshot(before) is before


def test_a_batch_gives_the_advice_and_the_next_step():
    """All that is shown can be measured."""
    row = run_case(KNOWLEDGE, {"id": 1, "situation": "hangs after the first epoch with DDP", "evidence": ""})

    assert {True} == {row["guess"] for row in row["advice"]}
    assert row["advice"][0]["cause"]
    assert row["advice"][0]["because"]
    assert "measure" == row["next"]["kind"]


@pytest.mark.parametrize(
    ("diff", "python"),
    [
        ("-a = 1\n+a = 2\n", True),
        ("@@ -1,2 +1,2 @@\n     def f():\n-        a\n+        b\n", True),
        ("-mpirun x\n+NCCL_P2P_DISABLE=1 mpirun x\n", False),
        ("+except RuntimeError:\n+    raise\n", False),
        ("", False),
    ],
)
def test_only_python_that_parses_may_become_a_cell(diff, python):
    """Shell, configuration and torn blocks would fail where they are inserted."""
    assert python == in_python(diff)


def test_a_library_s_own_check_is_no_fault_of_the_data():
    """What it says comes first; that the program's own code fails on this data adds nothing to it."""
    output = (
        "[rank1]: Traceback (most recent call last):\n"
        '[rank1]:   File "/home/u/train.py", line 9, in main\n[rank1]:     plan = mesh.item(gpus=12)\n'
        '[rank1]:   File "/v/lib/python3.11/site-packages/hydra_mesh/mesh.py", line 2, in item\n'
        '[rank1]:     raise IndexError(f"rank {n} is outside")\n'
        "[rank1]: IndexError: rank 12 is outside of this mesh of 8\n"
    )
    shown = [a.cause for a in diagnose(KNOWLEDGE, Snapshot(output=output)).advice]

    assert "program-fails-by-itself" not in shown
    assert shown


@pytest.mark.parametrize(
    ("output", "cause"),
    [
        ("RuntimeError: Timed out waiting for Slurm job 4711 to start\n", "job-waits-in-the-queue"),
        ("|| ERROR: rank 0 waits: not all of the pods were scheduled\n", "pods-wait-for-devices"),
    ],
)
def test_who_waits_for_the_scheduler_is_told_so(output, cause):
    """No port and no network is to be looked at then."""
    d = diagnose(KNOWLEDGE, Snapshot(output=output))

    assert ("B.2", cause) == (d.symptoms[0].code, d.advice[0].cause)


def test_workers_that_did_not_come_are_a_set_up_that_waits():
    d = diagnose(KNOWLEDGE, Snapshot(output="RuntimeError: actors failed to start within 60s (3/8 ready)\n"))

    assert (d.recognised, d.symptoms[0].code, d.advice) == (True, "B.2", ())


@pytest.mark.parametrize(
    "output",
    [
        (
            "[rank0]: step 1 loss 2.1\n[rank0]:W1126 10:02:11.331 c.py:9] torch._dynamo hit config.recompile_limit\n"
            "[rank0]: step 2 loss 2.0\n[rank0]: step 3 loss 1.9\n"
        ),
        (
            "setup.py:9: UserWarning: No GPU is here; kernels will not be compiled.\n"
            "  warnings.warn('No GPU is here; kernels will not be compiled.')\nSuccessfully built thing\n"
        ),
        "Warning  BackOff    2m (x12 over 9m)  kubelet  Back-off restarting failed container web in pod web-7d4\n",
        (
            "[rank0]: step 1 loss 2.1\n[rank0]: UserWarning: Grad strides do not match bucket view strides.\n"
            "[rank0]: step 2 loss 2.0\n[rank0]: step 3 loss 1.9\n"
        ),
        "{'loss': 1.21, 'grad_norm': nan}\n{'loss': 1.11, 'grad_norm': 2.1}\n{'loss': 1.01, 'grad_norm': 1.1}\n",
    ],
)
def test_a_warning_after_which_all_went_on_is_no_failure(output):
    d = diagnose(KNOWLEDGE, Snapshot(output=output))

    assert (d.recognised, d.ordinary, d.advice) == (False, "", ())


@pytest.mark.parametrize(
    ("message", "cause", "not_shown"),
    [
        (
            "ValueError: No valid checkpoint found in /out",
            "resume-logic-finds-other-files",
            "form-not-known-to-the-reader",
        ),
        ("RuntimeError: CUDA error: unspecified launch failure", "", "peer-transport-faulty"),
        ("RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED", "", "driver-or-library-mismatch"),
        ("AttributeError: Can't pickle local object 'f.<locals>.g'", "", "own-object-without-the-name"),
        ("OSError: [Errno 28] No space left on device", "disk-is-full", "program-fails-by-itself"),
    ],
)
def test_a_general_message_claims_no_more_than_it_says(message, cause, not_shown):
    """What has several causes names none of those that need a fact more."""
    output = (
        "[rank1]: Traceback (most recent call last):\n"
        f'[rank1]:   File "/w/train.py", line 9, in <module>\n[rank1]:     step()\n[rank1]: {message}\n'
    )
    shown = [a.cause for a in diagnose(KNOWLEDGE, Snapshot(output=output)).advice]

    assert not_shown not in shown
    assert cause in ("", *shown)
