"""What printed numbers show to be impossible or uneven."""

import pytest

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.explanations.figures import find_misfit
from dtdebug_taxonomy.explanations.reckoners.shares import divide
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot

PRODUCT = (
    "AssertionError: Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu *"
    " gradient_acc_step * world_size "
)
PENDING = "Pending Demands:\n{asked}: 1+ pending placement groups\n"


def first(output, situation="Training on several GPUs."):
    return diagnose(load(), Snapshot(situation=situation, output=output)).advice[0]


@pytest.mark.parametrize(
    ("usage", "asked", "says"),
    [
        ("0.0/34.0 CPU\n0.0/1.0 GPU\n", "{'GPU': 1.0} * 2 (PACK)", "2 GPUs are asked of Ray, and it knows 1"),
        ("0.0/20.0 CPU\n", "{'CPU': 1.0, 'GPU': 1.0}", "1 GPU is asked of Ray, and it knows 0"),
        ("2.0/2.0 CPU\n", "{'CPU': 2.0}", "2 CPUs are asked of Ray, and 0 of 2 free"),
    ],
)
def test_what_is_asked_is_held_against_what_is_free(usage, asked, says):
    found = first(f"Total Usage:\n{usage}{PENDING.format(asked=asked)}")

    assert says == found.title
    assert "printed" == found.grade


def test_one_request_that_is_printed_twice_is_counted_once():
    waits = "Waiting for creating a placement group of specs for 150 s. specs=[{'GPU': 1.0}, {'GPU': 1.0}]. Check\n"
    found = first(f"{waits}Total Usage:\n0.0/1.0 GPU\n{PENDING.format(asked=str({'GPU': 1.0}) + ' * 2 (PACK)')}")

    assert "2 GPUs are asked of Ray, and it knows 1" == found.title


def test_a_request_that_fits_is_none():
    output = f"Total Usage:\n0.0/8.0 GPU\n{PENDING.format(asked={'GPU': 1.0})}"
    advice = diagnose(load(), Snapshot(situation="Ray waits on 8 GPUs.", output=output)).advice

    assert "resources-do-not-suffice" not in {a.cause for a in advice}


def test_a_batch_that_fits_the_started_processes_says_that_they_are_not_counted():
    """And without their number, or if it does not fit either, only the product is told."""
    command = "torchrun --nproc_per_node=8 train.py"

    assert "with 8 the batch fits (4 x 8 x 8 = 256)" in first(f"{PRODUCT}256 != 4 * 8 * 1", command).title
    assert "with 8 the batch fits" in first(f"{command} --zero 3\n{PRODUCT}256 != 4 * 8 * 1", "It fails.").title
    assert "batch-fits-the-started-processes" != first(f"{PRODUCT}250 != 4 * 8 * 1", command).cause
    assert "batch-fits-the-started-processes" != first(f"{PRODUCT}256 != 4 * 8 * 1").cause


def test_both_sides_of_an_assertion_are_told():
    """By the values printed above it; a comparison that holds with them was another one."""
    frames = (
        'max(gpu_ids): {0}, torch.cuda.device_count(): 1\nTraceback (most recent call last):\n  File "/home/me/f.py",'
        " line 52, in get\n    assert max(gpu_ids) < torch.cuda.device_count()\nAssertionError\n"
    )

    assert first(frames.format(3)).title.startswith("max(gpu_ids) is 3, and has to be below torch.cuda.device_count()")
    assert "sides-of-an-assertion" not in {
        a.cause for a in diagnose(load(), Snapshot(situation="4 GPUs", output=frames.format(0))).advice
    }


def test_fewer_devices_than_processes_are_seen_by_printed_figures():
    found = first(
        "torch.cuda.device_count(): 2\nRuntimeError: it failed", "torchrun --nproc_per_node=4 train.py stops."
    )

    assert "4 processes are started on a host on which 2 devices are visible" == found.title


def test_uneven_steps_are_worked_out():
    """Dealt out in turn or cut in blocks, as those who wait tell."""
    assert divide(145, 3, 16) == ([49, 48, 48], [4, 3, 3])
    assert divide(145, 3, 16, frozenset({0, 1})) == ([49, 49, 47], [4, 4, 3])
    assert divide(144, 3, 16) is None
    assert divide(145, 3, 100) is None
    assert divide(2, 3, 1) is None

    said = (
        "145 files on 3 ranks with a batch size of 16: after the last step ranks 0 and 1 stand in the barrier for ever."
    )
    found = diagnose(load(), Snapshot(situation=said))

    assert "0-1 make 4 steps and the others 3" in found.advice[0].title


