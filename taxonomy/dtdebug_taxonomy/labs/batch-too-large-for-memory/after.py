"""Trains under a limit of memory, as a container or a batch system sets one."""

import resource
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

MIB, GLOBAL_BATCH = 1 << 20, 65_536


def limit(more: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    now = pages * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + more, now + more))


def train() -> None:
    model = DistributedDataParallel(torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(8))))
    batch_size = GLOBAL_BATCH // dist.get_world_size()
    limit(700 * MIB)
    for step in range(2):
        model(torch.randn(batch_size, 256)).square().mean().backward()
    if dist.get_rank() == 0:
        print("finished 2 steps", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.barrier()
    dist.destroy_process_group()
