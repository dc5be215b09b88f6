"""On torch's own distributed code the checks report just what was judged by hand; other packages are measured apart."""

import importlib.util
import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from measure import BASELINE, Package, Place, labels, packages, report, warnings

from dtdebug_taxonomy.checks.run.examine import examine
from dtdebug_taxonomy.checks.run.settings import Settings
from dtdebug_taxonomy.source.kinds import parse_file

JUDGED = "2.13.0"


def _torch():
    try:
        found = version("torch").partition("+")[0]
    except PackageNotFoundError:
        return None
    spec = importlib.util.find_spec("torch")
    return Path(spec.origin).parent if found == JUDGED and spec and spec.origin else None


@pytest.mark.skipif(_torch() is None, reason=f"needs torch {JUDGED}, which was judged")
def test_torch_itself_gets_just_the_warnings_that_were_judged():
    root = _torch()
    package = Package("torch", JUDGED, root)

    assert {p for p in labels() if p.package == "torch"} == warnings(package, root / "distributed")


def test_each_line_of_the_baseline_has_a_label_and_a_reason():
    rows = [json.loads(line) for line in BASELINE.read_text(encoding="utf-8").splitlines()]

    assert {"right", "wrong", "debatable"} >= {row["label"] for row in rows}
    assert all(row["why"] for row in rows)
    assert len(rows) == len({Place(*(row[f] for f in Place._fields)) for row in rows})


def test_no_check_is_a_warning_below_95_percent():
    """Beside the debatable ones, which are neither right nor wrong."""
    by_check = {}
    for place, label in labels().items():
        by_check.setdefault(place.id, []).append(label)

    shares = {i: ls.count("right") / max(ls.count("right") + ls.count("wrong"), 1) for i, ls in by_check.items()}
    assert {} == {i: s for i, s in shares.items() if s < 0.95 and "wrong" in by_check[i]}


def test_a_release_is_known_by_its_metadata(tmp_path):
    wheel, source = tmp_path / "wheel" / "a-1.dist-info", tmp_path / "source" / "b_c-2"
    for folder, file, name in ((wheel, "METADATA", "A"), (source, "PKG-INFO", "b_c")):
        folder.mkdir(parents=True)
        (folder / file).write_text(f"Name: {name}\nVersion: 3\n")

    assert [Package("b-c", "3", source), Package("a", "3", wheel.parent)] == list(packages(tmp_path))


def test_drift_from_the_baseline_is_named():
    new, gone = Place("p", "1", "a.py", 3, "DT101"), Place("p", "1", "b.py", 4, "DT102")

    lines = list(report({new}, {gone: "right"}))

    assert ["no label: p 1 a.py 3 DT101", "no hit: p 1 b.py 4 DT102 (right)"] == lines[-2:]


_SAVES = """\
from accelerate import Accelerator

accelerator = Accelerator()
if accelerator.is_main_process:
    accelerator.save_state("out")
"""
_CALLS_IT_LOCAL = """\
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
local_rank = dist.get_rank()
torch.cuda.set_device(local_rank)
"""
_ONE_DEVICE = """\
import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=-1, help="which GPU to use")
args = parser.parse_args()
if args.local_rank >= 0:
    torch.cuda.set_device(args.local_rank)
"""
_CONVERTS = """\
import os
import torch.distributed as dist

dist.init_process_group("gloo", rank=0, world_size=1)
if not os.path.exists("out"):
    os.makedirs("out")
"""
_FIRST_NODE = """\
NNODES=8
NODE_RANK=0
torchrun --nnodes $NNODES --node_rank $NODE_RANK --master_addr localhost --nproc_per_node 8 train.py
"""


@pytest.mark.parametrize(
    ("check", "name", "text", "more"),
    [
        ("DT103", "train.py", _SAVES, "# run with DeepSpeed\n"),
        ("DT202", "sample.py", _CALLS_IT_LOCAL, "# started on each host of the hostfile\n"),
        ("DT221", "infer.py", _ONE_DEVICE, "torch.distributed.init_process_group('nccl')\n"),
        ("DT511", "convert.py", _CONVERTS, "print(dist.get_rank())\n"),
        ("DT913", "run.sh", _FIRST_NODE.replace("RANK=0", "RANK=$1"), None),
        ("DT913", "run.sh", _FIRST_NODE, ""),
    ],
)
def test_what_may_be_of_no_matter_is_a_hint(check, name, text, more):
    """Until the program says more: that weights are sharded, that there are several machines, that it asks its rank."""

    def severities(text):
        source = parse_file(name, text)
        assert source is not None
        return {f.severity for f in examine(source, Settings(select=(check,)))}

    assert severities(text) == ({"warning"} if more is None else {"hint"})
    if more:
        assert severities(text + more) == {"warning"}


_SAVES_IN_A_FUNCTION = """\
import shutil
from accelerate import Accelerator

accelerator = Accelerator()

def save(path):
    shutil.rmtree(path, ignore_errors=True)
    accelerator.save_state(path)

if accelerator.is_main_process:
    save("out")
"""
_SPAWNS = """\
import torch
import torch.distributed as dist

def work(rank):
    dist.init_process_group("nccl", rank=rank, world_size=2)
    model = torch.nn.Linear(2, 2).cuda()

torch.multiprocessing.spawn(work, nprocs=2)
"""
_CHOOSES_A_DEVICE = """\
import os
import torch.distributed as dist

gpus = os.environ["GPUS"].split(",")
rank = int(os.environ["LOCAL_RANK"])
world_size = int(os.environ["WORLD_SIZE"])
gpu = int(gpus[rank])
dist.init_process_group("nccl")
part = total // world_size
"""
_STAGE_2 = '{"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}}'


@pytest.mark.parametrize(
    ("check", "name", "text"),
    [
        ("DT103", "train.py", _SAVES_IN_A_FUNCTION),
        ("DT201", "train.py", _SPAWNS),
        ("DT220", "train.py", _CHOOSES_A_DEVICE),
        ("DT705", "zero2_offload.json", _STAGE_2),
    ],
)
def test_no_fix_is_offered_that_fails_there_or_is_not_meant(check, name, text):
    """All ranks would remove files, a variable is not set, another device is taken, a file is called by its stage."""
    source = parse_file(name, text)
    assert source is not None

    found = examine(source, Settings(select=(check,)))

    assert [None] == [f.fix for f in found]