REDUCER = "[rank0]: RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one."


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "audio params: 12, requires_grad: 12\nno gradient after backward: 12",
            "All 12 audio parameters get no gradient",
        ),
        ("text tower parameters: 40\nwithout grad: 7", "7 of 40 text tower parameters get no gradient"),
        (
            "parameters without gradient: head.fc.weight, head.fc.bias",
            "No gradient reaches head.fc.weight, head.fc.bias",
        ),
        ("9 of the 9 adapter parameters have no gradient", "All 9 adapter parameters get no gradient"),
    ],
)
def test_parameters_without_gradient_are_named(text, says):
    found = first(f"{REDUCER}\n\n{text}\n", "It stops on 2 GPUs.")

    assert found.title == says
    assert "Freeze" in found.fix


@pytest.mark.parametrize(
    "output",
    [
        f"{REDUCER}\nvision params: 31\nno gradient after backward: 0",
        "vision params: 31\nno gradient after backward: 31\nRuntimeError: NCCL error: unhandled system error",
        f'{REDUCER}\n    print(f"no gradient after backward: {{n}} 31")',
    ],
)
def test_no_parameter_is_named_where_none_is_missing_or_nobody_waits(output):
    advice = diagnose(load(), Snapshot(situation="It stops on 2 GPUs.", output=output)).advice

    assert "parameters-named-without-gradient" not in {a.cause for a in advice}


ASSERT = "On 2 GPUs: RuntimeError: CUDA error: device-side assert triggered. "


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ("The eos token id is 64001 and the vocab_size is 64000.", "Token id 64001 is outside the vocabulary of 64000"),
        (
            "pad_token_id=32000, the model has Embedding(32000, 4096).",
            "Token id 32000 is outside the vocabulary of 32000",
        ),
        ("The largest label is 10, with num_classes=10.", "Label 10 is outside the number of classes of 10"),
        (
            "I set CUDA_LAUNCH_BLOCKING=1. The pad token id is 50257.",
            "Token id 50257 needs an embedding of at least 50258",
        ),
    ],
)
def test_an_index_is_held_against_the_size(said, says):
    found = first("", ASSERT + said)

    assert found.title.startswith(says)
    assert "CUDA_LAUNCH_BLOCKING" not in found.fix


@pytest.mark.parametrize(
    "said",
    [
        f"{ASSERT}The eos token id is 2 of a vocab_size of 32000.",
        f"{ASSERT}The labels are 10 classes.",
        "The eos token id is 64001 and the vocab_size is 64000; on 2 GPUs it hangs.",
    ],
)
def test_an_index_that_fits_or_that_nothing_refuses_is_none(said):
    assert "index-against-size" not in {a.cause for a in diagnose(load(), Snapshot(situation=said)).advice}


@pytest.mark.parametrize(
    ("message", "title", "fix"),
    [
        (
            "The global train batch size (1 x 1) must be evenly divisible by the number of generations per prompt (4).",
            "global train batch size 1 x 1 = 1 is not a multiple of number of generations per prompt 4",
            "(4 or 8): change one of the factors 1 x 1",
        ),
        (
            "global batch size (6 * 3) is not divisible by micro batch size times data parallel size (4)",
            "global batch size 6 * 3 = 18 is not a multiple of micro batch size times data parallel size 4",
            "(16 or 20)",
        ),
        ("total batch size: 3 x 5 is not a multiple of 4", "total batch size 3 x 5 = 15 is not a multiple of 4", "16"),
    ],
)
def test_a_product_is_held_against_its_divisor(message, title, fix):
    found = find_misfit(message)

    assert found.title == title
    assert fix in found.fix


def test_a_product_that_fits_is_no_misfit():
    assert find_misfit("batch size (2 x 4) must be divisible by the number of generations (4)") is None
    assert find_misfit("image of (3 x 224 x 224) is larger than expected") is None


ORDINAL = 'Traceback (most recent call last):\n  File "t.py", line 3, in <module>\n    torch.cuda.set_device(r)\n{0}\n'


@pytest.mark.parametrize(
    ("said", "start"),
    [
        ("The server has 4*4090. I start it with sh run.sh", "A process asks for a device number above 3"),
        ("A node with 8x A100, started by bash go.sh", "A process asks for a device number above 7"),
        ("The machine has 2 GPUs.", "A process asks for a device number above 1"),
        ("With 4x3090: torchrun --nproc_per_node=8 t.py", "8 processes are started on a host that has 4 GPUs"),
    ],
)
def test_a_device_number_is_held_against_the_devices_that_are_counted(said, start):
    assert first(ORDINAL.format("RuntimeError: CUDA error: invalid device ordinal"), said).title.startswith(start)


def test_devices_alone_say_nothing_of_another_error():
    advice = diagnose(
        load(), Snapshot(situation="8x A100, sh run.sh", output=ORDINAL.format("RuntimeError: CUDA out of memory."))
    ).advice

    assert "more-processes-than-gpus" not in {a.cause for a in advice}


