"""Facts that decide: a value that is None, an update since which it fails, a command; and the step that tells."""

import pytest

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.explanations.none_value import find_none_value
from dtdebug_taxonomy.incident import Incident
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.text.comparisons import find_condition, find_device, find_regression

KNOWLEDGE = load()
ATTRIBUTE = "AttributeError: 'NoneType' object has no attribute 'step'"
ELEMENT = "TypeError: expected Tensor as element 0 in argument 0, but got NoneType"
NUMBER = "TypeError: int() argument must be a string, a bytes-like object or a real number, not 'NoneType'"
INDEX = "TypeError: 'NoneType' object is not subscriptable"


def of(said="", output=""):
    return diagnose(KNOWLEDGE, Snapshot(situation=said, output=output))


def raised(code, last):
    """A traceback of rank 1 that ends in a line of a program."""
    rows = ["Traceback (most recent call last):", '  File "/work/job/launch.py", line 40, in main', f"    {code}", last]
    return "".join(f"[rank1]: {row}\n" for row in rows)


@pytest.mark.parametrize(
    ("code", "last", "title"),
    [
        ("port = int(args.master_port)", NUMBER, "args.master_port was not given: it is None at launch.py:40"),
        ("rank = int(os.environ.get('NODE_RANK'))", NUMBER, "The variable NODE_RANK is not set where"),
        ("self.scheduler.step()", ATTRIBUTE, "self.scheduler is None at launch.py:40"),
        ("moment = state['exp_avg']", INDEX, "state is None at launch.py:40"),
        ("x = torch.stack([o['loss'] for o in outs])", ELEMENT, "o['loss'] is None at launch.py:40"),
    ],
)
def test_the_line_that_raised_shows_which_value_is_none(code, last, title):
    found = find_none_value(Incident(Snapshot(output=raised(code, last))).errors[0])

    assert found is not None
    assert found.title.startswith(title)


@pytest.mark.parametrize(
    ("code", "last"),
    [
        ("a.step(b.step)", ATTRIBUTE),  # which of the two is None is not seen
        ("run()", NUMBER),
        ("self.scheduler.step()", "AttributeError: 'Adam' object has no attribute 'step'"),
    ],
)
def test_a_line_that_does_not_show_it_names_none(code, last):
    assert find_none_value(Incident(Snapshot(output=raised(code, last))).errors[0]) is None


def test_a_bare_conversion_is_no_advice_of_the_message():
    first = of("I start two nodes with srun.", raised("port = int(args.master_port)", NUMBER)).advice[0]

    assert "value-is-none" == first.cause
    assert "--master_port" in first.fix


@pytest.mark.parametrize(
    ("said", "changed"),
    [
        ("Since the new fabric manager was installed, all jobs time out. Before, it worked.", "the new fabric manager"),
        ("After we updated the container image every run crashes. It ran fine before.", "the container image"),
        (
            "Since the driver (CUDA 12.4) is updated, it dies in set-up; previously everything ran.",
            "the driver (CUDA 12.4)",
        ),
    ],
)
def test_an_update_since_which_it_fails_is_the_first_cause(said, changed):
    found = find_regression(said)
    d = of(said, "worker-3: NCCL INFO Call to connect returned Connection refused, retrying")

    assert changed in found.bad
    assert "changed-by-update" == d.advice[0].cause
    assert "likely" != d.advice[0].band


@pytest.mark.parametrize(
    "said",
    [
        "After the data set was changed, rank 1 hangs.",  # nothing worked before
        "The model was updated on all ranks before it worked out the loss.",
    ],
)
def test_a_change_without_a_run_that_worked_is_none(said):
    assert find_regression(said) is None


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("Four servers on one Ray cluster fail at start; one at a time works.", "one at a time"),
        ("With --expert-parallel-size 4 all ranks crash, with 1 it works.", "with --expert-parallel-size 1"),
        (
            "If I cast to single precision before the sum it stays around 90% at any size.",
            "if you cast to single precision",
        ),
        ("Four processes sit on GPU 0. Without loading the weights they disappear.", "without loading the weights"),
    ],
)
def test_what_makes_the_difference_is_read(said, words):
    assert find_condition(said).words.startswith(words)


def test_an_option_of_one_value_is_no_difference():
    assert find_condition("With --tp-size 4 it hangs, I tried NCCL_DEBUG=INFO.") is None


