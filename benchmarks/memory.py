"""Compares forecasts of memory with what PyTorch's profiler counts in real runs of two gloo ranks on the CPU.

    python benchmarks/memory.py

The profiler sees each allocation and release of the CPU allocator: a count that shares no code with the forecast. It
is no GPU: caches, fragments and the workspaces of CUDA's kernels are in neither.
"""

from __future__ import annotations

import json
import os
import runpy
import socket
import sys
import tempfile
from pathlib import Path

HEAD = """
import torch, torch.nn as nn, torch.nn.functional as F, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint
dist.init_process_group("gloo")

class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(d), nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 4, 3, c // 4).transpose(1, 2).unbind(3)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(x)))

class Net(nn.Module):
    def __init__(self, d=256, n=4, again=False):
        super().__init__()
        self.emb, self.head, self.again = nn.Embedding(1000, d), nn.Linear(d, 1000), again
        self.layers = nn.ModuleList(Block(d) for _ in range(n))
    def forward(self, ids):
        x = self.emb(ids)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.again else layer(x)
        return self.head(x)

def train(model, opt, batch=8, length=128):
    for _ in range(2):
        ids = torch.randint(0, 1000, (batch, length))
        F.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()
        opt.step()
        opt.zero_grad()
"""
SHARD = "from torch.distributed.fsdp import fully_shard\nmodel = {}\nfor layer in model.layers: fully_shard(layer)\n"
PROGRAMS = {
    "one process's model, SGD": "model = Net()\ntrain(model, torch.optim.SGD(model.parameters(), 0.1))",
    "DDP, AdamW": "model = DDP(Net())\ntrain(model, torch.optim.AdamW(model.parameters()))",
    "DDP, gradients as views, Adam, small batch": (
        "model = DDP(Net(512), gradient_as_bucket_view=True)\ntrain(model, torch.optim.Adam(model.parameters()), 1)"
    ),
    "DDP, bfloat16 autocast": (
        "model = DDP(Net())\nopt = torch.optim.AdamW(model.parameters())\n"
        "with torch.autocast('cpu', torch.bfloat16): train(model, opt)"
    ),
    "DDP, activation checkpointing": (
        "model = DDP(Net(again=True))\ntrain(model, torch.optim.AdamW(model.parameters()))"
    ),
    "fully_shard, AdamW": (
        SHARD.format("Net()") + "fully_shard(model)\ntrain(model, torch.optim.AdamW(model.parameters()))"
    ),
    "fully_shard, larger model, small batch": (
        SHARD.format("Net(512)") + "fully_shard(model)\ntrain(model, torch.optim.AdamW(model.parameters()), 1)"
    ),
    "DDP with ZeRO-1": (
        "from torch.distributed.optim import ZeroRedundancyOptimizer\nmodel = DDP(Net())\n"
        "train(model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW))"
    ),
}


def measure(program: Path, folder: Path) -> list[int]:
    """Return the most bytes that were allocated at once on each of two ranks."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    ranks = []
    for rank in range(2):
        child = os.fork()
        if not child:
            os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
            status = 1
            try:
                (folder / f"real-{rank}").write_text(str(_profiled(program)))
                status = 0
            finally:
                os._exit(status)
        ranks.append(child)
    for child in ranks:
        os.waitpid(child, 0)
    return [int((folder / f"real-{rank}").read_text()) for rank in range(2)]


def _profiled(program: Path) -> int:
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as seen:
        runpy.run_path(str(program), run_name="__main__")
    peak = total = 0
    for event in sorted(seen.profiler.kineto_results.events(), key=lambda e: e.start_ns()):
        if event.name() == "[memory]":
            total += event.nbytes()
            peak = max(peak, total)
    return peak


def main() -> None:
    """Print a table in Markdown, and the errors as JSON."""
    import torch.distributed.fsdp
    import torch.distributed.optim  # noqa: F401 - before the forks

    from dtdebug.experiments.memory.forecast import forecast

    rows = []
    for name, text in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as place:
            program = Path(place, "train.py")
            program.write_text(HEAD + text + "\n")
            real = max(measure(program, Path(place)))
            found = forecast([str(program)], 2)
        forecast_peak = found.peaks[found.worst].peak
        rows.append((name, forecast_peak, real))
        error = 100 * (forecast_peak - real) / real
        print(f"| {name} | {forecast_peak / 2**20:.1f} | {real / 2**20:.1f} | {error:+.1f} % |", flush=True)
    print(json.dumps({name: round((f - r) / r, 4) for name, f, r in rows}), file=sys.stderr)


if __name__ == "__main__":
    main()