TOO_HIGH = "RuntimeError: CUDA error: invalid device ordinal\n"


@pytest.mark.parametrize(
    ("given", "says", "starts"),
    [
        ("CUDA_VISIBLE_DEVICES=6,7 bash go.sh\n", "2 devices are visible, numbered 0 and 1", "Start 2 processes"),
        ("$ export CUDA_VISIBLE_DEVICES=0,2,5\n", "3 devices are visible, numbered 0 to 2", "Start 3 processes"),
        ("CUDA_VISIBLE_DEVICES=3 ./go.sh\n", "1 device is visible, numbered 0", "Start 1 process per host"),
    ],
)
def test_devices_that_a_command_makes_visible_are_counted(given, says, starts):
    found = first(f"{given}\n{TOO_HIGH}")

    assert says in found.title
    assert found.fix.startswith(starts)


def test_of_several_hosts_the_global_rank_may_be_too_high():
    found = first(f"CUDA_VISIBLE_DEVICES=0,1 bash go.sh\n\n{TOO_HIGH}", "It fails on 2 nodes.")

    assert "visible" not in found.title


ROW = "|    {gpu}   N/A  N/A     {pid}      C   python                   {size}MiB |\n"


def test_a_process_on_the_device_of_another_is_named_from_a_pasted_table():
    table = "".join(ROW.format(gpu=g, pid=p, size=s) for g, p, s in ((0, 620, 4903), (0, 621, 725), (1, 621, 4903)))
    found = first(table, "Memory of the two GPUs differs.")

    assert ("Process 621 is on GPU 1 and on GPU 0 too", "something-opens-first-gpu") == (found.title, found.cause)


def test_a_model_spread_over_devices_is_no_stray_context():
    table = "".join(ROW.format(gpu=gpu, pid=620, size=8103) for gpu in (0, 1))
    advice = diagnose(load(), Snapshot(situation="The model is on two GPUs. It hangs.", output=table)).advice

    assert "something-opens-first-gpu" not in {a.cause for a in advice}


def titles(situation, output=""):
    return [a.title for a in diagnose(load(), Snapshot(situation=situation, output=output)).advice]


OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked} MiB. GPU 1 has a total capacity of 47.40 GiB"
    " of which 21.00 MiB is free. {rest}Of the allocated memory {held} GiB is allocated by PyTorch, and {idle} GiB is"
    " reserved by PyTorch but unallocated."
)
EARLIER = (
    "RuntimeError: CUDA out of memory. Tried to allocate 30.00 MiB (GPU 1; 47.40 GiB total capacity; 6.10 GiB already"
    " allocated; 21.00 MiB free; 6.40 GiB reserved in total by PyTorch)"
)


@pytest.mark.parametrize(
    ("report", "says"),
    [
        (OOM.format(asked="30.00", rest="", held="6.10", idle="0.30"), "hold about 41 of the 47 GiB of GPU 1"),
        (EARLIER, "hold about 41 of the 47 GiB of GPU 1, which is number 6 of the host, and this one 6.4 GiB"),
        (OOM.format(asked="900.00", rest="", held="39.00", idle="8.20"), "8.2 GiB are reserved and unused"),
    ],
)
def test_the_amounts_of_an_allocator_say_who_holds_the_device(report, says):
    assert says in titles("Training on two GPUs with CUDA_VISIBLE_DEVICES=5,6 runs out of memory.", report)[0]


def test_a_device_that_this_process_fills_is_held_by_nobody_else():
    """And then the next step is no table of processes, for the report says that of itself."""
    own = "Process 7 has 47.38 GiB memory in use. "
    found = diagnose(load(), Snapshot(
        situation="Memory runs out on two GPUs.", output=OOM.format(asked="900.00", rest=own, held="46.10", idle="0.20")
    ))  # fmt: skip

    assert "amounts-of-an-allocator" not in {a.cause for a in found.advice}
    assert found.next is not None
    assert "nvidia-smi" not in found.next.command


TAKEN = (
    "RuntimeError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: 0, code:"
    " -98, name: EADDRINUSE, message: address already in use"
)


def test_a_port_that_was_not_set_is_chosen_by_something_else():
    other = titles("I start two jobs on one host, this one with MASTER_PORT=29617 for its 4 GPUs.", TAKEN)
    same = titles("I start two jobs on one host, this one with MASTER_PORT=29500 for its 4 GPUs.", TAKEN)

    assert other[0] == "The port in use is 29500, not the 29617 that you set: something chooses its own"
    assert not [t for t in same if t.startswith("The port in use is")]


