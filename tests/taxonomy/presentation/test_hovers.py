"""Hovers: every text is complete and short, is found by its names, and takes its figures from the knowledge."""

from __future__ import annotations

import re

import pytest

from dtdebug_taxonomy.knowledge import facts
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.presentation import hovers
from dtdebug_taxonomy.presentation.api_names import method_named

KNOWLEDGE = load()
KINDS = ("python", "environment", "deepspeed", "option")
ENTRIES = [(kind, e) for kind in KINDS for e in dict.fromkeys(hovers.entries(kind).values())]


@pytest.mark.parametrize(("kind", "entry"), ENTRIES, ids=lambda v: v if isinstance(v, str) else v.name)
def test_a_text_is_complete_and_short(kind, entry):
    """Sentences end, symptoms exist, the page is an address, and the hover has at most 25 lines."""
    shown = hovers.hover(entry.name, KNOWLEDGE, kind)

    assert shown is not None
    assert len(shown.splitlines()) <= 25
    assert entry.is_.endswith(".")
    assert entry.wrong[-1] in '."'
    assert 1 <= len(entry.check) <= 5
    assert entry.symptoms
    assert all(code in KNOWLEDGE.symptoms for code in entry.symptoms)
    assert entry.page.startswith("https://")
    assert "<" not in shown


@pytest.mark.parametrize(("kind", "entry"), ENTRIES, ids=lambda v: v if isinstance(v, str) else v.name)
def test_a_text_names_no_figures_of_the_study(kind, entry):
    """Figures come from the knowledge, so that they cannot go stale in a text."""
    words = " ".join((entry.is_, entry.wrong, *entry.check))

    assert not re.search(r"\b\d+ of \d+\b|faults", words)


def test_names_and_aliases_belong_to_one_text_each():
    """No name is claimed by two texts of a kind."""
    for kind in KINDS:
        claimed = [n for e in dict.fromkeys(hovers.entries(kind).values()) for n in (e.name, *e.aliases)]
        assert [] == sorted({n for n in claimed if claimed.count(n) > 1})


def test_enough_is_covered():
    """Sixty Python names, forty DeepSpeed keys, the launch options of torchrun and Slurm."""
    count = {kind: len(set(hovers.entries(kind).values())) for kind in KINDS}

    assert count["python"] >= 60
    assert count["deepspeed"] >= 40
    assert count["environment"] >= 30
    assert count["option"] >= 30


def test_keys_and_options_with_a_text_exist():
    """A text for a key or option that the facts do not know would be about nothing."""
    table = facts.deepspeed_config()
    assert [] == [k for k in hovers.entries("deepspeed") if k not in table.keys]
    for entry in set(hovers.entries("option").values()):
        for name in (entry.name, *entry.aliases):
            command, _, flag = name.rpartition(" ")
            assert facts.launchers()[command].option(flag) is not None, name


@pytest.mark.parametrize(
    ("pointed_at", "entry"),
    [
        ("torch.distributed.all_reduce", "torch.distributed.all_reduce"),
        ("dist.all_reduce", "torch.distributed.all_reduce"),
        ("c10d.all_reduce", "torch.distributed.all_reduce"),
        ("all_reduce", "torch.distributed.all_reduce"),
        ("dist.send", "torch.distributed.send"),
        ("DDP", "torch.nn.parallel.DistributedDataParallel"),
        ("nn.parallel.DistributedDataParallel", "torch.nn.parallel.DistributedDataParallel"),
        ("self.accelerator.gather_for_metrics", "accelerate.Accelerator.gather_for_metrics"),
        ("train_sampler.set_epoch", "torch.utils.data.distributed.DistributedSampler.set_epoch"),
        ("tf.distribute.MultiWorkerMirroredStrategy", "tensorflow.distribute.MultiWorkerMirroredStrategy"),
        ("mpu.get_data_parallel_rank", "megatron.core.parallel_state.get_tensor_model_parallel_rank"),
        ("torchft.DistributedDataParallel", "torchft.DistributedDataParallel"),
        ("MASTER_ADDR", "MASTER_ADDR"),
        ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"),
        ("zero_optimization.stage", "zero_optimization.stage"),
        ("torchrun --nproc_per_node", "torchrun --nproc-per-node"),
        ("torchrun --nproc-per-node=8", "torchrun --nproc-per-node"),
        ("python -m torch.distributed.launch --nnodes", "torchrun --nnodes"),
        ("--rdzv-endpoint", "torchrun --rdzv-endpoint"),
        ("#SBATCH -N", "sbatch --nodes"),
        ("srun --ntasks-per-node", "sbatch --ntasks-per-node"),
        ("accelerate launch --num-processes", "accelerate launch --num_processes"),
        ("horovodrun -np", "horovodrun -np"),
    ],
)
def test_a_name_is_found_as_programs_write_it(pointed_at, entry):
    """Qualified, imported under another name, in either spelling, with a value."""
    found = hovers.look_up(pointed_at)

    assert found is not None
    assert found.entry is not None
    assert entry == found.entry.name


