"""Measures the cost of following a run per step on a GPU: blocks with and without the recorder alternate in one job.

    python benchmarks/course_gpu.py [KIND [RANKS [SAMPLES [PAIRS]]]]      # ddp or fsdp2

Eight transformer layers of width 1,024 in bfloat16, NCCL, fingerprints only; ranks share one GPU, each as a separate
host. Wall-clock seconds, which is what a user waits for; the watch, which samples less and less often, is compared with
a plain job by the means of early and late steps. Needs an NVIDIA GPU and its torch.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from course import interval

LIMIT = 300
PROGRAM = """
import os, statistics, sys, time, torch, torch.distributed as dist

kind, samples, pairs = sys.argv[1], *map(int, sys.argv[2:])
rank = int(os.environ["RANK"])
os.environ.update(NCCL_HOSTID=f"host{rank}", NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1")
torch.cuda.set_device(0)
dist.init_process_group("nccl")
torch.manual_seed(0)
layer = lambda: torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, dropout=0.0)
model = torch.nn.Sequential(*[layer() for _ in range(8)]).cuda()
if kind == "fsdp2":
    from torch.distributed.fsdp import fully_shard
    for each in model:
        fully_shard(each)
    fully_shard(model)
else:
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
torch.manual_seed(rank)
data = torch.randn(samples, 512, 1024, device="cuda")

def steps(count):
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(count):
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(data).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not pairs:
            torch.cuda.synchronize()
    torch.cuda.synchronize()
    return (time.perf_counter() - begun) / count

if pairs:
    from dtdebug.experiments.collectives.inside import dispatcher_hook as road
    listeners = list(road._listeners)
    assert listeners

    def block(recorded):
        road._listeners[:] = []
        dist.barrier()
        road._listeners[:] = listeners if recorded else []
        return steps(5)

    block(True), block(False)
    for pair in range(pairs):
        order = (True, False) if pair % 2 else (False, True)
        took = {recorded: block(recorded) for recorded in order}
        if rank == 0:
            print("PAIR", took[True], took[False], flush=True)
    road._listeners[:] = []
else:
    steps(5)
    early, late = steps(35), steps(160)
    if rank == 0:
        print("STEPS", early, late, flush=True)
dist.destroy_process_group()
"""


def output(options: list[str], ranks: str, *words: str) -> str:
    """Return the output of a job under `dtdebug run` with these options."""
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "train.py").write_text(PROGRAM, encoding="utf-8")
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks]
        return subprocess.run(
            [sys.executable, "-m", "dtdebug", "run", "--quiet", *options, "--", *torchrun, "train.py", *words],
            cwd=place, check=True, capture_output=True, text=True, timeout=LIMIT,
        ).stdout  # fmt: skip


def main() -> None:
    """Print the cost of the recorder, then the cost of the watch."""
    given = sys.argv[1:]
    kind, ranks, samples, pairs = [*given, *("ddp", "1", "64", "12")[len(given) :]]
    found = re.findall(r"PAIR (\S+) (\S+)", output(["--record", "run", "--data", "0"], ranks, kind, samples, pairs))
    alone = sum(float(b) for _, b in found) / len(found)
    more = interval([float(a) / float(b) - 1 for a, b in found])
    print(f"{kind}, {ranks} ranks: recorded {more}, {len(found)} pairs, {alone * 1e3:.1f} ms a step", flush=True)
    for way, options in (("plain", []), ("watched", ["--watch"])) * 2:
        (told,) = re.findall(r"STEPS (\S+) (\S+)", output(options, ranks, kind, samples, "0"))
        early, late = (float(each) * 1e3 for each in told)
        print(f"{way}: {early:.2f} ms in steps 5 to 40, {late:.2f} ms in 40 to 200", flush=True)


if __name__ == "__main__":
    main()