@pytest.mark.parametrize(
    ("said", "output", "cause"),
    [
        (
            "",
            "ccl_warn: node_dev_uuids size 1, this may happen due to narrow device affinity mask (0)",
            "peer-to-peer-blocked",
        ),
        (
            "Loading the checkpoint fails because the number of ranks differs: written by 4, now 8.",
            "FileNotFoundError: [Errno 2] No such file or directory: 'out/step_9/__7_0.distcp'",
            "parallel-layout-changed",
        ),
        ("mpirun -np 4 python train.py", "KeyError: 'RANK'", "wrong-master-address-or-missing-rank"),
        ("", "[rank3]: Cuda failure 802 'system not yet initialized'", "fabric-manager-not-running"),
        ("NeMo RL on two nodes", "ray.exceptions.RuntimeEnvSetupError: Failed", "ray-cannot-make-the-environment"),
        (
            "It stops while the checkpoint is consolidated.",
            "[rank2]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, Timeout(ms)=60000) ran",
            "full-state-gathered-too-slowly",
        ),
        ("It fails on all ranks except rank 0.", INDEX, "object-on-the-main-process-only"),
    ],
)
def test_a_fact_with_a_line_decides(said, output, cause):
    assert cause == of(said, output).advice[0].cause


def test_a_command_without_its_number_of_processes_is_read():
    said = "Only one GPU of four is used. I start it with torchrun train.py --bf16 --epochs 3"
    d = of(said)
    causes = [a.cause for a in d.advice or d.guesses]
    counted = of(said.replace("train.py", "--nproc_per_node 4 train.py"))

    assert "started-without-launcher" == causes[0]
    assert "torchrun-starts-one-process" not in {
        r.evidence for a in (*counted.advice, *counted.guesses) for r in a.because
    }


def test_bfloat16_rules_the_overflow_of_float16_out():
    said = "DDP on 8 GPUs: the loss becomes NaN after 200 steps. I train in {}."
    both = {half: of(said.format(half)) for half in ("bfloat16", "fp16")}
    shown = {half: {a.cause for a in (*d.advice, *d.guesses)} for half, d in both.items()}

    assert "half-precision-overflows" not in shown["bfloat16"]
    assert not any("Half precision" in row for row in both["fp16"].ruled_out)


@pytest.mark.parametrize(
    ("said", "output", "step"),
    [
        ("Training fails with an error on 4 GPUs under DDP.", "", "dtdebug diagnose LOG"),
        (
            "Megatron: a run that I resume from a checkpoint has a different loss than the one that went on.",
            "",
            "dtdebug run --resume-check",
        ),
        (
            "Resumed from a checkpoint my DDP loss is higher, with torchrun --nproc-per-node 4 run.py --resume a, ...",
            "",
            "dtdebug run --resume-check -- torchrun --nproc-per-node 4 run.py --resume a",
        ),
        (
            "Resumed from a checkpoint my DDP loss is higher: torchrun --standalone a.py\ntorchrun --standalone b.py",
            "",
            "dtdebug run --resume-check -- torchrun ... train.py",
        ),
        ("Only one of 8 GPUs is used by my DDP job.", "", "Count the processes"),
        ("DDP over 8 GPUs hangs at the first step, with 7 GPUs it works.", "", "dtdebug attach"),
        ("GRPO with vLLM in server mode: rewards collapse, even with lr = 0.", "", "Compare one weight"),
        (
            "Resuming my FSDP job from a checkpoint needs more memory: CUDA out of memory.",
            "",
            "Print what is allocated",
        ),
        (
            "Memory usage grows by 2 GB whenever the FSDP job saves a checkpoint, in the end OOM.",
            "",
            "before and after a save",
        ),
        ("FSDP on 8 GPUs: the learning rate decays too quickly, constant lr is fine.", "", "scheduler steps"),
        ("My vllm with ray and two GPUs gets stuck at ray.get(), no error.", "", "ray status"),
        ("On two nodes the client waits for ever for the server at localhost:5000.", "", "Ask the server"),
    ],
)
def test_the_next_step_is_one_that_parts_the_causes(said, output, step):
    d = of(said, output)

    assert d.next is not None
    assert step in f"{d.next.text} {d.next.command}"


def test_a_message_that_orders_comes_before_the_release_since_which_it_does():
    order = "For tied parameters, use fully_shard([a, b]) to place them in one group."
    d = of(
        "On torch 2.13 FSDP2 fails, with torch 2.12 it worked.", raised("model(x)", f"ValueError: w is shared. {order}")
    )

    assert ["message-says-so", "release-changed"] == [a.cause for a in d.advice][:2]
    assert order in d.advice[0].title


def test_what_a_message_names_comes_before_the_release_since_which_it_does():
    late = "RuntimeError: jax.distributed.initialize() must be called before any JAX calls that might initialise XLA."
    d = of("With jax 0.9 it fails, with jax 0.8 it was fine.", raised("initialize()", late))

    assert ["set-up-call-missing-or-misplaced", "release-changed"] == [a.cause for a in d.advice][:2]
    assert d.advice[0].title.startswith("JAX was used before")