@pytest.mark.parametrize(
    "name",
    [
        "send",
        "load",
        "loss.backward",
        "optimizer.step",
        "",
        "MY_VARIABLE",
        "torchrun --frobnicate",
        "NCCL_ALL",
        "UCX_RC_NO_SUCH",
        "torch.distributed.tensor.DTensor.no_such",
        "mpu.get_accel_data",
        "--",
        ".",
    ],
)
def test_nothing_is_shown_for_what_may_be_something_else(name):
    """Common words, unknown names and constants of NCCL have no hover."""
    assert hovers.hover(name, KNOWLEDGE) is None


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("NCCL_NVLS_ENABLE", "NVLink"),
        ("NCCL_WORK_FIFO_DEPTH", "to 2.21.5"),
        ("NCCL_TREE_THRESHOLD", "do not read it"),
        ("NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ASYNC_ERROR_HANDLING` since 2.2"),
        ("TORCH_NCCL_RETHROW_CUDA_ERRORS", "reads it"),
        ("RAY_TRAIN_V2_ENABLED", "reads it"),
        ("RAY_memory_usage_threshold", "(https://docs.ray.io/en/latest/ray-core/scheduling/ray-oom-prevention.html)"),
        ("UCX_TLS", "**Often wrong:** Without cuda or rocm"),
        ("torch.distributed.pipelining.ScheduleGPipe", "ScheduleGPipe(stage, n_microbatches"),
        ("torch.distributed.all_gather_coalesced", "All ranks of the group must call it"),
        ("lightning.pytorch.strategies.ModelParallelStrategy", "A class of lightning"),
        ("torch.distributed.tensor.DTensor.full_tensor", "Called on rank 0 only, it waits for ever"),
        ("torch.distributed.fsdp.FSDPModule.set_post_optim_event", "a method of `FSDPModule` (torch 2.13.0)"),
        ("accelerate.Accelerator.reduce", "a method of `Accelerator`"),
        ("megatron.core.parallel_state.get_expert_data_parallel_world_size", "the size of one group, not of the job"),
        ("torchft.process_group.ProcessGroupWrapper.reconfigure", "made anew for each quorum"),
        ("deepspeed.comm.log_summary", "A function of deepspeed"),
        ("VLLM_ENGINE_READY_TIMEOUT_S", "(`vllm/envs.py`): int, default `600`"),
        ("UCX_RC_MLX5_TX_QUEUE_LEN", "Only for InfiniBand"),
        ("RAY_gcs_rpc_server_connect_timeout_s", "before `ray start`"),
        ("zero_optimization.cpu_offload", "offload_optimizer"),
        ("compression_training", "refuses it"),
        ("train_batch_size", '"auto" is filled in'),
        ("torchrun --start-method", "spawn, fork, forkserver"),
        ("sbatch --array", "many jobs"),
    ],
)
def test_facts_of_versions_are_told_with_or_without_a_text(name, told):
    """What the tables know about a name stands in its hover."""
    assert told in (hovers.hover(name, KNOWLEDGE) or "")


@pytest.mark.parametrize("kind", KINDS)
def test_every_name_has_more_to_show_than_itself(kind):
    """Below the name stands a text or a fact, not only a link."""
    for name in hovers.known_names(kind):
        title, *rest = (hovers.hover(name, KNOWLEDGE, kind) or "").splitlines()
        assert name in title
        assert [line for line in rest if line and not line.startswith("[Documentation]")], name


def test_a_method_is_found_by_what_the_variable_is_called():
    """Of a package that the program imports, and only if the class has it."""
    assert method_named("accelerator", "set_trigger", {"accelerate"}) == "accelerate.Accelerator.set_trigger"
    assert method_named("dp_mesh", "get_group", {"torch"}) == "torch.distributed.device_mesh.DeviceMesh.get_group"
    assert method_named("accelerator", "set_trigger", {"torch"}) == ""
    assert method_named("rocket", "set_trigger", {"accelerate"}) == ""


