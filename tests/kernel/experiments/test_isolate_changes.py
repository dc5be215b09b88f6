"""What isolate changes inside of ranks, tried on real programs: each fails as it is, and runs with the change."""

import json
import os
import subprocess
import sys

import pytest

from dtdebug.experiments.isolate.inside.record_writer import read_notes
from dtdebug.live.agent.arm import BOOTSTRAP
from dtdebug_taxonomy.knowledge import factors

LIMIT = 300
"""Seconds that nothing here may take."""
LOADER = """
import time, torch
from torch.utils.data import DataLoader, Dataset
class Clips(Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, i):
        time.sleep(10 * i)
        return i
for clip in DataLoader(Clips(), num_workers=1, timeout=7):
    print(int(clip))
"""
VALUES = """
import torch
from torch.utils.data import DataLoader
rows = [{"x": torch.tensor([1.0, float("inf")]), "y": i} for i in range(4)]
labels, after = [], torch.initial_seed()
for batch in DataLoader(rows, batch_size=2):
    assert torch.isfinite(batch["x"]).all(), "a value is infinite"
    assert batch["x"].shape == (2, 2)
    labels += batch["y"].tolist()
assert labels == [0, 1, 2, 3] and torch.isinf(rows[0]["x"]).any() and torch.initial_seed() == after
"""
BUCKETS = """
import os, torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
dist.init_process_group("gloo")
def hook(kept, bucket):
    kept.setdefault("left", torch.zeros_like(bucket.buffer())).add_(bucket.buffer())
    done = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done
model = DDP(torch.nn.Sequential(torch.nn.Linear(700, 700), torch.nn.Linear(700, 500)))
model.register_comm_hook({}, hook)
for _ in range(3):
    model(torch.ones(1, 700)).sum().backward()
"""
LATE = """
import os, time, torch
from datetime import timedelta
import torch.distributed as dist
place, rank = "file://" + os.path.abspath("store"), int(os.environ["RANK"])
dist.init_process_group("gloo", init_method=place, rank=rank, world_size=2, timeout=timedelta(seconds=8))
dist.barrier()
time.sleep(12 if rank == 0 else 0)
dist.all_reduce(torch.ones(1))
"""
WRAPPED = """
import os, torch
import torch.distributed as dist
class Model(torch.nn.Linear):
    def encode(self, x):
        return self(x)
model = Model(2, 2)
if "RANK" in os.environ:
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(model)
model.encode(torch.ones(1, 2))
"""
FORKED = """
import torch
import torch.multiprocessing as mp
def work(rank):
    torch.set_num_interop_threads(1)
if __name__ == "__main__":
    work(-1)
    mp.start_processes(work, nprocs=2, start_method="fork")
"""
CASES = {
    "loader-timeout": (LOADER, 1, "timed out after 7 seconds"),
    "made-up-data": (VALUES, 1, "a value is infinite"),
    "ddp-bucket-size": (BUCKETS, 1, "must match the size of tensor"),
    "group-timeout": (LATE, 2, "imed out"),
    "no-launcher": (WRAPPED, 1, "object has no attribute 'encode'"),
    "ranks-start": (FORKED, 1, "cannot set number of interop threads"),
}


def run(folder, program, ranks, changed):
    """(exit status of each rank, what they printed, what was noted) with a change, or with none."""
    (folder / "notes").mkdir(parents=True)
    change = {changed.knob: changed.value} if changed else {}
    told = {"notes": str(folder / "notes"), "change": change, "environment": {}, "versions": {}, "ours": [], "begun": 0}
    (folder / "change.json").write_text(json.dumps(told))
    (folder / "train.py").write_text(program)
    armed = {"PYTHONPATH": BOOTSTRAP, "DTDEBUG_ISOLATE": str(folder / "change.json"), "OMP_NUM_THREADS": "1"}
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "WORLD_SIZE": str(ranks)}
    jobs = [
        subprocess.Popen(
            [sys.executable, "train.py"], cwd=folder, env=os.environ | armed | where | {"RANK": str(rank)},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL,
        )
        for rank in range(ranks)
    ]  # fmt: skip
    try:
        printed = "".join(job.communicate(timeout=LIMIT)[0] for job in jobs)
    finally:
        for job in jobs:
            job.kill()
    notes = {(row["kind"], row["name"]) for row in read_notes(folder / "notes")}
    return [job.returncode for job in jobs], printed, notes


@pytest.mark.ranks
@pytest.mark.parametrize("name", CASES)
def test_the_job_fails_as_it_is_and_runs_with_the_change(name, tmp_path):
    """The first run shows that the factor applies; with it the failure is gone, and the change was seen."""
    program, ranks, said = CASES[name]
    factor = next(f for f in factors.load() if f.id == name)
    statuses, printed, notes = run(tmp_path / "as-it-is", program, ranks, None)
    assert any(statuses), printed
    assert said in printed
    here = {"group"} if ranks == 1 else set()  # noted of several ranks only
    assert {("saw", use) for use in {*factor.uses} - here} <= notes
    statuses, printed, notes = run(tmp_path / "changed", program, ranks, factor)
    assert statuses == [0] * ranks, printed
    assert ("set", factor.knob) in notes