@pytest.mark.parametrize(
    ("said", "frame", "cause"),
    [
        ("GRPO with ZeRO-3", ("deepspeed/runtime/zero/partition_parameters.py", 2235, "__enter__"), "full-state"),
        ("FSDP2", ("app/export.py", 12, "full_tensor"), "full-state"),
    ],
)
def test_memory_that_runs_out_in_a_gather_is_no_batch_too_large(said, frame, cause):
    file, line, function = frame
    rows = [f'  File "/w/{file}", line {line}, in {function}', "torch.OutOfMemoryError: CUDA out of memory. Tried to"]
    d = of(f"{said}: OOM at the end of a step on 8 GPUs", "".join(f"[rank0]: {row} allocate 2 GiB\n" for row in rows))

    assert d.advice[0].cause.startswith(cause)
    assert "batch-too-large-per-rank" not in {a.cause for a in d.advice}


def test_rank_zero_that_saves_for_longer_than_the_others_wait():
    waited = "[rank3]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8, Timeout(ms)=600000) ran"
    d = of("At the checkpoint rank 0 writes it to disk, which takes more than ten minutes.", waited)

    assert "full-state-gathered-too-slowly" == d.advice[0].cause
    assert d.advice[0].title.startswith("Rank 0 works on the checkpoint")


def test_none_is_missing_where_all_have_registered():
    log = "initializing ddp: GLOBAL_RANK: 1, MEMBER: 2/2\nAll DDP processes registered. Starting ddp with 2 processes\n"
    d = of("Lightning is stuck. It works after setting PL_TORCH_DISTRIBUTED_BACKEND=gloo.", log)

    assert "not-all-processes-started" not in {a.cause for a in (*d.advice, *d.guesses)}
    assert "C.4" == d.symptoms[0].code
    assert d.advice


def test_an_address_of_the_own_host_is_told_to_the_coordinator():
    timed_out = "XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: PjRT_Client_Connect"
    d = of('jax on two hosts: initialize(coordinator_address="localhost:1234") fails', timed_out)

    assert "coordinator_address" in d.advice[0].fix


def test_a_call_past_the_wrapper_explains_ranks_that_differ():
    said = "The weights differ between the ranks after some steps. I wrap it with DDP and call head.module.predict(x)."
    d = of(said)

    assert "ranks-train-apart" == (*d.advice, *d.guesses)[0].cause
    assert "past the wrapper" in (*d.advice, *d.guesses)[0].title
    assert "past the wrapper" not in "".join(a.title for a in of(said.replace(".module", "")).guesses)


def test_a_variable_that_is_not_set_is_named():
    d = of(
        "deepspeed --hostfile hosts train.py", raised('environment["PDSH_ARGS"] += " -p 22"', "KeyError: 'PDSH_ARGS'")
    )
    other = of("deepspeed --hostfile hosts train.py", raised('batch["LABELS"]', "KeyError: 'LABELS'"))

    assert d.advice[0].title.startswith("The variable PDSH_ARGS is not set")
    assert "value-is-none" not in {a.cause for a in other.advice}