def test_symptoms_are_named_by_their_titles():
    """On one line, by the title and the code that `explain` takes."""
    shown = hovers.hover("torch.distributed.all_reduce", KNOWLEDGE) or ""

    [seen] = [line for line in shown.splitlines() if line.startswith("**Seen as:** ")]
    assert f"{KNOWLEDGE.symptoms['D.2.1'].title} (D.2.1)" in seen


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("torch.cuda.is_available", "torch.distributed.is_available"),
        ("torch.cuda.nccl.all_reduce", "torch.distributed.all_reduce"),
        ("torch.multiprocessing.get_logger.barrier", "torch.distributed.barrier"),
    ],
)
def test_the_same_last_name_in_another_module_is_another_name(name, other):
    """A full name is not matched by its last part."""
    assert hovers.look_up(other) is not None
    found = hovers.look_up(name)
    assert found is None or found.entry is None
    assert hovers.look_up("torch.accelerator.is_available") is None


def test_a_field_of_a_dataclass_has_its_default():
    """`needs` is said of parameters without one only."""
    options = "torch.distributed.checkpoint.state_dict.StateDictOptions"

    assert "`False` if it is left out" in (hovers.argument_hover(options, "full_state_dict") or "")
    assert "which it needs" in (hovers.argument_hover("torch.distributed.rpc.RRef", "value") or "")


def test_names_for_completion_hold_texts_and_facts():
    """All names of a kind, sorted."""
    environment = hovers.known_names("environment")

    assert list(environment) == sorted(environment)
    assert {"NCCL_ALGO", "RANK", "GLOO_SOCKET_IFNAME", "TORCH_FR_BUFFER_SIZE"} <= set(environment)
    assert "zero_optimization.stage" in hovers.known_names("deepspeed")
    assert "sbatch --nodes" in hovers.known_names("option")
    assert "deepspeed.initialize" in hovers.known_names("python")


@pytest.mark.parametrize("kind", KINDS)
def test_every_text_says_where_its_fact_is_from(kind):
    """A page, or the file of a release in which it was read."""
    texts = {name: hovers.hover(name, KNOWLEDGE, kind) for name in hovers.known_names(kind)}

    source = re.compile(r"https://|\w \d\S* reads it \(`|NCCL reads")
    from_nowhere = [name for name, text in texts.items() if not text or not source.search(text)]

    assert [] == from_nowhere


ARGUMENTS = sorted({(api, entry.name) for (_, entry) in hovers._arguments().items() for api in entry.of})


@pytest.mark.parametrize(("api", "name"), ARGUMENTS)
def test_the_text_of_a_keyword_is_short_and_has_a_page(api, name):
    """Two sentences, at most three demands, the address."""
    shown = hovers.argument_hover(api, name)

    assert shown is not None
    assert len(shown.splitlines()) <= 12
    assert shown.startswith(f"**`{api.rpartition('.')[2]}({name}=...)`**")
    assert "](https://" in shown
    assert "{" not in shown.replace('{"', "")


def test_a_call_shows_what_it_asks_for():
    """From its contracts, without values."""
    shown = hovers.hover("torch.distributed.all_gather_object", KNOWLEDGE)
    assert "- `all_gather_object` needs one place per rank." in shown
    assert hovers.demands_of("torch.distributed.nn.all_gather") == ()


@pytest.mark.parametrize(
    ("api", "name", "said"),
    [
        ("torch.distributed.init_process_group", "group_name", "`''` if it is left out"),
        ("torch.distributed.all_gather_object", "obj", "which it needs"),
        ("accelerate.Accelerator.unwrap_model", "keep_fp32_wrapper", "`Accelerator.unwrap_model` (accelerate"),
    ],
)
def test_a_keyword_without_a_text_shows_what_the_signature_says(api, name, said):
    """Its default, the release, and the page."""
    shown = hovers.argument_hover(api, name)

    assert said in shown
    assert "](https://" in shown


def test_a_keyword_that_no_signature_lists_shows_nothing():
    """It may be one of `**kwargs`."""
    assert hovers.argument_hover("torch.distributed.init_process_group", "no_such") is None