@pytest.mark.parametrize(
    ("said", "count"),
    [
        ("With 8 GPUs the learning rate reaches zero after 500 of 4000 steps.", 8),
        ("The schedule is for 20k steps on 4 GPUs, but the lr decay ends at 5k steps instead of 20k.", 4),
        ("With 2 GPUs it stops with an error half-way through the steps, with 4 GPUs it stops at 25% progress.", 2),
        ("With 8 GPUs it hangs at step 500 of 4000, the lr is fine.", 0),
        ("With 4 GPUs the learning rate reaches zero after 3900 of 4000 steps.", 0),
        ("With 4 GPUs the warm-up ends and throughput is 25% of one GPU's.", 0),
    ],
)
def test_a_share_of_the_steps_that_is_one_of_the_processes(said, count):
    found = [t for t in titles(said) if t.startswith("It is through after 1/")]

    assert [f"1/{count} of the way with {count} processes" in t for t in found] == [True] * (count > 0)


def test_what_an_engine_leaves_is_told_where_memory_runs_out_beside_it():
    said = "GRPO on 4 GPUs, the engine colocated with the actor, runs out of memory. I set gpu_memory_utilization={0}."

    assert titles(said.format("0.85"))[0].startswith("The inference engine takes 85 % of each GPU, and leaves 15 %")
    assert not [t for t in titles(said.format("0.2")) if t.startswith("The inference engine takes")]


LISTED = (
    "Two nodes wait for ever in the first all_reduce, with NCCL_SOCKET_IFNAME={0} and MASTER_ADDR=10.3.0.7. ip addr:\n"
    "1: lo: <LOOPBACK,UP> mtu 65536\n    inet 127.0.0.1/8 scope host lo\n"
    "2: enp5s0: <BROADCAST,UP> mtu 1500\n    inet 10.3.0.7/24 scope global enp5s0\n"
    "3: ib0: <BROADCAST,UP> mtu 2044\n    inet 192.168.9.7/24 scope global ib0\n"
)


@pytest.mark.parametrize(
    ("name", "fix"),
    [("eth0", "export NCCL_SOCKET_IFNAME=enp5s0"), ("=enp", "export NCCL_SOCKET_IFNAME=enp5s0"), ("lo", "of its own")],
)
def test_a_chosen_interface_that_joins_no_hosts(name, fix):
    words = LISTED.format(name)
    found = diagnose(load(), Snapshot(situation=words if name != "lo" else words.partition(" and MASTER")[0])).advice[0]

    assert found.cause == "chosen-interface-joins-no-hosts"
    assert fix in found.fix


@pytest.mark.parametrize("name", ["enp", "=enp5s0", "^docker", "ib,enp"])
def test_a_chosen_interface_that_is_there_is_none(name):
    advice = diagnose(load(), Snapshot(situation=LISTED.format(name))).advice

    assert "chosen-interface-joins-no-hosts" not in {a.cause for a in advice}


def test_a_limit_that_the_writer_has_set_is_named():
    """If it is the time that was waited; not if another one was."""
    said = "On 4 GPUs init_process_group(timeout=timedelta(seconds={0})) and evaluation on rank 0 only: watchdog after"

    assert titles(f"{said.format(20)} 20000 ms.")[0].startswith("20 seconds is the time limit that you set")
    assert not [t for t in titles(f"{said.format(20)} 600000 ms.") if "limit that you set" in t]


_SHORT = "ValueError: Total available GPUs 8.0 is less than total desired GPUs 24\n"


def test_a_shortage_by_the_number_of_nodes_is_one_node_that_is_seen():
    found = first(_SHORT, "Three nodes with 8 GPUs each, joined by ray start.")

    assert "24 GPUs are asked of Ray, and it knows 8, which is one of the 3 nodes" == found.title
    assert "address" in found.fix


def test_a_shortage_by_another_number_blames_no_address():
    found = first(_SHORT, "Two nodes with 8 GPUs each, joined by ray start.")

    assert "24 GPUs are asked of Ray, and it knows 8" == found.title
    assert "address" not in found.fix


def test_a_demand_without_figures_keeps_the_names_of_the_message():
    said = (
        "GRPO on 4 GPUs: has the global batch size (processes * batch) to be divisible? It says: the global batch size"
    )
    said += " (processes * batch) has to be divisible by the number of candidates."
    found = diagnose(load(), Snapshot(situation=said))

    assert "Global batch size has to be a multiple of number of candidates" == (*found.advice, *found.guesses)[0].title


def test_the_figures_of_a_message_that_stands_twice_are_used():
    message = (
        "ValueError: The train batch size (5 x 1) must be divisible by the number of candidates for each prompt (4)"
    )
    output = f'Traceback (most recent call last):\n  File "/w/run.py", line 3, in <module>\n    go()\n{message}\n'
    found = first(output, f"{message}\n\nI train on 5 GPUs.")

    assert "Make train batch size a multiple of 4 (4 or 8)" in found.fix