def test_who_waited_for_a_rank_that_had_ended_is_no_hang():
    ended = raised("loss = f(x)", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.47 GiB.")
    waited = "[rank3]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, Timeout(ms)=60000) ran\n"

    assert "D.1.2" == of("It looks like a deadlock on 8 GPUs.", ended + waited).symptoms[0].code
    assert "D.2.1" == of("It looks like a deadlock on 8 GPUs.", waited).symptoms[0].code


def test_words_on_what_makes_the_difference_are_recognised():
    d = of("With HSDP the second replica of my 8 GPUs is odd after init. With plain FSDP training is right.")

    assert d.recognised
    assert "with plain FSDP" in d.advice[0].title


def test_an_object_that_is_none_is_told_once():
    frame = '  File "/usr/lib/python3/torch/distributed/distributed_c10d.py", line 3400, in _tensor_to_object'
    rows = (frame, "    return unpickler.load()", "_pickle.UnpicklingError: invalid load key, '\\x00'.")
    log = "".join(f"[rank1]: {row}\n" for row in rows)

    assert {"D.1.1"} == {a.symptom for a in of("Resuming on 4 GPUs fails.", log).advice}
    assert "C.1" == of("Resuming on 4 GPUs fails.", log.replace("_tensor_to_object", "load")).symptoms[0].code


def test_a_release_is_no_number_of_devices():
    assert "says-slower-with-more-devices" not in str(of("Training is slower than with 2.1.").symptoms)


def test_a_timeout_in_preparing_data_is_read_within_a_sentence():
    d = of("NCCL timeout during the data processing step on 8 GPUs. Raising ddp_timeout changes nothing.")

    assert "One rank prepares data" in (*d.advice, *d.guesses)[0].title


def test_memory_of_a_host_is_none_of_a_device():
    def known(said):
        return {k.key: k.values for k in of(said).known}

    host = known("FSDP: the host of process 0 goes out of memory while the checkpoint is saved.")

    assert ("full",) == host["host_memory"]
    assert "device_memory" not in host
    assert ("full",) == known("FSDP: it runs out of memory on 8 GPUs.")["device_memory"]


def test_a_rank_that_runs_builds_nothing():
    d = of("", raised("assert ok", "AssertionError: stage must be a kwarg in the provider when compiling with cmake"))

    assert "A.1" not in {s.code for s in d.symptoms[:3]}


def test_a_warning_of_a_fork_beside_threads_points_to_the_loader():
    warning = "popen_fork.py:66: DeprecationWarning: This process (pid=7) is multi-threaded, use of fork() may lead to"
    d = of("DDP hangs in the data loader with num_workers > 0.", f"{warning} deadlocks in the child.")

    assert "loader-fork-deadlock" == d.advice[0].cause


def test_an_exception_of_the_program_is_no_matter_of_certain_gpus():
    raised_by = raised("x = a / b", "ZeroDivisionError: division by zero")

    assert "Take as many GPUs" not in of("DDP over 8 GPUs fails, with 2 GPUs it works.", raised_by).next.text


def test_measures_rest_on_indicators_that_exist():
    rows = [(m.id, *name.partition("=")) for m in KNOWLEDGE.measures for name in m.seen]
    values = {key: {v.value for v in o.value} for key, o in KNOWLEDGE.observations.items()}

    assert rows
    assert [] == [row for row in rows if (row[3] not in values[row[1]] if row[3] else row[1] not in KNOWLEDGE.evidence)]


@pytest.mark.parametrize(
    ("said", "output"),
    [
        ("gunicorn hangs up all the time", "[CRITICAL] WORKER TIMEOUT (pid:5870)"),
        ("The Celery workers die: Connection reset by peer", ""),
        ("", "rdkafka#consumer-3: Timed out LeaveGroupRequest in flight, watchdog stops nginx"),
    ],
)
def test_services_are_no_training(said, output):
    d = of(said, output)

    assert not d.recognised
    assert ((), ()) == (d.advice, d.guesses)


def test_a_service_that_trains_is_heard():
    assert of("Celery starts my DDP training, and it hangs at the first step on 4 GPUs.").recognised


def test_a_warning_is_not_called_an_error():
    told = of(
        "",
        "/opt/checkpoint.py:31: UserWarning: None of the inputs have requires_grad=True. Gradients will be None",
    )

    assert told.ordinary.startswith("A warning")


@pytest.mark.parametrize(
    ("said", "device"),
    [
        ("It hangs at the first all-reduce. I tried all pairs: every pair with GPU 2 hangs, the others work.", "GPU 2"),
        ("Training crashes whenever card 5 takes part.", "card 5"),
        ("Without GPU 3 it works, with all four there is an illegal memory access.", "GPU 3"),
    ],
)
def test_a_device_found_by_trying_is_the_first_cause(said, device):
    first = of(f"DDP on one host. {said}").advice[0]

    assert "one-device-makes-the-difference" == first.cause
    assert first.title.startswith(device)


@pytest.mark.parametrize("said", ["Rank 1 fails when GPU 0 is full.", "When GPU 0 is done, every other rank hangs."])
def test_a_device_that_is_only_named_makes_no_difference(said):
    assert find_device(said) is None


@pytest.mark.parametrize(
    "message",
    [
        "TypeError: 'tuple' object does not support item assignment",
        "RuntimeError: Tensors must have same number of dimensions: got 4 and 3",
        "ValueError: Input tensor (shape=(344, 1, 1536)) and weight tensor (shape=(6144,)) are not compatible",
        "RuntimeError: expected dtype float for `end` but got dtype c10::Half",
    ],
)
def test_that_two_things_do_not_fit_is_no_advice_of_the_message(message):
    d = of("Megatron with TP=2 and PP=4 fails in the first step; with PP=2 it works.", message)

    assert "message-says-so" not in {a.cause for a in d.advice}
    assert "PP=2 works" in d.advice[0].title


@pytest.mark.parametrize(
    "said", ["Please share the training log, I want to see the trend of loss.", "Loss: 2.35 in epoch 1"]
)
def test_who_complains_of_nothing_gets_no_symptom(said):
    assert not of(said).recognised
    assert ((), ()) == (of(said).advice, of(said).guesses)
