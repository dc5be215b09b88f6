"""The tables of facts: well-formed, consistent with each other, and what the installed torch says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec

import pytest
from places import ROOT

from dtdebug_taxonomy.knowledge import facts
from dtdebug_taxonomy.knowledge.facts.tables import Lifetime
from dtdebug_taxonomy.presentation.hovers import entries

GENERATOR = ROOT / "tests" / "facts" / "generate.py"
TORCH_TABLES = ("nn_module", "torch_distributed", "torch_env", "torchrun")
TABLES = sorted(p.stem for p in facts.HOME.glob("*.json"))
LOADERS = [
    *(facts.nccl, facts.nccl_meanings, facts.vendor_meanings, facts.torch_env, facts.launchers, facts.deepspeed_config),
    *(facts.accelerate_config, facts.lightning_trainer, facts.transformers_arguments, facts.replacements),
    *(facts.nn_module, facts.torch_distributed, facts.public_names, facts.environment, facts.name_meanings),
]


def sorted_objects(node):
    """Every object below is sorted by key, so that a difference between versions reads well."""
    if isinstance(node, dict):
        return list(node) == sorted(node) and all(map(sorted_objects, node.values()))
    return True


@pytest.mark.parametrize("load", LOADERS, ids=lambda f: f.__name__)
def test_every_table_can_be_read_and_is_read_once(load):
    """A loader gives the same object again."""
    assert load() is load()


@pytest.mark.parametrize("name", TABLES)
def test_generated_tables_are_sorted_and_name_their_generator(name):
    """Entries are sorted; the head says from which versions and by which command the table was made."""
    table = json.loads((facts.HOME / f"{name}.json").read_text(encoding="utf-8"))

    assert f"tests/facts/generate.py {name}" == table["generated_by"]
    assert re.search(r"\d+\.\d+", table["source"])
    entries = table.get("variables") or table.get("keys") or table.get("arguments") or table.get("functions") or {}
    assert sorted_objects(dict.fromkeys(entries))


def test_generated_tables_have_one_entry_a_line():
    """A line of a table holds one entry at most."""
    lines = (facts.HOME / "deepspeed_config.json").read_text(encoding="utf-8").splitlines()

    assert 1 == sum('"fp16.enabled"' in line for line in lines)
    assert max(line.count('": {') for line in lines) == 1


def test_tables_of_torch_are_what_the_installed_torch_says():
    """Generating them again gives the same text, where the torch is installed from which they were made."""
    if find_spec("torch") is None:
        pytest.skip("torch is not installed")
    made_from, installed = facts.torch_env().source, f"torch {metadata.version('torch')}"
    if made_from != installed:
        pytest.skip(f"made from {made_from}, installed is {installed}")
    done = subprocess.run(
        [sys.executable, GENERATOR, "--check", *TORCH_TABLES], capture_output=True, text=True, timeout=300, check=False
    )

    assert 0 == done.returncode, done.stderr


def test_tables_of_torch_are_made_from_the_torch_that_is_tested_with():
    """A new torch in the Makefile asks for new tables."""
    wanted = re.search(r"TORCH \?= torch==(\S+)", (ROOT / "Makefile").read_text(encoding="utf-8"))

    assert wanted is not None
    for table in (facts.nn_module(), facts.torch_distributed(), facts.torch_env()):
        assert f"torch {wanted[1]}" == table.source.partition("+")[0]


def test_variables_of_nccl_are_apart_from_its_constants():
    """Enumerators of the library are no variables; variables that came or went say when."""
    table = facts.nccl()

    assert not set(table.constants) & set(table.variables)
    assert {"NCCL_DEBUG", "NCCL_SOCKET_IFNAME", "NCCL_P2P_DISABLE", "NCCL_IB_HCA"} <= set(table.variables)
    assert "NCCL_P2P_NET_DISABLE" not in table.variables
    assert {"NCCL_ALL", "NCCL_LOG_INFO", "NCCL_CONFIG_INITIALIZER"} <= set(table.constants)
    assert Lifetime() == table.variables["NCCL_DEBUG"]
    assert "2.21.5" == table.variables["NCCL_WORK_FIFO_DEPTH"].until
    assert "2.24.3" == table.variables["NCCL_RAS_ENABLE"].since


def test_documented_variables_of_nccl_exist_or_are_known_to_be_gone():
    """What has a meaning is in the library, but for names that documentation still tells of."""
    gone = {
        *("NCCL_CHECKS_DISABLE", "NCCL_IB_CUDA_SUPPORT"),
        *("NCCL_LL_THRESHOLD", "NCCL_SINGLE_RING_THRESHOLD", "NCCL_TREE_THRESHOLD"),
    }

    assert gone == set(facts.nccl_meanings()) - set(facts.nccl().variables)
    assert all(m.means.endswith(".") for m in facts.nccl_meanings().values())


def test_variables_of_vendors_are_told_once_and_whole():
    """Sentences end, the page is an address, and no variable has a second text."""
    told = {n for e in entries("environment").values() for n in (e.name, *e.aliases)} | set(facts.nccl_meanings())

    assert set() == told & set(facts.vendor_meanings())
    for name, row in (facts.vendor_meanings() | facts.name_meanings()).items():
        assert row.means.endswith("."), name
        assert row.wrong[-1:] == ".", name
        assert row.url.startswith("https://"), name


def test_names_with_a_meaning_exist_and_families_are_of_something():
    """A meaning is of a name that the packages export; each pattern fits names of the tables."""
    table = facts.public_names()
    methods = {f"{cls}.{name}" for cls, own in table.methods.items() for name in own}
    names = {*table.names, *table.elsewhere, *methods}
    known = names | set(facts.environment().variables)

    assert set() == set(facts.name_meanings()) - names
    assert {wrong for _, wrong in facts.families()} == {facts.wrong_of_family(n) for n in known} - {""}


def test_variables_of_torch_and_their_renamings():
    """Renamed variables point to ones that torch reads; what launchers set for ranks is there."""
    table = facts.torch_env()

    assert {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "TORCH_DISTRIBUTED_DEBUG"} <= set(table.variables)
    assert "TORCH_NCCL_ASYNC_ERROR_HANDLING" == table.renamed["NCCL_ASYNC_ERROR_HANDLING"].new
    assert "2.2" == table.renamed["NCCL_BLOCKING_WAIT"].since
    assert all(r.new in table.variables for r in table.renamed.values())


def test_options_of_launchers_are_found_by_each_spelling():
    """Both spellings of torchrun, either dash of accelerate, short options of Slurm."""
    torchrun, accelerate = facts.launchers()["torchrun"], facts.launchers()["accelerate launch"]

    assert torchrun.option("--nproc_per_node") is torchrun.options["--nproc-per-node"]
    assert accelerate.option("--num-processes") is accelerate.options["--num_processes"]
    assert facts.launchers()["sbatch"].option("-N") is facts.launchers()["sbatch"].options["--nodes"]
    assert not torchrun.options["--standalone"].takes_value
    assert ("spawn", "fork", "forkserver") == torchrun.options["--start-method"].choices
    assert torchrun.option("--no-such") is None


def test_sections_of_dotted_keys_are_keys_too():
    """Each key of a configuration has its section in the table, or stands in an open one."""
    for keys in (facts.deepspeed_config().keys, facts.accelerate_config().keys):
        assert [] == [k for k in keys if "." in k and k.rpartition(".")[0] not in keys]


def test_deepspeed_keys_know_auto_replacements_and_removals():
    """What Transformers fills in, what is deprecated, what is refused."""
    table = facts.deepspeed_config()

    assert table.keys["train_batch_size"].auto
    assert not table.keys["zero_optimization.overlap_comm"].auto
    assert "offload_optimizer" == table.keys["zero_optimization.cpu_offload"].replaced_by
    assert table.keys["optimizer.params"].open
    assert "compression_training" in table.removed
    assert not set(table.removed) & set(table.keys)


def test_replacements_are_for_arguments_that_are_gone():
    """Every replacement belongs to an argument of the table that newer versions have no more."""
    tables = {"lightning_trainer": facts.lightning_trainer(), "transformers_arguments": facts.transformers_arguments()}
    for name, replaced in facts.replacements().items():
        assert [] == [a for a in replaced if not tables[name].arguments[a].until]
    assert "num_nodes" not in facts.replacements()["lightning_trainer"]
    assert Lifetime() == facts.lightning_trainer().arguments["num_nodes"]


def test_wrappers_have_only_what_a_module_has_not():
    """An attribute of a wrapper is not one of every module; those of a model are in neither."""
    table = facts.nn_module()

    assert all(not set(own) & set(table.module) for own in table.wrappers.values())
    assert {"module", "no_sync", "join"} <= set(table.wrappers["DistributedDataParallel"])
    assert "clip_grad_norm_" in table.wrappers["FullyShardedDataParallel"]
    assert {"parameters", "training", "state_dict"} <= set(table.module)


def test_functions_of_torch_distributed_by_kind():
    """Collectives, object collectives, point-to-point and makers of groups, with the place of `group`."""
    functions = facts.torch_distributed().functions

    assert ("tensor", "op", "group", "async_op") == functions["all_reduce"].parameters
    assert functions["all_reduce"].async_op
    assert "object" == functions["all_gather_object"].kind
    assert "point-to-point" == functions["send"].kind
    assert "group" == functions["new_group"].kind
    assert 1 == functions["broadcast"].required
    assert "get_rank" not in functions


def test_reading_facts_does_not_import_torch():
    """The tables are data: whoever reads them needs no torch."""
    code = (
        "import sys; from dtdebug_taxonomy.knowledge import facts; facts.torch_env(), facts.nn_module(); "
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)

    assert "False" == done.stdout.strip()
