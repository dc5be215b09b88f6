"""Trains under a limit of memory, as a container or a batch system sets one."""

import resource
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

MIB = 1 << 20


def limit(more: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    now = pages * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + more, now + more))


def train() -> None:
    model = DistributedDataParallel(torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(4))))
    scores = []
    limit(300 * MIB)
    for step in range(20):
        batch = torch.randn(32_768, 64)
        loss = model(batch).square().mean()
        loss.backward()
        scores.append(model(batch).mean().item())
        if step % 2 == 0 and dist.get_rank() == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
    if dist.get_rank() == 0:
        print(f"finished {len(scores)} steps", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.barrier()
    dist.destroy_process_group()
